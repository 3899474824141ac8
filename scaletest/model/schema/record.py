"""The lines of records.jsonl and steps.jsonl."""

from __future__ import annotations

from scaletest.model.measurement import Measurement
from scaletest.model.record import Record
from scaletest.model.reply import ALWAYS, Reply
from scaletest.model.schema.parts import Schema, count, document, number, properties_of


def record() -> Schema:
    """One finished request; what is empty is left out of it."""
    own = properties_of(Record, skip=("reply",))
    reply = properties_of(Reply)
    properties = {
        **own,
        **reply,
        "overhead_s": number("what the tester itself cost: total - wait - run"),
        "schema_version": count("version of the format", 1),
    }
    optional = ["per_device", *(name for name in reply if name not in ALWAYS)]
    return document("record", "One request that ended.", properties, optional)


def measurement() -> Schema:
    """One step that was measured."""
    properties = {**properties_of(Measurement), "schema_version": count("version of the format", 1)}
    return document("measurement", "One measuring of one step.", properties)

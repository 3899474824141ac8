"""The lines of records.jsonl, steps.jsonl and samples.jsonl."""

from __future__ import annotations

from scaletest.model.activity import (
    COUNTS,
    MAX_ENGINES,
    MAX_OBJECT_CHARACTERS,
    MAX_WAITS,
    Activity,
    State,
)
from scaletest.model.measurement import Measurement
from scaletest.model.node_sample import NodeSample
from scaletest.model.record import Record
from scaletest.model.reply import ALWAYS, Reply
from scaletest.model.schema.parts import (
    Schema,
    closed,
    count,
    descriptions,
    document,
    number,
    one_of,
    properties_of,
    rows,
    table,
    text,
)


def record() -> Schema:
    """One finished request; empty fields are left out."""
    own = properties_of(Record, skip=("reply",))
    reply = {**properties_of(Reply, skip=("activity",)), "activity": _activity()}
    properties = {
        **own,
        **reply,
        "overhead_s": number("time that the tester itself added: total - wait - run"),
        "schema_version": count("version of the format", 1),
    }
    optional = ["per_device", *(name for name in reply if name not in ALWAYS)]
    return document("record", "One request that ended.", properties, optional)


def measurement() -> Schema:
    """One step that was measured."""
    properties = {**properties_of(Measurement), "schema_version": count("version of the format", 1)}
    return document("measurement", "One measurement of one step.", properties)


def node_sample() -> Schema:
    """One sample of a node."""
    notes = descriptions(NodeSample)
    properties = {
        **properties_of(NodeSample, skip=("resources", "sources")),
        "resources": table(table(number()), notes["resources"]),
        "sources": table(text(), notes["sources"]),
        "schema_version": count("version of the format", 1),
    }
    return document("node-sample", "One sample of the resources and devices of a node.", properties)


def _activity() -> Schema:
    """Schema of an activity: zeros are left out, and all of it where nothing was sampled."""
    notes = descriptions(Activity)
    seconds = {state.value: number() for state in State}
    wait = closed(
        {
            "state": one_of(State),
            "object": {**text("path, host:port or device"), "maxLength": MAX_OBJECT_CHARACTERS},
            "seconds": number(),
        }
    )
    properties = {
        "seconds": closed(seconds, notes["seconds"], tuple(seconds)),
        "waits": {**rows(wait, notes["waits"]), "maxItems": MAX_WAITS},
        **{name: number(notes[name]) for name in ("cpu_s", "throttled_s")},
        **{name: count(notes[name]) for name in COUNTS},
        "engines": {**table(number(), notes["engines"]), "maxProperties": MAX_ENGINES},
    }
    optional = [name for name in properties if name != "seconds"]
    return closed(properties, descriptions(Reply)["activity"], optional)

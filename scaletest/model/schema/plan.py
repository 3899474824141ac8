"""The plan of a validation: as it is stored, and as people write it with names of options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaletest.model.plan import MAX_WORKERS, MIRRORED, ORDERS, Plan
from scaletest.model.presets import POLICIES, PRESETS
from scaletest.model.schema.parts import Schema, closed, count, document, properties_of

# field -> key, where they differ: options carry no unit in their names
KEYS: Mapping[str, str] = {
    "step_s": "step_time",
    "max_step_s": "max_step",
    "warmup_s": "warmup",
    "time_limit_s": "time_limit",
}
_FIELDS = {key: field for field, key in KEYS.items()}
# generated or counted for every run
_NOT_IN_FILES = {"queue", "devices"}
_LIMITS: Mapping[str, Schema] = {
    "limit": {"minimum": 1, "maximum": MAX_WORKERS},
    "preset": {"enum": ["", *PRESETS]},
    "device_policy": {"enum": list(POLICIES)},
    "devices": {"minimum": 0},
    "scale": {"minimum": 1, "maximum": 2},
    "precision": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "order": {"enum": list(ORDERS)},
    "repeats": {"minimum": 1, "maximum": 1000},
    "seed": {"minimum": 0},
    "tolerate_failures": {"minimum": 0},
    **{
        field: {"minimum": 0}
        for field in ("seconds", "step_s", "max_step_s", "warmup_s", "time_limit_s")
    },
}


def stored() -> Schema:
    """plan.json of a run."""
    return document("plan", "The plan of a run.", _stored_properties())


def stored_object() -> Schema:
    """A stored plan within another document."""
    return closed(_stored_properties(), "the plan of the run")


def _stored_properties() -> dict[str, Schema]:
    return {
        "schema_version": count("version of the format", 1),
        **_limited(properties_of(Plan), {}),
    }


def file() -> Schema:
    """A plan file for `validate -f`. Every key may be left out."""
    schemas = _limited(properties_of(Plan, KEYS, written=False), KEYS)
    properties = {key: schema for key, schema in schemas.items() if key not in _NOT_IN_FILES}
    properties["order"]["default"] = (
        MIRRORED  # a stored plan without an order is older than the mirrored one
    )
    return document(
        "plan-file", "Settings of scaletest validate -f.", properties, tuple(properties)
    )


def as_plan(values: Mapping[str, Any], queue: str, devices: int = 0) -> Plan:
    """The plan of a file's checked values, for a queue and a number of devices."""
    fields = _renamed(values, _FIELDS) | {"devices": devices}
    if "background" in fields:
        fields["background"] = [
            _renamed(background, _FIELDS) for background in fields["background"]
        ]
    return Plan.from_dict({**fields, "queue": queue})


def as_file(stored_plan: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a stored plan with the keys of a plan file, to run it again."""
    fields = Plan.from_dict(dict(stored_plan)).to_dict()
    fields["background"] = [_renamed(background, KEYS) for background in fields["background"]]
    for name in (*_NOT_IN_FILES, "schema_version"):
        fields.pop(name, None)
    return _renamed(fields, KEYS)


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}


def _limited(properties: dict[str, Schema], names: Mapping[str, str]) -> dict[str, Schema]:
    for field, limit in _LIMITS.items():
        properties[names.get(field, field)].update(limit)
    properties["per_device"]["items"].update({"minimum": 1, "maximum": MAX_WORKERS})
    return properties

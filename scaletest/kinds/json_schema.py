"""The JSON Schema (draft 2020-12) of the YAML of benchmarks and sets, for editors: made from the specs, as CRDs are.

The reader says more, as what excludes what; what it takes fits this schema, but for null in place of a default.
"""

from __future__ import annotations

from typing import Any

from scaletest.kinds import fields
from scaletest.kinds.benchmark import NAME
from scaletest.kinds.benchmark_set import SetSpec
from scaletest.kinds.fields import Schema
from scaletest.kinds.registry import API_VERSION, FOREIGN, KINDS, SET
from scaletest.model.schema.parts import DRAFT

_VERSION = "[a-z0-9]+"


def schema() -> Schema:
    """Of one document: a benchmark of any kind, or a set."""
    versions = "|".join([API_VERSION, *(f"{group}/{_VERSION}" for group in FOREIGN)]).replace(".", r"\.")
    meta = {"name": {"type": "string", "pattern": f"^{NAME.pattern}$"}}
    return {
        "$schema": DRAFT,
        "$id": "urn:scaletest:benchmark:1",
        "title": "scaletest benchmark",
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "pattern": f"^({versions})$", "default": API_VERSION},
            "kind": {"enum": [*KINDS, SET]},
            "metadata": {"type": "object", "properties": meta},
            "spec": {"type": "object"},
            "status": {"type": "object"},
        },
        "required": ["kind"],
        "additionalProperties": False,
        "allOf": [_when({"kind": {"const": name}}, {"spec": _ref(name)}) for name in (*KINDS, SET)],
        "$defs": {**{name: _closed(fields.schema(kind.spec), kind.help) for name, kind in KINDS.items()}, SET: _set()},
    }


def _set() -> Schema:
    found = _closed(fields.schema(SetSpec), "A sweep over one benchmark.")
    found["properties"]["template"] = {
        "type": "object",
        "description": "apiVersion, kind and spec: the fixed part.",
        "properties": {"apiVersion": {"type": "string"}, "kind": {"enum": [*KINDS]}, "spec": {"type": "object"}},
        "required": ["kind"],
    }
    # with a matrix any field may be a text that is filled in
    found["allOf"] = [
        {
            "if": {
                "not": {"required": ["matrix"]},
                "properties": {"template": {"properties": {"kind": {"const": name}}}},
            },
            "then": {"properties": {"template": {"properties": {"spec": _ref(name)}}}},
        }
        for name in KINDS
    ]
    return found


def _when(known: Schema, then: Schema) -> Schema:
    return {"if": {"properties": known, "required": list(known)}, "then": {"properties": then}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _closed(found: Schema, help_: str) -> Schema:
    return {"description": help_, **_plain(found)}


def _plain(value: Any) -> Any:
    """OpenAPI's schema in JSON Schema's words; an object with declared fields takes no others."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: one for key, one in value.items() if not key.startswith("x-") and key not in ("nullable", "properties")
    }
    found = {key: _plain(one) if key != "default" else one for key, one in kept.items()}
    if "properties" in value:
        found["properties"] = {name: _plain(one) for name, one in value["properties"].items()}
        found["additionalProperties"] = False
    if value.get("nullable"):
        found["type"] = [value["type"], "null"]
    return found

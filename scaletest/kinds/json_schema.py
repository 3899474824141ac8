"""JSON Schema (draft 2020-12) of benchmarks and sets, generated from the specs, for editors.

The reader checks more, as fields that exclude each other. All documents that it accepts fit this
schema, except null in place of a default.
"""

from __future__ import annotations

from typing import Any

from scaletest.compat import kube_perftest
from scaletest.kinds import fields
from scaletest.kinds.benchmark import NAME
from scaletest.kinds.benchmark_set import SetSpec
from scaletest.kinds.fields import Schema
from scaletest.kinds.registry import API_VERSION, KINDS, SET
from scaletest.model.schema.parts import DRAFT

_VERSION = "[a-z0-9]+"


def schema() -> Schema:
    """The schema of one document: a benchmark of any kind, or a set."""
    versions = "|".join(
        [API_VERSION, *(f"{group}/{_VERSION}" for group in kube_perftest.GROUPS)]
    ).replace(".", r"\.")
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
        "$defs": {
            **{name: _closed(fields.schema(kind.spec), kind.help) for name, kind in KINDS.items()},
            SET: _set(),
        },
    }


def _set() -> Schema:
    closed = _closed(fields.schema(SetSpec), "A sweep over one benchmark.")
    closed["properties"]["template"] = {
        "type": "object",
        "description": "apiVersion, kind and spec: the fixed part.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"enum": [*KINDS]},
            "spec": {"type": "object"},
        },
        "required": ["kind"],
    }
    # with a matrix any field may be a text with placeholders
    closed["allOf"] = [
        {
            "if": {
                "not": {"required": ["matrix"]},
                "properties": {"template": {"properties": {"kind": {"const": name}}}},
            },
            "then": {"properties": {"template": {"properties": {"spec": _ref(name)}}}},
        }
        for name in KINDS
    ]
    return closed


def _when(known: Schema, then: Schema) -> Schema:
    return {"if": {"properties": known, "required": list(known)}, "then": {"properties": then}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _closed(openapi: Schema, help_: str) -> Schema:
    return {"description": help_, **_plain(openapi)}


def _plain(openapi: Any) -> Any:
    """Translate OpenAPI into JSON Schema; objects with declared fields accept no others."""
    if isinstance(openapi, list):
        return [_plain(part) for part in openapi]
    if not isinstance(openapi, dict):
        return openapi
    plain: Schema = {}
    for key, part in openapi.items():
        if key == "default":
            plain[key] = part
        elif not key.startswith("x-") and key not in ("nullable", "properties"):
            plain[key] = _plain(part)
    if "properties" in openapi:
        plain["properties"] = {name: _plain(part) for name, part in openapi["properties"].items()}
        plain["additionalProperties"] = False
    if openapi.get("nullable"):
        plain["type"] = [openapi["type"], "null"]
    return plain

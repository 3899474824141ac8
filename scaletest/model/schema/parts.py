"""Functions that build JSON Schemas (draft 2020-12), also from dataclasses.

Types come from annotations, defaults from the fields, descriptions from the class's docstring: a
sentence that begins with the names of fields and a colon describes these fields. So each field is
described in one place.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SIMPLE: Mapping[Any, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    type(None): "null",
}


def text(description: str = "") -> Schema:
    """A string."""
    return _described({"type": "string"}, description)


def number(description: str = "") -> Schema:
    """Any finite number."""
    return _described({"type": "number"}, description)


def count(description: str = "", minimum: int = 0) -> Schema:
    """A whole number from `minimum` on."""
    return _described({"type": "integer", "minimum": minimum}, description)


def flag(description: str = "") -> Schema:
    """True or false."""
    return _described({"type": "boolean"}, description)


def one_of(values: Sequence[str] | type[Enum], description: str = "") -> Schema:
    """One of some strings."""
    return _described(
        {"enum": [str(getattr(value, "value", value)) for value in values]}, description
    )


def maybe(schema: Schema) -> Schema:
    """A schema that also allows null, for unknown values."""
    return _union([schema, {"type": "null"}])


def rows(member: Schema, description: str = "") -> Schema:
    """A list."""
    return _described({"type": "array", "items": member}, description)


def table(values: Schema, description: str = "") -> Schema:
    """An object whose keys are data."""
    return _described({"type": "object", "additionalProperties": values}, description)


def closed(
    properties: Mapping[str, Schema], description: str = "", optional: Sequence[str] = ()
) -> Schema:
    """An object with exactly these properties, of which the optional ones may be missing."""
    return _described(
        {
            "type": "object",
            "properties": dict(properties),
            "required": [name for name in properties if name not in optional],
            "additionalProperties": False,
        },
        description,
    )


def estimate(description: str = "") -> Schema:
    """A value with its interval."""
    ends = {name: maybe(number()) for name in ("value", "low", "high")}
    return closed(ends, description or "value with its 95 % interval")


def document(
    name: str, description: str, properties: Mapping[str, Schema], optional: Sequence[str] = ()
) -> Schema:
    """A whole document, schema version 1."""
    return {
        "$schema": DRAFT,
        "$id": f"urn:scaletest:{name}:1",
        "title": f"scaletest {name}",
        **closed(properties, description, optional),
    }


def properties_of(
    kind: type,
    names: Mapping[str, str] | None = None,
    *,
    written: bool = True,
    skip: Sequence[str] = (),
) -> dict[str, Schema]:
    """The properties of a dataclass by field, renamed by `names`, without the fields to skip.

    written: true for documents that scaletest writes, with all fields; false for those that people
    write, who may leave out fields with a default.
    """
    hints, notes = typing.get_type_hints(kind), descriptions(kind)
    properties = {}
    for field in dataclasses.fields(kind):
        if field.name in skip:
            continue
        schema = _described(_of(hints[field.name], names or {}, written), notes.get(field.name, ""))
        if field.default is not dataclasses.MISSING:
            schema["default"] = _plain(field.default)
        properties[(names or {}).get(field.name, field.name)] = schema
    return properties


def descriptions(kind: type) -> dict[str, str]:
    """The description of each field in a docstring, one sentence or more."""
    names = {field.name for field in dataclasses.fields(kind)}
    prose = " ".join((kind.__doc__ or "").split())
    heads = [
        match
        for match in re.finditer(r"(?:^|(?<=[.;] ))([a-z]\w*(?:, [a-z]\w*)*): ", prose)
        if set(match[1].split(", ")) & names
    ]
    ends = [match.start() for match in heads[1:]] + [len(prose)]
    texts: dict[str, str] = {}
    for match, end in zip(heads, ends, strict=False):
        description = prose[match.end() : end].strip().rstrip(";")
        texts.update(dict.fromkeys(match[1].split(", "), description))
    return {name: description for name, description in texts.items() if name in names}


def _of(hint: Any, names: Mapping[str, str], written: bool) -> Schema:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin in (typing.Union, types.UnionType):
        return _union([_of(each, names, written) for each in arguments])
    if origin is tuple:
        return rows(_of(arguments[0], names, written))
    if origin is dict:
        return table(_of(arguments[1], names, written))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return one_of(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        inner = properties_of(hint, names, written=written)
        with_default = [name for name, schema in inner.items() if "default" in schema]
        return closed(inner, optional=[] if written else with_default)
    raise TypeError(f"no schema for {hint!r}")


def _union(schemas: Sequence[Schema]) -> Schema:
    if all(set(schema) == {"type"} for schema in schemas):
        return {"type": list(dict.fromkeys(schema["type"] for schema in schemas))}
    alternatives = [dict(schema) for schema in schemas]
    notes = [schema.pop("description", None) for schema in alternatives]
    note = next((text for text in reversed(notes) if text is not None), None)
    if note is None:
        return {"anyOf": alternatives}
    return {"anyOf": alternatives, "description": note}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _described(schema: Schema, description: str) -> Schema:
    if description:
        return {**schema, "description": description}
    return schema

"""JSON Schemas (draft 2020-12): made from the classes of documents, and checks against them.

What a person wrote is checked for types and names, with a hint for each mistake. The check knows
only the keywords that are made here; the model checks ranges, because its messages name the units.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from scaletest.model import checks
from scaletest.model.declared import (
    DocumentMember,
    declared,
    is_duration,
    is_enum,
    members,
    plain,
)
from scaletest.model.errors import InvalidValue, suggestion

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_JSON_TYPES: Mapping[Any, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    type(None): "null",
}
# keyword of msgspec -> keyword of schemas
_KEYWORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
# of what has a length, by its type in schemas
_LENGTHS = {"string": "maxLength", "array": "maxItems", "object": "maxProperties"}


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How schemas are made of classes.

    defaults: whether they tell defaults. is_file: whether people write the document, who use the
    keys that are declared for files, may leave out what has a default, and write durations with a
    unit.
    """

    defaults: bool = True
    is_file: bool = False

    def properties(self, kind: type) -> dict[str, Schema]:
        """The schemas of the members of a class's documents."""
        schemas: dict[str, Schema] = {}
        if not self.is_file:
            constants = getattr(kind, "constants", {})
            schemas = {name: {"const": constant} for name, constant in constants.items()}
        if "schema_version" in schemas:
            schemas["schema_version"] = {**VERSION, "minimum": constants["schema_version"]}
        for member in members(kind):
            described = self.schema(member.hint)
            if self.defaults and member.default is not dataclasses.MISSING:
                described = {**described, "default": plain(member.default)}
            if key := self._key(member):
                schemas[key] = described
        return schemas

    def schema(self, hint: Any) -> Schema:
        """The schema of values of a type, with all that is declared of it."""
        rule = declared(hint)
        made = self._of_type(rule.base)
        if rule.choices:
            made["enum"] = list(rule.choices)
        made |= rule.extra.get("schema", {})
        if self.is_file and is_duration(hint):
            made["type"] = ["number", "string"]
        for name, limit in rule.limits.items():
            keyword = _LENGTHS[str(made["type"])] if name == "max_length" else _KEYWORDS[name]
            made[keyword] = limit
        return {**made, "description": rule.description} if rule.description else made

    def _key(self, member: DocumentMember) -> str:
        return member.key if self.is_file else member.name

    def _of_type(self, base: Any) -> Schema:
        origin, arguments = get_origin(base), get_args(base)
        if base in _JSON_TYPES:
            return {"type": _JSON_TYPES[base]}
        if base is Any or is_enum(base):
            return {}
        if origin in (Union, types.UnionType):
            return _union([self.schema(inner) for inner in arguments])
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (tuple, list, Sequence):
            return {"type": "array", "items": self.schema(arguments[0])}
        if origin in (dict, Mapping):
            names = {} if arguments[0] is str else {"propertyNames": self.schema(arguments[0])}
            return {"type": "object", **names, "additionalProperties": self.schema(arguments[1])}
        if dataclasses.is_dataclass(base):
            return self.object(base)
        raise TypeError(f"no schema for {base!r}")

    def object(self, kind: Any) -> Schema:
        """The schema of a class's documents."""
        always = getattr(kind, "always", None)
        optional = [
            self._key(member)
            for member in members(kind)
            if (self.is_file and member.default is not dataclasses.MISSING)
            or (always is not None and member.name not in always)
        ]
        description = getattr(kind, "description", "")
        # a field may be called so
        note = {"description": description} if isinstance(description, str) and description else {}
        return {**closed(self.properties(kind), optional), **note}


VERSION: Schema = {"type": "integer", "minimum": 1, "description": "version of the format"}


def closed(properties: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    """The schema of an object with these members, of which the optional ones may be missing."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def headed(name: str, schema: Schema) -> Schema:
    """The schema of a whole document, version 1."""
    return {
        "$schema": DRAFT,
        "$id": f"urn:scaletest:{name}:1",
        "title": f"scaletest {name}",
        **schema,
    }


def described(name: str, description: str, kind: type, form: Form | None = None) -> Schema:
    """The schema of a class's documents as a whole."""
    return headed(name, {**(form or Form()).object(kind), "description": description})


def _union(schemas: Sequence[Schema]) -> Schema:
    """One schema of several: keywords of numbers and texts do not concern null, so that both fit
    into one.
    """
    merged: Schema = {}
    names = list(itertools.chain.from_iterable(map(type_names, schemas)))
    if names and set(names) <= set(_JSON_TYPES.values()):
        for schema in schemas:
            merged |= schema
        # Python may give the members of an equal union that it met before, in their order
        order = list(_JSON_TYPES.values())
        return {**merged, "type": sorted(set(names), key=order.index)}
    merged["anyOf"] = [dict(schema) for schema in schemas]
    for schema in merged["anyOf"]:
        if description := schema.pop("description", ""):
            merged["description"] = description
    return merged


def type_names(schema: Schema) -> Sequence[str]:
    """The JSON types of a schema's values."""
    names = schema.get("type", "any")
    return [names] if isinstance(names, str) else names


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "string": str,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
_EXPECTATIONS: Mapping[str, tuple[str, str]] = {
    "integer": ("a whole number", "write it as in 8"),
    "number": ("a number", "write it as in 2.5"),
    "string": ("text", 'put it in quotes, as in "1"'),
    "boolean": ("true or false", "write true or false"),
    "null": ("null", "leave it out"),
    "array": ("a list", "write it as in [a, b]"),
    "object": ("a table of keys and values", "write it as in {key: value}"),
}


def check(value: Any, schema: Schema, name: str) -> None:
    """Raise InvalidValue, which calls the value `name`, when it does not fit the schema."""
    types = type_names(schema)
    if not any(_is(value, kind) for kind in types):
        expected, hint = _EXPECTATIONS[types[0]]
        raise InvalidValue(f"{name} is {checks.cut(repr(value), 60)}, not {expected}", hint=hint)
    if isinstance(value, str) and not _is_unicode(value):
        raise InvalidValue(
            f"{name} is not valid Unicode", hint="write it without half of a pair of surrogates"
        )
    if isinstance(value, list):
        for index, member in enumerate(value):
            check(member, schema["items"], f"{name}[{index}]")
    if isinstance(value, dict):
        _check_keys(value, schema, name)


def known(key: Any, properties: Mapping[str, Any], name: str) -> str:
    """The key, when it is one of the properties; InvalidValue suggests the nearest otherwise."""
    if isinstance(key, str) and key in properties:
        return key
    raise InvalidValue(
        f"{name} does not know {checks.cut(repr(key), 60)}",
        hint=suggestion(str(key).replace("-", "_"), properties),
    )


def _check_keys(value: dict[Any, Any], schema: Schema, name: str) -> None:
    for key, member in value.items():
        known(key, schema["properties"], name)
        check(member, schema["properties"][key], f"{key} in {name}")
    missing = [name for name in schema["required"] if name not in value]
    if missing:
        raise InvalidValue(f"{name} lacks {', '.join(missing)}", hint="add it")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))

"""Fields of a spec: declared on a dataclass, read from documents, described as OpenAPI.

A name is host_network in Python and hostNetwork in documents. A declaration has all rules of its
field, so that the reader, the schema, the reference and the explanation of a kind cannot disagree.
docs/dependencies.md says why documents that people write are not read by msgspec.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, suggestion

T = TypeVar("T")
Schema = dict[str, Any]
_TYPES: Mapping[str, tuple[Any, str]] = {
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "string": (str, "text"),
    "boolean": (bool, "true or false"),
    "array": ((list, tuple), "a list"),
    "object": (Mapping, "a table of keys and values"),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpecField:
    """One declared field, with its rules.

    help: one sentence. minimum, maximum: both inclusive. multiple: a number must be a multiple
    of it. choices: all allowed values. aliases: values that are read as one of the choices,
    with a warning. refused: values that cannot work, with the reason. pattern: for the whole
    text. pattern_text: the pattern for people. schema: more of the OpenAPI schema. trusted:
    whether it decides what runs, or where files are written, so that it is not accepted from
    everybody.

    Of the dataclass: name: in documents. attribute: in Python. kind: its JSON type. nested: the
    dataclass of an object, None for a free one.
    """

    help: str
    minimum: float | None = None
    maximum: float | None = None
    multiple: int | None = None
    choices: tuple[Any, ...] = ()
    aliases: Mapping[Any, Any] = dataclasses.field(default_factory=dict)
    refused: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    pattern: str = ""
    pattern_text: str = ""
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    required: bool = False
    trusted: bool = False
    name: str = ""
    attribute: str = ""
    kind: str = ""
    optional: bool = False
    nested: Any = None
    default: Any = None


def spec_field(default: Any, text: str, **rules: Any) -> Any:
    """A field of a spec; `text` is its help. A default that is a dict is copied for every spec."""
    metadata = {"declared": SpecField(help=text, **rules)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def fields_of(spec: Any) -> tuple[SpecField, ...]:
    """All fields of a spec in their order."""
    return _fields(spec)


# a cache, since a set may have a hundred thousand specs of one class
@cache
def _fields(spec: Any) -> tuple[SpecField, ...]:
    hints = typing.get_type_hints(spec)
    return tuple(_declared(field, hints[field.name]) for field in dataclasses.fields(spec))


def _declared(field: dataclasses.Field[Any], hint: Any) -> SpecField:
    optional = typing.get_origin(hint) is types.UnionType
    if optional:
        (hint,) = set(typing.get_args(hint)) - {types.NoneType}
    factory = field.default_factory
    first, *rest = field.name.split("_")
    rules: SpecField = field.metadata["declared"]
    return dataclasses.replace(
        rules,
        name=first + "".join(map(str.capitalize, rest)),
        attribute=field.name,
        kind=_json_type(hint),
        optional=optional,
        nested=hint if dataclasses.is_dataclass(hint) else None,
        default=field.default if factory is dataclasses.MISSING else factory(),
    )


def read(spec: type[T], document: Any, title: str, warnings: list[str]) -> T:
    """Read a spec from a document; an alias adds a warning.

    title: name of the document in messages, as in "the spec of Fio". InvalidValue names the key.
    """
    if not isinstance(document, Mapping):
        raise InvalidValue(
            f"{title} is {_shown(document)}, not a table of keys and values",
            hint="write it as {key: value}",
        )
    known = {field.name: field for field in fields_of(spec)}
    values = {}
    for key, value in document.items():
        if not isinstance(key, str) or key not in known:
            raise InvalidValue(
                f"{title} has an unknown key {_shown(key)}", hint=suggestion(key, known)
            )
        values[known[key].attribute] = _read_field(known[key], value, f"{key} of {title}", warnings)
    missing = [name for name in known if known[name].required and name not in document]
    if missing:
        raise InvalidValue(
            f"{title} lacks {', '.join(missing)}",
            hint="; ".join(known[name].help for name in missing),
        )
    return spec(**values)


def written(spec: Any, *, defaults: bool = True) -> dict[str, Any]:
    """The document of a spec; without `defaults` only fields that differ from them."""
    values = [(field, getattr(spec, field.attribute)) for field in fields_of(type(spec))]
    return {
        field.name: _document(value, defaults)
        for field, value in values
        if defaults or value != field.default
    }


def schema(spec: type) -> Schema:
    """The OpenAPI v3 schema of a spec, structural as Kubernetes requires."""
    required = [field.name for field in fields_of(spec) if field.required]
    described: Schema = {
        "type": "object",
        "properties": {field.name: _schema(field) for field in fields_of(spec)},
    }
    return described | {"required": required} if required else described


def _read_field(field: SpecField, value: Any, title: str, warnings: list[str]) -> Any:
    if value is None:
        return None if field.optional else field.default
    if isinstance(value, str | int) and value in field.refused:
        raise InvalidValue(
            f"{title} is {_shown(value)}: {field.refused[value]}", hint=_choices(field)
        )
    if isinstance(value, str | int) and value in field.aliases:
        warnings.append(f"{title} is {_shown(value)}, which is read as {field.aliases[value]}")
        value = field.aliases[value]
    _check_type(field, value, title)
    if field.nested is not None:
        return read(field.nested, value, title, warnings)
    _check_rule(field, value, title)
    return tuple(value) if field.kind == "array" else value


def _check_type(field: SpecField, value: Any, title: str) -> None:
    kind, text = _TYPES[field.kind]
    # in Python a bool is an int too
    if not isinstance(value, kind) or isinstance(value, bool) != (field.kind == "boolean"):
        raise InvalidValue(f"{title} is {_shown(value)}, not {text}", hint=field.help)
    if field.kind == "array":
        is_object = field.schema.get("items", {}).get("type") == "object"
        part, text = (Mapping, "a table") if is_object else (str, "text")
        if not all(isinstance(member, part) for member in value):
            raise InvalidValue(f"{title} holds something that is not {text}", hint=field.help)


def _check_rule(field: SpecField, value: Any, title: str) -> None:
    if field.choices and value not in field.choices:
        raise InvalidValue(f"{title} is {_shown(value)}", hint=_choices(field))
    if field.pattern and isinstance(value, str) and not re.fullmatch(field.pattern, value):
        raise InvalidValue(
            f"{title} is {_shown(value)}", hint=f"write {field.pattern_text or field.pattern}"
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(field, value, title)


def _check_number(field: SpecField, number: float, title: str) -> None:
    low = -math.inf if field.minimum is None else field.minimum
    high = math.inf if field.maximum is None else field.maximum
    # not a number is in no range
    if not low <= number <= high:
        ends = f"{low:g}" if field.maximum is None else f"{field.minimum or 0:g} to {high:g}"
        raise InvalidValue(f"{title} is {number}", hint=f"give a number from {ends}")
    if field.multiple and number % field.multiple:
        raise InvalidValue(f"{title} is {number}", hint=f"give a multiple of {field.multiple}")


def _choices(field: SpecField) -> str:
    return f"use one of: {', '.join(map(str, field.choices))}" if field.choices else field.help


def _schema(field: SpecField) -> Schema:
    if field.nested is not None:
        return {**schema(field.nested), "description": field.help}
    described: Schema = {"type": field.kind, "description": field.help, **field.schema}
    if field.kind == "array":
        described.setdefault("items", {"type": "string"})
    if field.kind == "object" and not field.schema:
        described["x-kubernetes-preserve-unknown-fields"] = True
    if field.choices:
        # admission must accept an alias, since the operator reads it
        described["enum"] = list(dict.fromkeys([*field.choices, *field.aliases]))
    limits = {"minimum": field.minimum, "maximum": field.maximum, "multipleOf": field.multiple}
    described |= {name: limit for name, limit in limits.items() if limit is not None}
    if field.pattern:
        described["pattern"] = f"^({field.pattern})$"
    if field.optional:
        described["nullable"] = True
    elif not field.required:
        described["default"] = _document(field.default, True)
    return described


def _json_type(hint: Any) -> str:
    simple = {int: "integer", float: "number", str: "string", bool: "boolean"}
    return simple.get(hint) or ("array" if typing.get_origin(hint) is tuple else "object")


def _document(value: Any, defaults: bool) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return written(value, defaults=defaults)
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return value


def as_yaml(value: object) -> str:
    """A value as YAML writes it on one line: true, null, [1, 2]; text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError):
        # in YAML a key may have any type
        return str(value)


def _shown(value: object) -> str:
    return cut(repr(value) if isinstance(value, str) else as_yaml(value), 80)

"""Fields of a benchmark's spec: declared once on a dataclass, read from documents, shown as an OpenAPI schema.

A name is written in Python as host_network and in documents as hostNetwork. What a field may be stands in its
declaration, so that the reader, the schema, the reference and the explanation of a kind cannot disagree.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue

T = TypeVar("T")
Schema = dict[str, Any]
_WORDS = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "true or false"}
_WORDS |= {"array": "a list", "object": "a table of keys and values"}
_PYTHON: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "string": str,
    "boolean": bool,
    "array": (list, tuple),
    "object": Mapping,
}


@dataclass(frozen=True, slots=True)
class FieldRule:
    """What a field may be.

    help: one sentence. minimum, maximum: both inclusive. multiple: of what a number must be a multiple. choices: all
    that is allowed. aliases: what is read as one of the choices, with a warning. refused: values with the reason why
    they cannot work. pattern: of the whole text. words: the pattern in words. schema: for objects of Kubernetes.
    trusted: whether it decides what runs, or where files are written, so that it is not taken from everybody.
    """

    help: str
    minimum: float | None = None
    maximum: float | None = None
    multiple: int | None = None
    choices: tuple[Any, ...] = ()
    aliases: Mapping[Any, Any] = dataclasses.field(default_factory=dict)
    refused: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    pattern: str = ""
    words: str = ""
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    required: bool = False
    trusted: bool = False


def spec_field(default: Any, text: str, **rule: Any) -> Any:
    """A field of a spec; `text` is its help. A default that is a dict is made anew for every spec."""
    metadata = {"rule": FieldRule(text, **rule)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class SpecField:
    """One declared field. kind: its JSON type. nested: the dataclass of an object, None for a free one."""

    name: str
    attribute: str
    kind: str
    optional: bool
    nested: type | None
    default: Any
    rule: FieldRule


def camel(name: str) -> str:
    """host_network as hostNetwork."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def fields_of(spec: type) -> tuple[SpecField, ...]:
    """All declared fields in order."""
    if spec not in _KNOWN:
        _KNOWN[spec] = tuple(_declared(spec))
    return _KNOWN[spec]


# A set may have a hundred thousand specs of one class.
_KNOWN: dict[type, tuple[SpecField, ...]] = {}


def _declared(spec: type) -> Iterator[SpecField]:
    hints = typing.get_type_hints(spec)
    for item in dataclasses.fields(spec):
        hint, optional = _plain_hint(hints[item.name])
        nested = hint if isinstance(hint, type) and dataclasses.is_dataclass(hint) else None
        factory = item.default_factory
        default = item.default if factory is dataclasses.MISSING else factory()
        yield SpecField(camel(item.name), item.name, _json_type(hint), optional, nested, default, item.metadata["rule"])


def read(spec: type[T], data: Any, what: str, warnings: list[str]) -> T:
    """A spec of a document's values. InvalidValue says what is wrong where; an alias that was taken adds a warning."""
    if not isinstance(data, Mapping):
        raise InvalidValue(f"{what} is {_shown(data)}, not a table of keys and values", hint="write it as {key: value}")
    known = {field.name: field for field in fields_of(spec)}
    values = {}
    for key, value in data.items():
        field = known.get(key) if isinstance(key, str) else None
        if field is None:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise InvalidValue(f"{what} does not know {_shown(key)}", hint=hint)
        values[field.attribute] = _value(field, value, f"{key} of {what}", warnings)
    missing = [field.name for field in known.values() if field.rule.required and field.attribute not in values]
    if missing:
        raise InvalidValue(
            f"{what} lacks {', '.join(missing)}", hint="; ".join(known[name].rule.help for name in missing)
        )
    return spec(**values)


def written(spec: Any, *, defaults: bool = True) -> dict[str, Any]:
    """A spec as a document holds it; without `defaults` only what differs from them."""
    row: dict[str, Any] = {}
    for field in fields_of(type(spec)):
        value = getattr(spec, field.attribute)
        if value == field.default and not defaults:
            continue
        row[field.name] = _document(value, defaults)
    return row


def schema(spec: type) -> Schema:
    """The OpenAPI v3 schema of a spec, structural as Kubernetes wants it."""
    properties = {field.name: _schema(field) for field in fields_of(spec)}
    required = [field.name for field in fields_of(spec) if field.rule.required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _value(field: SpecField, value: Any, what: str, warnings: list[str]) -> Any:
    if value is None and field.optional:
        return None
    if value is None:
        return field.default
    rule = field.rule
    if isinstance(value, str | int) and value in rule.refused:
        raise InvalidValue(f"{what} is {_shown(value)}: {rule.refused[value]}", hint=_choices(rule))
    if isinstance(value, str | int) and value in rule.aliases:
        warnings.append(f"{what} is {_shown(value)}, which is read as {rule.aliases[value]}")
        value = rule.aliases[value]
    _check_type(field, value, what)
    if field.nested is not None:
        return read(field.nested, value, what, warnings)
    _check_rule(rule, value, what)
    return tuple(value) if field.kind == "array" else value


def _check_type(field: SpecField, value: Any, what: str) -> None:
    right = isinstance(value, _PYTHON[field.kind]) and (field.kind == "boolean" or not isinstance(value, bool))
    if not right:
        raise InvalidValue(f"{what} is {_shown(value)}, not {_WORDS[field.kind]}", hint=field.rule.help)
    if field.kind == "array" and not all(isinstance(one, _item_type(field.rule)) for one in value):
        words = "text" if _item_type(field.rule) is str else "a table"
        raise InvalidValue(f"{what} holds something that is not {words}", hint=field.rule.help)


def _item_type(rule: FieldRule) -> type:
    items = rule.schema.get("items", {})
    return Mapping if items.get("type") == "object" else str


def _check_rule(rule: FieldRule, value: Any, what: str) -> None:
    if rule.choices and value not in rule.choices:
        raise InvalidValue(f"{what} is {_shown(value)}", hint=_choices(rule))
    if rule.pattern and isinstance(value, str) and not re.fullmatch(rule.pattern, value):
        raise InvalidValue(f"{what} is {_shown(value)}", hint=f"write {rule.words or rule.pattern}")
    low, high = rule.minimum, rule.maximum
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value != value or (low is not None and value < low) or (high is not None and value > high):
            ends = f"from {low:g}" if high is None else f"from {low or 0:g} to {high:g}"
            raise InvalidValue(f"{what} is {value}", hint=f"give a number {ends}")
        if rule.multiple and value % rule.multiple:
            raise InvalidValue(f"{what} is {value}", hint=f"give a multiple of {rule.multiple}")


def _choices(rule: FieldRule) -> str:
    return f"use one of: {', '.join(map(str, rule.choices))}" if rule.choices else rule.help


def _schema(field: SpecField) -> Schema:
    rule = field.rule
    if field.nested is not None:
        return {**schema(field.nested), "description": rule.help}
    found: Schema = {"type": field.kind, "description": rule.help, **rule.schema}
    if field.kind == "array":
        found.setdefault("items", {"type": "string"})
    if field.kind == "object" and not rule.schema:
        found["x-kubernetes-preserve-unknown-fields"] = True
    # an alias must get past admission, where the operator then reads it
    if rule.choices:
        found["enum"] = [*rule.choices, *(alias for alias in rule.aliases if alias not in rule.choices)]
    for name, value in (("minimum", rule.minimum), ("maximum", rule.maximum), ("multipleOf", rule.multiple)):
        if value is not None:
            found[name] = int(value) if field.kind == "integer" else value
    if rule.pattern:
        found["pattern"] = f"^({rule.pattern})$"
    if field.optional:
        found["nullable"] = True
    elif not rule.required:
        found["default"] = _document(field.default, True)
    return found


def _plain_hint(hint: Any) -> tuple[Any, bool]:
    """The type without its `| None`, and whether it had one."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [one for one in typing.get_args(hint) if one is not type(None)]
        return rest[0], True
    return hint, False


def _json_type(hint: Any) -> str:
    simple = {int: "integer", float: "number", str: "string", bool: "boolean"}
    if hint in simple:
        return simple[hint]
    return "array" if typing.get_origin(hint) in (tuple, list, Sequence) else "object"


def _document(value: Any, defaults: bool) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return written(value, defaults=defaults)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def as_yaml(value: object) -> str:
    """A value of a document as YAML writes it on one line: true, null, [1, 2]; text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError):  # keys of maps may be anything in YAML
        return str(value)


def _shown(value: object) -> str:
    return cut(repr(value) if isinstance(value, str) else as_yaml(value), 80)

"""Check what a person wrote against a schema: types and names, with a hint for each mistake.

It knows only the keywords that `parts` writes. The model checks ranges, because its messages name
the units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaletest.model import checks
from scaletest.model.errors import InvalidValue
from scaletest.model.nearest import suggestion
from scaletest.model.schema.parts import Schema

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
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
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

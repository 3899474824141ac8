"""Values that a person wrote against a schema of ours: types and names, with what to do about each mistake.

Knows only the words that `parts` writes. Ranges are left to the model, whose messages name the unit.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from scaletest.model import checks
from scaletest.model.errors import InvalidValue
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
_WORDS: Mapping[str, tuple[str, str]] = {
    "integer": ("a whole number", "write it as in 8"),
    "number": ("a number", "write it as in 2.5"),
    "string": ("text", 'put it in quotes, as in "1"'),
    "boolean": ("true or false", "write true or false"),
    "null": ("null", "leave it out"),
    "array": ("a list", "write it as in [a, b]"),
    "object": ("a table of keys and values", "write it as in {key: value}"),
}


def check(value: Any, schema: Schema, what: str) -> None:
    """InvalidValue that names `what` when the value is not of the schema."""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_is(value, name) for name in types):
        words, hint = _WORDS[types[0]]
        raise InvalidValue(f"{what} is {checks.cut(repr(value), 60)}, not {words}", hint=hint)
    if isinstance(value, str) and not _is_unicode(value):
        raise InvalidValue(f"{what} is not valid Unicode", hint="write it without half of a pair of surrogates")
    if isinstance(value, list):
        for index, one in enumerate(value):
            check(one, schema["items"], f"{what}[{index}]")
    if isinstance(value, dict):
        _check_keys(value, schema, what)


def known(key: Any, properties: Mapping[str, Any], what: str) -> str:
    """The key, when it is one of them; InvalidValue with the nearest one otherwise."""
    if isinstance(key, str) and key in properties:
        return key
    near = difflib.get_close_matches(str(key).replace("-", "_"), properties, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(properties)}"
    raise InvalidValue(f"{what} does not know {checks.cut(repr(key), 60)}", hint=hint)


def _check_keys(value: dict[Any, Any], schema: Schema, what: str) -> None:
    for key, one in value.items():
        known(key, schema["properties"], what)
        check(one, schema["properties"][key], f"{key} in {what}")
    missing = [name for name in schema["required"] if name not in value]
    if missing:
        raise InvalidValue(f"{what} lacks {', '.join(missing)}", hint="add it")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))

"""JSON at the border: strict in what is read, compact in what is written. Pure functions of text and values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from scaletest.model.errors import InvalidValue

SCHEMA_VERSION = 1
# Half of a pair, as a name that is not UTF-8 becomes on its way through JSON. It can be read, and written nowhere.
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
SURROGATE_BYTES = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")

# json.dumps would make one for each call.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def dump(value: Mapping[str, Any]) -> str:
    """One line of JSON, no spaces, text as UTF-8; refuses NaN and infinities, which are not JSON."""
    return _ENCODER.encode(value)


def load(text: str | bytes, what: str) -> dict[str, Any]:
    """A JSON object, or InvalidValue that names `what` could not be read. Lone surrogates become question marks."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        if SURROGATE_BYTES.search(text) if isinstance(text, bytes) else SURROGATE.search(text):
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{what} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidValue(f"{what} is not a JSON object")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def take(data: Mapping[str, Any], what: str, known: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """The known fields of `data`, each of its type. Unknown fields are dropped: a newer writer may add some."""
    result = {}
    for name, kind in known.items():
        if name not in data:
            continue
        value = data[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidValue(f"field {name!r} of {what} has the wrong type: {type(value).__name__}")
        result[name] = value
    return result


def texts(value: object) -> list[str]:
    """The texts of a list; none where it is something else."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

"""JSON and packed data at the border: strict and within bounds when read, compact when written."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from scaletest.model.errors import InvalidValue

SCHEMA_VERSION = 1

# json.dumps would make a new encoder for each call.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
# zlib tells gzip's header from its own.
_EITHER_HEADER = 32 + zlib.MAX_WBITS


def dump(document: Mapping[str, Any]) -> str:
    """Return one line of JSON without spaces, in UTF-8; refuses NaN and infinities."""
    return _ENCODER.encode(document)


def load(text: str | bytes, name: str) -> dict[str, Any]:
    """Read a JSON object; InvalidValue names it. Lone surrogates become question marks."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # the fast reader is too strict for lone surrogates, which programs' outputs may hold
        try:
            tolerant = json.loads(text, parse_constant=_refuse_constant)
            document = json.loads(
                json.dumps(tolerant, ensure_ascii=False).encode("utf-8", "replace")
            )
        except (ValueError, RecursionError) as error:
            raise InvalidValue(f"{name} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidValue(f"{name} is not a JSON object")
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def texts(candidate: object) -> list[str]:
    """Return the texts in a list that may hold anything; none where it is not a list."""
    rows = candidate if isinstance(candidate, list) else []
    return [text for text in rows if isinstance(text, str)]


def decompress(packed: bytes, most_bytes: int, name: str) -> bytes:
    """Return the content of gzip or zlib data; InvalidValue when it is damaged or too long."""
    unpacker = zlib.decompressobj(_EITHER_HEADER)
    try:
        content = unpacker.decompress(packed, most_bytes + 1)
    except zlib.error as error:
        raise InvalidValue(f"{name} cannot be unpacked: {error}") from error
    if len(content) > most_bytes:
        raise InvalidValue(f"{name} unpacks to more than {most_bytes} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise InvalidValue(f"{name} cannot be unpacked: it ends too early, or data follows its end")
    return content

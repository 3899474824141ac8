"""Decompression within bounds: a megabyte of zeros is only a kilobyte when it is packed."""

from __future__ import annotations

import zlib

from scaletest.model.errors import InvalidValue

# zlib tells gzip's header from its own.
_EITHER_HEADER = 32 + zlib.MAX_WBITS


def unpack(packed: bytes, most_bytes: int, name: str) -> bytes:
    """The content of gzip or zlib data; InvalidValue when it is damaged or exceeds `most_bytes`."""
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

"""Payloads of requests: none, one file again and again, several in turn, or those of a plug-in.

A provider is an entry point of the group `scaletest.payloads`: a function of one text, its
argument, that returns an iterable of bytes, of text, or of values that become JSON. All payloads
are loaded before the load begins, so that providing them takes no time while it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from scaletest.model import checks
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.plugins.registry import Plugins

GROUP = "scaletest.payloads"
MOST_BYTES = 512 * 1024 * 1024
MOST = 1_000_000


class Payloads:
    """A fixed number of request bodies, used in turn."""

    def __init__(self, bodies: Sequence[bytes | None] = (None,)) -> None:
        if not bodies:
            raise UsageError(
                "there is no payload", hint="give a file or a provider with at least one"
            )
        self.bodies = list(bodies)

    def get(self, number: int) -> bytes | None:
        """The body of request `number`."""
        return self.bodies[number % len(self.bodies)]


def file(path: str) -> list[bytes]:
    """One file for every request: a live stream would add variation of its own."""
    return [_read(Path(path))]


def folder(path: str) -> list[bytes]:
    """Every file of a folder in turn, by name."""
    root = Path(path)
    if not root.is_dir():
        raise UsageError(f"{path} is not a folder", hint="give folder:DIRECTORY")
    return [_read(file_path) for file_path in sorted(root.iterdir()) if file_path.is_file()]


def lines(path: str) -> list[bytes]:
    """Every line of a file in turn."""
    return [line for line in _read(Path(path)).splitlines() if line.strip()]


BUILT_IN: dict[str, Callable[[str], Iterable[object]]] = {
    "file": file,
    "folder": folder,
    "lines": lines,
}


def provided(text: str) -> Payloads:
    """The payloads of NAME[:ARGUMENT]. UsageError for an unknown provider, or one that fails."""
    name, _, argument = text.partition(":")
    plugins = Plugins(GROUP, BUILT_IN).by_name
    known = sorted({*BUILT_IN, *plugins})
    checks.one_of(name, known, "payload provider")
    try:
        provider = BUILT_IN[name] if name in BUILT_IN else plugins[name].load()
        return Payloads(_within_bounds(map(_bytes, islice(provider(argument), MOST))))
    except ScaletestError:
        raise
    except Exception as error:
        raise UsageError(
            f"payload provider {name!r} failed: {error}", hint="try it alone in Python"
        ) from error


def _within_bounds(bodies: Iterable[bytes]) -> list[bytes]:
    accepted, size = [], 0
    for body in bodies:
        size += len(body)
        if size > MOST_BYTES:
            raise UsageError(
                f"the payloads exceed {MOST_BYTES} bytes", hint="give fewer or smaller ones"
            )
        accepted.append(body)
    return accepted


def _bytes(payload: object) -> bytes:
    """A payload as bytes: text as UTF-8, anything else as JSON, as the original tool does."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode()
    return json.dumps(payload).encode()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", hint="give the path of a payload"
        ) from error

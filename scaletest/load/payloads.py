"""What requests carry: nothing, one file over and over, many in turn, or what a plug-in provides.

A provider is an entry point of the group `scaletest.payloads`: a function of one text, its argument, that returns an
iterable of bytes, of text, or of values that become JSON. All are held in memory before a load begins, so that
providing them takes no time while it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from itertools import islice
from pathlib import Path

from scaletest.model.errors import ScaletestError, UsageError

GROUP = "scaletest.payloads"
MOST_BYTES = 512 * 1024 * 1024
MOST = 1_000_000


class Payloads:
    """A fixed number of bodies, given in turn."""

    def __init__(self, bodies: Sequence[bytes | None] = (None,)) -> None:
        if not bodies:
            raise UsageError("there is no payload", hint="give a file or a provider that holds one")
        self._bodies = list(bodies)

    def get(self, number: int) -> bytes | None:
        """The body of request `number`."""
        return self._bodies[number % len(self._bodies)]

    def all(self) -> list[bytes | None]:
        """Every body, in turn."""
        return list(self._bodies)


def file(path: str) -> list[bytes]:
    """The same content for every request, as the article advises: a live stream would add what cannot be foreseen."""
    return [_read(Path(path))]


def folder(path: str) -> list[bytes]:
    """Every file of a folder in turn, by name."""
    root = Path(path)
    if not root.is_dir():
        raise UsageError(f"{path} is no folder", hint="give folder:DIRECTORY")
    return [_read(path_) for path_ in sorted(root.iterdir()) if path_.is_file()]


def lines(path: str) -> list[bytes]:
    """Every line of a file in turn."""
    return [line for line in _read(Path(path)).splitlines() if line.strip()]


BUILT_IN: dict[str, Callable[[str], Iterable[object]]] = {"file": file, "folder": folder, "lines": lines}


def provided(text: str) -> Payloads:
    """The payloads of NAME[:ARGUMENT]. UsageError for an unknown provider, or one that fails."""
    name, _, argument = text.partition(":")
    plugins = {entry_point.name: entry_point for entry_point in metadata.entry_points(group=GROUP)}
    known = sorted({*BUILT_IN, *plugins})
    if name not in known:
        raise UsageError(f"there is no payload provider {name!r}", hint=f"known here: {', '.join(known)}")
    try:
        provider = BUILT_IN[name] if name in BUILT_IN else plugins[name].load()
        return Payloads(_within_bounds(map(_bytes, islice(provider(argument), MOST))))
    except ScaletestError:
        raise
    except Exception as error:
        raise UsageError(f"payload provider {name!r} failed: {error}", hint="try it alone in Python") from error


def _within_bounds(bodies: Iterable[bytes]) -> list[bytes]:
    accepted, size = [], 0
    for body in bodies:
        size += len(body)
        if size > MOST_BYTES:
            raise UsageError(f"the payloads hold more than {MOST_BYTES} bytes", hint="give fewer or smaller ones")
        accepted.append(body)
    return accepted


def _bytes(payload: object) -> bytes:
    """As the original tool does: text goes out as it is, anything else as JSON."""
    if isinstance(payload, bytes):
        return payload
    return payload.encode() if isinstance(payload, str) else json.dumps(payload).encode()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="give the path of a payload") from error

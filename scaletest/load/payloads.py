"""Payloads of requests: none, one file again and again, or the files of a folder in turn.

All are read before the load begins, so that reading them takes no time while it runs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from scaletest.model.errors import UsageError

MOST_BYTES = 512 * 1024 * 1024


class Bodies(Protocol):
    """Bodies of requests."""

    def get(self, number: int) -> bytes | None:
        """Return the body of request `number`."""


class Payloads:
    """A fixed number of request bodies, used in turn."""

    def __init__(self, bodies: Sequence[bytes | None] = (None,)) -> None:
        self.bodies = list(bodies)

    def get(self, number: int) -> bytes | None:
        """The body of request `number`."""
        return self.bodies[number % len(self.bodies)]


def read_payloads(path: str) -> Payloads:
    """Read a file, or all files of a folder by name; "" is no payload. UsageError when that cannot
    be done.
    """
    if not path:
        return Payloads()
    root = Path(path)
    try:
        files = sorted(filter(Path.is_file, root.iterdir())) if root.is_dir() else [root]
        size = sum(file.stat().st_size for file in files)
        if size > MOST_BYTES:
            raise UsageError(
                f"the payloads exceed {MOST_BYTES} bytes", hint="give fewer or smaller ones"
            )
        bodies = [file.read_bytes() for file in files]
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", hint="give the path of a payload"
        ) from error
    if not bodies:
        raise UsageError(f"there is no file in {path}", hint="give a folder of payloads")
    return Payloads(bodies)

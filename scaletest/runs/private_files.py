"""Folders and files that only their owner may read: command lines and outputs may hold secrets."""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

_FLAGS = {"a": os.O_APPEND, "w": os.O_TRUNC, "x": os.O_EXCL}


def make_folder(path: Path) -> None:
    """Make a folder for its owner only, parents as usual; an existing one keeps its mode."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_private(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Open for writing as `open` does; new files are for their owner only, old keep their mode."""
    return os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | _FLAGS[mode[0]], 0o600), mode, **options
    )


def open_regular(path: str | Path, mode: str = "r", **options: Any) -> IO[Any]:
    """Open a regular file for reading as `open` does; OSError for anything else.

    Others may write into a volume: a FIFO would keep us waiting, and /dev/zero never ends.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(handle, mode, **options)


def replace_private(path: Path, parts: Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file of these parts: a reader sees the old one or the new one, and never a part.

    A new one is for its owner only. durable: return when it is on disk.
    """
    # made anew: an interrupted process may have left one, and "x" follows no link
    new_version = path_of_new_version(path)
    new_version.unlink(missing_ok=True)
    with open_private(new_version, "xb") as file:
        file.writelines(parts)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    new_version.replace(path)


def path_of_new_version(path: Path) -> Path:
    """Return where the next version of a file is written, before it takes the place of the file."""
    return path.with_name(f".{path.name}.new")

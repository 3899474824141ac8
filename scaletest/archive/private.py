"""Folders and files that only their owner may read: command lines and outputs may hold secrets."""

from __future__ import annotations

import os
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

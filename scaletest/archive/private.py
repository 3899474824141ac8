"""Folders and files for the eyes of their owner: command lines, arguments and what programs say may
hold secrets.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

_FLAGS = {"a": os.O_APPEND, "w": os.O_TRUNC, "x": os.O_EXCL}


def make_folder(path: Path) -> None:
    """Make a folder that only its owner may enter, those above it as usual; one that exists keeps
    its rights.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_private(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Open for writing as `open` does; only its owner may read what is made. A file that exists
    keeps its rights.
    """
    return os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | _FLAGS[mode[0]], 0o600), mode, **options
    )

"""Functions that jobs in the tests name. Nothing here is part of the project."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

calls: list[Any] = []


def add(left: int, right: int) -> int:
    """Return the sum."""
    return left + right


def boom() -> None:
    """Raise."""
    raise ValueError("boom")


def callback(*arguments: Any) -> None:
    """Do nothing."""


def note(path: str, seconds: float = 0.0) -> int:
    """Leave a mark, take a while, return 1."""
    with Path(path).open("a") as file:
        file.write("x")
    time.sleep(seconds)
    return 1


def fail_once(path: str) -> int:
    """Raise the first time only."""
    first = not Path(path).exists()
    note(path)
    if first:
        raise ValueError("the first time")
    return 1

"""Functions that jobs in the tests name. Nothing here is part of the project."""

from __future__ import annotations

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

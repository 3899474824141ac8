"""Functions that jobs in the tests name. Nothing here is part of the project."""

import fcntl
from pathlib import Path
from typing import Any


def add(left: int, right: int) -> int:
    """Return the sum."""
    return left + right


def boom() -> None:
    """Raise."""
    raise ValueError("boom")


def callback(*arguments: Any) -> None:
    """Do nothing."""


def note(path: str) -> int:
    """Leave a mark, return 1."""
    with Path(path).open("a") as file:
        file.write("x")
    return 1


def pass_gate(marks: str, gate: str) -> None:
    """Leave a mark, and wait until the gate is open."""
    note(marks)
    with Path(gate).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def fail_once(path: str) -> int:
    """Raise the first time only."""
    first = not Path(path).exists()
    note(path)
    if first:
        raise ValueError("the first time")
    return 1


def note_failure(job: Any, *exception: Any) -> None:
    """Leave a mark where the job's metadata say, as its callback of failures."""
    note(job.meta["marks"])

"""Where the pages read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from flask import current_app

from scaletest.runs.folder import RunFolder


@dataclass(frozen=True, slots=True)
class Sources:
    """root: where runs are kept, as in `runs.places`. redis_url: "" where no Redis was named.

    run: the run whose command serves these pages, which may lie elsewhere; None where no command
    does.
    """

    root: Path
    redis_url: str = ""
    run: RunFolder | None = None


T = TypeVar("T")


def of_application(name: str, make: Callable[[], T]) -> T:
    """An object of the application that answers; made when it is first needed."""
    extensions = current_app.extensions
    if name not in extensions:
        extensions.setdefault(name, make())
    return cast(T, extensions[name])


def sources() -> Sources:
    """The sources of the application that answers."""
    return cast(Sources, current_app.config["SOURCES"])

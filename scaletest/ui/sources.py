"""Where the pages read from."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from flask import current_app

from scaletest.model.wording import as_options
from scaletest.runs.folder import RunFolder

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the pages of an application read from."""

    root: Path  # where runs are kept, as in `runs.places`; the folder may be missing
    redis_url: str = ""  # "" where no Redis was named
    # the run whose command serves these pages, which may lie elsewhere; None where no command does
    run: RunFolder | None = None

    @property
    def why_no_runs(self) -> str:
        """Why there are no runs to show, and what to do; for pages that found none."""
        is_readable = os.access(self.root, os.R_OK | os.X_OK)
        reason = f"There is no run in {self.root}" if is_readable else f"{self.root} cannot be read"
        return as_options(
            f"{reason}. Make one with scaletest validate, or show another folder with <archive>; in"
            " the chart that is ui.archive."
        )


def of_application(name: str, make: Callable[[], T]) -> T:
    """Return an object of the application that answers; made when it is first needed."""
    extensions = current_app.extensions
    if name not in extensions:
        extensions.setdefault(name, make())
    return cast(T, extensions[name])


def sources() -> Sources:
    """Return the sources of the application that answers."""
    return cast(Sources, current_app.config["SOURCES"])

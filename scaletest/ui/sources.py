"""Where the pages read from."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from flask import current_app

from scaletest.model.wording import as_options
from scaletest.runs.folder import RunFolder

T = TypeVar("T")
MEASURE = "Make one with scaletest validate, or name another folder with <archive>."
MOUNT = (
    "In a cluster the pages show the runs of a volume: in the chart, name its claim in"
    " ui.archive.existingClaim."
)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the pages of an application read from."""

    root: Path  # where runs are kept, as in `runs.places`; the folder may be missing
    redis_url: str = ""  # "" where no Redis was named
    # the run whose command serves these pages, which may lie elsewhere; None where no command does
    run: RunFolder | None = None
    remedy: str = MEASURE  # what to do where there are no runs

    @property
    def why_no_runs(self) -> str:
        """Why there are no runs to show, and what to do; for pages that found none."""
        if os.access(self.root, os.R_OK | os.X_OK):
            reason = f"There is no run in {self.root} yet."
        elif os.path.lexists(self.root):
            reason = f"The folder {self.root} cannot be read by the user of these pages."
        else:
            reason = f"There are no runs: the folder {self.root} does not exist."
        return f"{reason} {as_options(self.remedy)}"


def remedy_for_no_runs(environment: Mapping[str, str]) -> str:
    """Return what to do where there are no runs: in a pod of Kubernetes, or elsewhere."""
    return MOUNT if "KUBERNETES_SERVICE_HOST" in environment else MEASURE


def of_application(name: str, make: Callable[[], T]) -> T:
    """Return an object of the application that answers; made when it is first needed."""
    extensions = current_app.extensions
    if name not in extensions:
        extensions.setdefault(name, make())
    return cast(T, extensions[name])


def sources() -> Sources:
    """Return the sources of the application that answers."""
    return cast(Sources, current_app.config["SOURCES"])

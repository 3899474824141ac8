"""Where the pages read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from flask import current_app

MOUNT = "Mount a volume with runs: in the chart, name its claim in ui.archive.existingClaim."
MEASURE = "Measure something, as with scaletest validate, or choose another folder with --archive."


@dataclass(frozen=True, slots=True)
class Sources:
    """root: where runs are kept, as in `runs.places`; the folder may be missing. redis_url: ""
    where no Redis was named. remedy: what to do where there is no archive.
    """

    root: Path
    redis_url: str = ""
    remedy: str = MEASURE

    @property
    def absence(self) -> str:
        """Why there are no runs to show, and what to do; "" where there is a folder of runs."""
        try:
            self.root.stat()
        except FileNotFoundError:
            return (
                f"There is no archive of runs: the folder {self.root} does not exist. {self.remedy}"
            )
        except OSError as error:
            return f"The archive {self.root} cannot be read: {error.strerror}. {self.remedy}"
        return ""


def remedy(environment: Mapping[str, str]) -> str:
    """What to do where there is no archive: in a pod of Kubernetes, or elsewhere."""
    return MOUNT if "KUBERNETES_SERVICE_HOST" in environment else MEASURE


def sources() -> Sources:
    """The sources of the application that answers."""
    return cast(Sources, current_app.config["SOURCES"])

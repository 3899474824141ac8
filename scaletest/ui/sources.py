"""Where the pages read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from flask import current_app


@dataclass(frozen=True, slots=True)
class Sources:
    """root: where runs are kept, as in `runs.places`. redis_url: "" where no Redis was named."""

    root: Path
    redis_url: str = ""


def sources() -> Sources:
    """The sources of the application that answers."""
    return cast(Sources, current_app.config["SOURCES"])

"""Options of the command autoscale, as one value."""

from dataclasses import dataclass
from pathlib import Path

from scaletest.capacity.autoscale.load import PlayedLoad


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """The load that is played, and what is used in place of its run times and arrivals."""

    load: PlayedLoad
    run: str  # a stored run, whose run times are drawn from
    trace: Path | None  # a file with the times of arrivals
    seed: int

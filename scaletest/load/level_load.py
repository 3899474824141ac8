"""A load at one level: the order for one step, its result, and the interface of generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from scaletest.model.attempt import Attempt, PodTroubles
from scaletest.model.machine_use import MachineUse


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """One step of a load.

    pace: intended starts in seconds since the step began (open load), or None: keep `parallel`
    requests in flight. count: end after this many requests; 0: end after `seconds`.
    most_behind: end early when this many requests are due and have not ended.
    patience_s: how long requests in flight may take at the end.
    """

    seconds: float
    parallel: int = 0
    pace: Iterator[float] | None = None
    count: int = 0
    most_behind: float = float("inf")
    patience_s: float = 30.0


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of one step. seconds: until nothing was due any more; the rest as in
    SaturationStep.

    around: use of this machine during the step; None when it was not read. pods: how the service's
    pods fared; None when they were not read.
    """

    samples: Sequence[Attempt]
    seconds: float
    cpu: float
    beat_s: float
    throttled_s: float
    unsent: int
    around: MachineUse | None = None
    throttled_periods: float = 0.0
    pods: PodTroubles | None = None


class LevelLoad(Protocol):
    """Generates load on a service or a queue."""

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """Run one step and wait for requests in flight.

        stopping: end early when it returns true. tell: receives requests ended and failed so far.
        """

    def close(self) -> None:
        """Close connections."""

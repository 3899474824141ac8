"""What a load is told to do for one step, and what it says about itself afterwards. Whoever generates it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from scaletest.model.attempt import Attempt
from scaletest.model.machine_use import MachineUse


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """One step. pace: intended starts in s from its begin (open load), or None: keep `parallel` in flight.

    count: end after so many requests instead of after `seconds`; 0: by time. most_behind: end early when so many are
    due and have not ended. patience_s: so long may what is in flight take at the end.
    """

    seconds: float
    parallel: int = 0
    pace: Iterator[float] | None = None
    count: int = 0
    most_behind: float = float("inf")
    patience_s: float = 30.0


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What came of an order. seconds: until nothing was due any more; the rest as in SaturationStep.

    around: what else happened on this machine; None when nobody looked.
    """

    samples: Sequence[Attempt]
    seconds: float
    cpu: float
    beat_s: float
    throttled_s: float
    unsent: int
    around: MachineUse | None = None


class LevelLoad(Protocol):
    """Something that can be ordered to load a service."""

    def measure(self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]) -> LoadResult:
        """Do it, and wait for what is in flight. stopping: end early when true. tell: ended and failed so far."""

    def close(self) -> None:
        """End it."""

"""A load at one level: the order for one step, its result, and the interface of generators."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from scaletest.model.attempt import Attempt, PodTroubles
from scaletest.model.measurement import MachineUse

# Is told again and again how many requests ended so far, and how many of them failed.
NoteProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """One step of a load."""

    seconds: float
    parallel: int = 0  # requests that are kept in flight, without a pace
    pace: Iterator[float] | None = None  # intended starts in seconds since the step began
    count: int = 0  # end after this many requests; 0: end after `seconds`
    most_behind: float = float("inf")  # end early when so many are due and have not ended
    patience_s: float = 30.0  # how long requests in flight may take at the end


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of one step."""

    samples: Sequence[Attempt]
    seconds: float  # until nothing was due any more
    cpu: float  # cores that the tester used
    beat_s: float  # how late its timers fired, 99th percentile
    around: MachineUse | None = None  # use of this machine; None when it was not read
    throttled_periods: float = 0.0  # part of the periods in which its CPU limit was reached
    pods: PodTroubles | None = None  # how the service's pods fared; None when they were not read


def nearly_longest(times_s: Iterable[float]) -> float:
    """Return the 99th percentile of times in any order; 0 without any."""
    ordered = sorted(times_s)
    return ordered[int(0.99 * (len(ordered) - 1))] if ordered else 0.0


class LevelLoad(Protocol):
    """Generates load on a service or a queue."""

    def measure(
        self,
        order: LoadOrder,
        stopping: Callable[[], bool],
        note_progress: NoteProgress,
    ) -> LoadResult:
        """Run one step and wait for requests in flight.

        stopping: end early when it returns true.
        """

    def close(self) -> None:
        """Close connections."""


def send_one(load: LevelLoad, limit_s: float, stopping: Callable[[], bool] = lambda: False) -> str:
    """Send one request, of `limit_s` at most; return its outcome, "" when it was stopped."""
    order = LoadOrder(limit_s, parallel=1, count=1, patience_s=limit_s)
    samples = load.measure(order, stopping, lambda ended, failed: None).samples
    return samples[0].outcome if samples else ""

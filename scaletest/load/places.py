"""Where the requests of a load ended, in tables of bounded size: pods come and go for days.

A new row replaces the one that changed longest ago, whose count is added to "others". Failures are
in groups (stats/failures.py), which are bounded in the same way.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from scaletest.model import Reply
from scaletest.stats.failures import FailureTally

# Rows of the tables.
MOST_PLACES = 500
MOST_FAILURES = 200


def highest_known(numbers: Iterable[float | None]) -> float | None:
    """Return the highest number that is known; None where none is."""
    return max((number for number in numbers if number is not None), default=None)


class RequestPlace(NamedTuple):
    """Where a request ran, and by whom."""

    node: str
    pod: str
    device: str
    worker: str


@dataclass(slots=True)
class PlaceCount:
    """Requests that ended at one place; run times of those that succeeded, in seconds."""

    place: RequestPlace
    succeeded: int = 0
    failed: int = 0
    run_total_s: float = 0.0
    run_high_s: float | None = None

    @property
    def run_mean_s(self) -> float | None:
        """Mean run time; None where none succeeded."""
        return self.run_total_s / self.succeeded if self.succeeded else None


class LoadTally:
    """Requests by place, and failures in groups. Not safe for several threads at once."""

    def __init__(self) -> None:
        self._places: dict[RequestPlace, PlaceCount] = {}
        self.failures = FailureTally(most=MOST_FAILURES)
        self.other_succeeded = self.other_failed = 0

    def add_success(self, reply: Reply) -> None:
        """Count a request that succeeded."""
        counts = self._touch_row(reply)
        counts.succeeded += 1
        counts.run_total_s += reply.run_s
        counts.run_high_s = max(counts.run_high_s or 0.0, reply.run_s)

    def add_failure(self, reply: Reply, now_s: float) -> None:
        """Count a request that failed. now_s: seconds since the epoch."""
        self._touch_row(reply).failed += 1
        self.failures.add(reply, now_s)

    def places(self) -> tuple[PlaceCount, ...]:
        """Return counts by place, sorted by name."""
        return tuple(replace(self._places[key]) for key in sorted(self._places))

    def _touch_row(self, reply: Reply) -> PlaceCount:
        key = RequestPlace(reply.node, reply.pod, reply.device, reply.worker)
        counts = self._places.pop(key, None)
        if counts is None:
            counts = PlaceCount(key)
            if len(self._places) >= MOST_PLACES:
                # sorted by their last change, oldest first
                oldest = self._places.pop(next(iter(self._places)))
                self.other_succeeded += oldest.succeeded
                self.other_failed += oldest.failed
        self._places[key] = counts
        return counts

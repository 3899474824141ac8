"""Counts by place (node, pod, device) and by kind of failure, in tables of bounded size.

Pods come and go for days, and every error text may be new. So each table has a fixed number of
rows; a new row replaces the one that changed longest ago, whose count is added to "others".
"""

from __future__ import annotations

from typing import NamedTuple

from scaletest.model import Reply

PLACES = 500
FAILURES = 200
MAX_TEXT = 500


class RequestPlace(NamedTuple):
    """Where a request ran."""

    node: str
    pod: str
    device: str


class PlaceCount(NamedTuple):
    """Requests that ended at one place; run times of those that succeeded, in seconds."""

    place: RequestPlace
    succeeded: int
    failed: int
    run_mean_s: float | None
    run_high_s: float | None


class FailureKind(NamedTuple):
    """A kind of failure: requests with all of this in common."""

    node: str
    device: str
    outcome: str
    reason: str
    exit_code: int | None
    error: str


class FailureCount(NamedTuple):
    """How often a kind of failure occurred, and when, in seconds since the epoch."""

    kind: FailureKind
    seen: int
    first_s: float
    last_s: float


class _PlaceCounts:
    __slots__ = ("failed", "run_high", "run_total", "succeeded", "touched")

    def __init__(self) -> None:
        self.succeeded = self.failed = self.touched = 0
        self.run_total = self.run_high = 0.0


class LoadTally:
    """Both tables. Not safe for several threads at once."""

    def __init__(self, places: int = PLACES, failures: int = FAILURES) -> None:
        self._most_places = places
        self._most_failures = failures
        self._places: dict[tuple[str, str, str], _PlaceCounts] = {}
        self._failures: dict[FailureKind, tuple[int, float, float]] = {}
        self._turn = 0
        self.other_succeeded = 0
        self.other_failed = 0
        self.other_failures = 0

    def succeeded(self, reply: Reply) -> None:
        """Count a request that succeeded."""
        counts = self._row(reply)
        counts.succeeded += 1
        run_s = reply.run_s
        counts.run_total += run_s
        if run_s > counts.run_high:
            counts.run_high = run_s

    def failed(self, reply: Reply, now_s: float) -> None:
        """Count a request that failed. now_s: seconds since the epoch."""
        self._row(reply).failed += 1
        error = reply.error[:MAX_TEXT]
        kind = FailureKind(
            reply.node, reply.device, reply.outcome, reply.reason, reply.exit_code, error
        )
        count, first, _ = self._failures.pop(kind, (0, now_s, now_s))
        if not count and len(self._failures) >= self._most_failures:
            # sorted by their last failure, oldest first
            self.other_failures += self._failures.pop(next(iter(self._failures)))[0]
        self._failures[kind] = (count + 1, first, now_s)

    def places(self) -> tuple[PlaceCount, ...]:
        """Counts by place, sorted by name."""
        places = []
        for key, counts in sorted(self._places.items()):
            mean = counts.run_total / counts.succeeded if counts.succeeded else None
            high = counts.run_high if counts.succeeded else None
            places.append(
                PlaceCount(RequestPlace(*key), counts.succeeded, counts.failed, mean, high)
            )
        return tuple(places)

    def failures(self) -> tuple[FailureCount, ...]:
        """Kinds of failure, the most frequent first."""
        failures = [FailureCount(kind, *values) for kind, values in self._failures.items()]
        return tuple(
            sorted(
                failures, key=lambda failure: (-failure.seen, failure.kind.node, failure.kind.error)
            )
        )

    def _row(self, reply: Reply) -> _PlaceCounts:
        key = (reply.node, reply.pod, reply.device)
        counts = self._places.get(key)
        if counts is None:
            if len(self._places) >= self._most_places:
                self._forget_place()
            counts = self._places[key] = _PlaceCounts()
        self._turn += 1
        counts.touched = self._turn
        return counts

    def _forget_place(self) -> None:
        oldest = min(self._places, key=lambda key: self._places[key].touched)
        counts = self._places.pop(oldest)
        self.other_succeeded += counts.succeeded
        self.other_failed += counts.failed

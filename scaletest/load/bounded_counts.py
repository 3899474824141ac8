"""Counts in bounded memory: durations by bucket, a series of bins, tables of places.

Durations of any number of requests are in buckets of 2 %, beside their exact minimum, maximum and
sum. A percentile read back is within 1 % of the truth (scaletest/model/histogram.py), and lies
between minimum and maximum.

A series keeps all peaks in a fixed number of points. Time is divided into bins, of one second at
first. When there are too many, each two neighbours become one: counts add up, and the lowest and
highest second of a bin stay known, as does its longest duration. Percentiles of a bin come from
coarse buckets of 8 % (four of the histogram's buckets), which can be merged too: they are within
4.1 %.

Counts by place (node, pod, device) are in a table of bounded size, since pods come and go for days.
It has a fixed number of rows; a new row replaces the one that changed longest ago, whose count is
added to "others". Failures are in groups (analysis/failures.py), which are bounded in the same way.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scaletest.analysis.failures import FailureGroup, FailureTally
from scaletest.model import Reply, histogram

# A q-quantile needs at least ln 0.05 / ln q values: with fewer, the chance that all of them lie
# below it is more than 5 %.
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
NEEDED = {name: math.ceil(math.log(0.05) / math.log(share)) for name, share in QUANTILES.items()}


@dataclass(frozen=True, slots=True)
class DurationSummary:
    """Summary of durations, in seconds; None where there are too few."""

    count: int
    low_s: float | None
    mean_s: float | None
    high_s: float | None
    quantiles_s: Mapping[str, float | None]

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain values for JSON; names end with their unit."""
        quantiles = {f"{name}_s": value for name, value in self.quantiles_s.items()}
        return {
            "count": self.count,
            "min_s": self.low_s,
            "mean_s": self.mean_s,
            **quantiles,
            "max_s": self.high_s,
        }


@dataclass(slots=True)
class DurationHistogram:
    """Counts of durations by bucket."""

    counts: Counter[int] = field(default_factory=Counter)
    count: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        index = histogram.bucket(seconds)
        counts = self.counts
        counts[index] = counts.get(index, 0) + 1
        self.count += 1
        self.total += seconds
        if seconds < self.low:
            self.low = seconds
        if seconds > self.high:
            self.high = seconds

    def merge(self, other: DurationHistogram) -> None:
        """Count everything that `other` counted."""
        self.counts.update(other.counts)
        self.count += other.count
        self.total += other.total
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)

    def copy(self) -> DurationHistogram:
        """An independent copy."""
        return replace(self, counts=self.counts.copy())

    def quantile(self, share: float) -> float | None:
        """The duration in seconds below which `share` (0 to 1) of the durations lie."""
        seconds = histogram.quantile(self.counts, share)
        if seconds is None:
            return None
        return min(self.high, max(self.low, seconds))

    def summary(self) -> DurationSummary:
        """Count, extremes, mean and the quantiles for which there are enough durations."""
        if not self.count:
            return DurationSummary(0, None, None, None, dict.fromkeys(QUANTILES))
        enough = [name for name in QUANTILES if self.count >= NEEDED[name]]
        quantiles = {name: self.quantile(QUANTILES[name]) for name in enough}
        return DurationSummary(
            self.count,
            self.low,
            self.total / self.count,
            self.high,
            {**dict.fromkeys(QUANTILES), **quantiles},
        )


MOST_BINS = 600
COARSE = 4
MEASURES = ("wait", "run", "overhead", "total")


class Spread(NamedTuple):
    """Durations in one bin, in seconds; None when nothing ended in it, or too little for p95."""

    p50_s: float | None
    p95_s: float | None
    high_s: float | None


class SeriesPoint(NamedTuple):
    """One bin of a chart. seq: number of its last second since the load began; ascending.

    asked: the most that was asked for in it, in flight or a second; None for a load with a schedule
    of its own.
    """

    seq: int
    at_s: float
    span_s: int
    succeeded: int
    failed: int
    rate_per_s: float
    rate_low: int
    rate_high: int
    in_flight_low: int
    in_flight_high: int
    asked: float | None
    wait: Spread
    run: Spread
    overhead: Spread
    total: Spread


class Packed:
    """A histogram in a few bytes a bucket."""

    __slots__ = ("counts", "high", "indexes")

    def __init__(self, counts: Mapping[int, int], high: float) -> None:
        self.indexes = array("H", sorted(counts))
        self.counts = array("Q", [counts[index] for index in self.indexes])
        self.high = high

    @classmethod
    def of(cls, times: DurationHistogram) -> Packed:
        """Coarse counts of a histogram."""
        coarse: Counter[int] = Counter()
        for index, count in times.counts.items():
            coarse[index // COARSE] += count
        return cls(coarse, times.high)

    def _table(self) -> Counter[int]:
        """Counts by bucket."""
        return Counter(dict(zip(self.indexes, self.counts, strict=True)))

    def joined(self, other: Packed) -> Packed:
        """The sum of both."""
        return Packed(self._table() + other._table(), max(self.high, other.high))

    def spread(self) -> Spread:
        """Median, 95th percentile and longest."""
        if not self.indexes:
            return Spread(None, None, None)
        spread = Spread(self._quantile(0.5), None, self.high)
        if sum(self.counts) < NEEDED["p95"]:
            return spread
        return spread._replace(p95_s=self._quantile(0.95))

    def _quantile(self, share: float) -> float:
        # the middle of a coarse bucket is where its two middle ones meet
        bucket = COARSE * histogram.bucket_at(self._table(), share) + (COARSE - 1) / 2
        return min(self.high, histogram.middle(bucket))


@dataclass(slots=True)
class Bin:
    """Some seconds of a load: numbers `first` to `last` since it began.

    spreads: as MEASURES. asked: as in `SeriesPoint`.
    """

    first: int
    last: int
    succeeded: int
    failed: int
    rates: tuple[int, int]
    in_flight: tuple[int, int]
    spreads: tuple[Packed, ...]
    asked: float | None = None
    _point: SeriesPoint | None = None

    def joined(self, later: Bin) -> Bin:
        """This bin and its later neighbour as one."""
        return Bin(
            self.first,
            later.last,
            self.succeeded + later.succeeded,
            self.failed + later.failed,
            _outer(self.rates, later.rates),
            _outer(self.in_flight, later.in_flight),
            tuple(mine.joined(its) for mine, its in zip(self.spreads, later.spreads, strict=True)),
            highest((self.asked, later.asked)),
        )

    def point(self, epoch_s: float) -> SeriesPoint:
        """The bin as a point of a chart. epoch_s: begin of the load in epoch seconds."""
        if self._point is None:
            span = self.last - self.first + 1
            self._point = SeriesPoint(
                self.last + 1,
                epoch_s + self.first,
                span,
                self.succeeded,
                self.failed,
                self.succeeded / span,
                *self.rates,
                *self.in_flight,
                self.asked,
                *(packed.spread() for packed in self.spreads),
            )
        return self._point


class Series:
    """At most `most` bins. Not for several threads at once."""

    def __init__(self, most: int = MOST_BINS) -> None:
        self._most = most
        self._bins: list[Bin] = []
        self.width = 1

    def append(self, added: Bin) -> None:
        """Add the next bin, as wide as `width`; afterwards `width` may be twice as large."""
        self._bins.append(added)
        if len(self._bins) >= self._most:
            pairs = zip(self._bins[0::2], self._bins[1::2], strict=True)
            self._bins = [first.joined(second) for first, second in pairs]
            self.width *= 2

    def bins(self) -> tuple[Bin, ...]:
        """All bins, oldest first."""
        return tuple(self._bins)


def highest(numbers: Iterable[float | None]) -> float | None:
    """The highest number that is known; None where none is."""
    return max((number for number in numbers if number is not None), default=None)


def _outer(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return min(first[0], second[0]), max(first[1], second[1])


PLACES = 500
FAILURES = 200
CHANGES = 100
# Changes of one kind that follow each other within this time are one.
CHANGE_S = 2.0


class LoadChange(NamedTuple):
    """A change of a load. kind: "parallel", "rate" or "reset"; at_s: seconds since the epoch."""

    at_s: float
    kind: str
    before: float
    after: float

    def __str__(self) -> str:
        unit = {"rate": "/s"}.get(self.kind, "")
        before, after = (f"{number:g}{unit}" for number in (self.before, self.after))
        match self:
            case LoadChange(kind="reset"):
                return "statistics reset"
            case LoadChange(after=0):
                return f"paused, {self.kind} was {before}"
            case LoadChange(before=0):
                return f"resumed with {self.kind} {after}"
        return f"{self.kind} {before} to {after}"


class LoadChanges:
    """The last changes, at most CHANGES. Not safe for several threads at once."""

    def __init__(self) -> None:
        self._changes: deque[LoadChange] = deque(maxlen=CHANGES)

    def add(self, change: LoadChange) -> None:
        """Note a change, which continues the last one if that is of its kind and just now; a pause
        and its end stay as they are.
        """
        for last in list(self._changes)[-1:]:
            is_step = 0 not in (last.before, last.after, change.after)
            if is_step and last.kind == change.kind and change.at_s - last.at_s < CHANGE_S:
                change = change._replace(at_s=last.at_s, before=last.before)
                self._changes.pop()
        if change.before != change.after or change.kind == "reset":
            self._changes.append(change)

    def all(self) -> tuple[LoadChange, ...]:
        """The oldest first."""
        return tuple(self._changes)


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
    """Both tables. Not safe for several threads at once."""

    def __init__(self, begin_s: float = 0.0) -> None:
        """begin_s: when the load began, in seconds since the epoch."""
        self._places: dict[RequestPlace, PlaceCount] = {}
        self._failures = FailureTally(begin_s, most=FAILURES)
        self.other_succeeded = self.other_failed = 0

    def succeeded(self, reply: Reply) -> None:
        """Count a request that succeeded."""
        counts = self._row(reply)
        counts.succeeded += 1
        counts.run_total_s += reply.run_s
        counts.run_high_s = max(counts.run_high_s or 0.0, reply.run_s)

    def failed(self, reply: Reply, now_s: float) -> None:
        """Count a request that failed. now_s: seconds since the epoch."""
        self._row(reply).failed += 1
        self._failures.add(reply, now_s)

    def places(self) -> tuple[PlaceCount, ...]:
        """Counts by place, sorted by name."""
        return tuple(replace(self._places[key]) for key in sorted(self._places))

    def failures(self, now_s: float) -> tuple[FailureGroup, ...]:
        """Groups of failures until now, the most frequent first."""
        return self._failures.groups(now_s)

    @property
    def other_failures(self) -> int:
        """Failures of groups too long ago to be listed."""
        return self._failures.others

    def _row(self, reply: Reply) -> PlaceCount:
        key = RequestPlace(reply.node, reply.pod, reply.device, reply.worker)
        counts = self._places.pop(key, None)
        if counts is None:
            counts = PlaceCount(key)
            if len(self._places) >= PLACES:
                # sorted by their last change, oldest first
                oldest = self._places.pop(next(iter(self._places)))
                self.other_succeeded += oldest.succeeded
                self.other_failed += oldest.failed
        self._places[key] = counts
        return counts

"""Time series of a load, with at most a fixed number of points, which keep all peaks.

Time is divided into bins, of one second at first. When there are too many, each two neighbours
become
one: counts add up, and the lowest and highest second of a bin stay known, as does its longest
duration. Percentiles of a bin come from coarse buckets of 8 % (four of the histogram's buckets),
which can be merged too: they are within 4.1 %.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import NamedTuple

from scaletest.load.durations import DurationHistogram
from scaletest.model import histogram

MOST_BINS = 600
COARSE = 4
MEASURES = ("wait", "run", "overhead", "total")


class Spread(NamedTuple):
    """Durations in one bin, in seconds; None when nothing ended in it."""

    p50_s: float | None
    p95_s: float | None
    high_s: float | None


class SeriesPoint(NamedTuple):
    """One bin of a chart. seq: number of its last second since the load began; ascending."""

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
        coarse: dict[int, int] = {}
        for index, count in times.counts.items():
            coarse[index // COARSE] = coarse.get(index // COARSE, 0) + count
        return cls(coarse, times.high)

    def joined(self, other: Packed) -> Packed:
        """The sum of both."""
        counts = dict(zip(self.indexes, self.counts, strict=True))
        for index, count in zip(other.indexes, other.counts, strict=True):
            counts[index] = counts.get(index, 0) + count
        return Packed(counts, max(self.high, other.high))

    def spread(self) -> Spread:
        """Median, 95th percentile and longest."""
        if not self.indexes:
            return Spread(None, None, None)
        return Spread(self._quantile(0.5), self._quantile(0.95), self.high)

    def _quantile(self, share: float) -> float:
        wanted = max(1, math.ceil(share * sum(self.counts)))
        counted = 0
        for index, count in zip(self.indexes, self.counts, strict=True):
            counted += count
            if counted >= wanted:
                return min(self.high, _middle(index))
        return self.high


def _middle(index: int) -> float:
    """The geometric middle of a coarse bucket, in seconds."""
    return float(histogram.GROWTH ** (COARSE * (index + 0.5))) / 1e6


class Bin:
    """Some seconds of a load: numbers `first` to `last` since it began. `spreads` as MEASURES."""

    __slots__ = ("_point", "failed", "first", "in_flight", "last", "rates", "spreads", "succeeded")

    def __init__(
        self,
        first: int,
        last: int,
        ended: tuple[int, int],
        rates: tuple[int, int],
        in_flight: tuple[int, int],
        spreads: tuple[Packed, ...],
    ) -> None:
        self.first = first
        self.last = last
        self.succeeded, self.failed = ended
        self.rates = rates
        self.in_flight = in_flight
        self.spreads = spreads
        self._point: SeriesPoint | None = None

    def joined(self, later: Bin) -> Bin:
        """This bin and its later neighbour as one."""
        return Bin(
            self.first,
            later.last,
            (self.succeeded + later.succeeded, self.failed + later.failed),
            _outer(self.rates, later.rates),
            _outer(self.in_flight, later.in_flight),
            tuple(mine.joined(its) for mine, its in zip(self.spreads, later.spreads, strict=True)),
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


def _outer(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return min(first[0], second[0]), max(first[1], second[1])

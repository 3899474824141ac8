"""Durations of any number of requests in bounded memory: buckets of 2 %, exact minimum, maximum,
sum.

A percentile read back is within 1 % of the truth (scaletest/model/histogram.py), and lies between
minimum and maximum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scaletest.model import histogram

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


class DurationHistogram:
    """Counts of durations by bucket."""

    __slots__ = ("count", "counts", "high", "low", "total")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.low = math.inf
        self.high = 0.0

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
        for index, count in other.counts.items():
            self.counts[index] = self.counts.get(index, 0) + count
        self.count += other.count
        self.total += other.total
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)

    def copy(self) -> DurationHistogram:
        """An independent copy."""
        copy = DurationHistogram()
        copy.counts = self.counts.copy()
        copy.count, copy.total, copy.low, copy.high = self.count, self.total, self.low, self.high
        return copy

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
        quantiles: dict[str, float | None] = dict.fromkeys(QUANTILES)
        for name, share in QUANTILES.items():
            if self.count >= NEEDED[name]:
                quantiles[name] = self.quantile(share)
        return DurationSummary(self.count, self.low, self.total / self.count, self.high, quantiles)

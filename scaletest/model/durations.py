"""Durations counted by bucket, beside their exact extremes and sum."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from scaletest.model.histogram import bucket, quantile

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
        """Return plain values for JSON; names end with their unit."""
        return {
            "count": self.count,
            "min_s": self.low_s,
            "mean_s": self.mean_s,
            **{f"{name}_s": value for name, value in self.quantiles_s.items()},
            "max_s": self.high_s,
        }


@dataclass(slots=True)
class DurationHistogram:
    """Counts of any number of durations by bucket, beside their exact minimum, maximum and sum."""

    counts: Counter[int] = field(default_factory=Counter)
    count: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        index = bucket(seconds)
        counts = self.counts
        counts[index] = counts.get(index, 0) + 1
        self.count += 1
        self.total += seconds
        if seconds < self.low:
            self.low = seconds
        if seconds > self.high:
            self.high = seconds

    def plus(self, other: DurationHistogram) -> DurationHistogram:
        """Return a new histogram of what both counted."""
        return DurationHistogram(
            self.counts + other.counts,
            self.count + other.count,
            self.total + other.total,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    def quantile(self, name: str) -> float | None:
        """Return one of QUANTILES in seconds; None for too few durations."""
        if self.count < NEEDED[name]:
            return None
        seconds = quantile(self.counts, QUANTILES[name])
        return None if seconds is None else min(self.high, max(self.low, seconds))

    def summary(self) -> DurationSummary:
        """Return count, extremes, mean and the quantiles for which there are enough durations."""
        quantiles = {name: self.quantile(name) for name in QUANTILES}
        if not self.count:
            return DurationSummary(0, None, None, None, quantiles)
        return DurationSummary(self.count, self.low, self.total / self.count, self.high, quantiles)

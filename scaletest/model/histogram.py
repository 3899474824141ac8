"""Geometric buckets for durations, from which each is read back within 1 % of the truth.

Bucket i holds durations of GROWTH**i to GROWTH**(i + 1) microseconds; bucket 0 also holds shorter
ones. The value read back is the geometric middle, sqrt(GROWTH) away from either edge:
sqrt(1.02) - 1 = 0.995 %. Broker, exporter and reports all use these buckets, so that their
histograms add up. Durations are counted beside their exact extremes and sum.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

GROWTH = 1.02
# 30 days, the longest time limit
LONGEST_S = 30 * 86400.0
_LONGEST_US = LONGEST_S * 1e6
LAST_BUCKET = int(math.log(_LONGEST_US) / math.log(GROWTH))
_SCALE = 1.0 / math.log(GROWTH)
# A q-quantile needs at least ln 0.05 / ln q values: with fewer, the chance that all of them lie
# below it is more than 5 %.
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
NEEDED = {name: math.ceil(math.log(0.05) / math.log(share)) for name, share in QUANTILES.items()}


def bucket_of(seconds: float) -> int:
    """Return the bucket of a duration in seconds."""
    # called three times for each request, so without a call of min
    micros = seconds * 1e6
    if micros < 1.0:
        return 0
    return LAST_BUCKET if micros >= _LONGEST_US else int(math.log(micros) * _SCALE)


def bucket_middle_s(index: float) -> float:
    """Return the duration in seconds that a bucket stands for: its geometric middle."""
    return float(GROWTH ** (index + 0.5)) / 1e6


def histogram_quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the duration in seconds below which `share` (0 to 1) of the counts lie, or None."""
    if not any(counts.values()):
        return None
    buckets = sorted(counts)
    sums = list(accumulate(counts[bucket] for bucket in buckets))
    rank = max(1, math.ceil(share * sums[-1]))
    return bucket_middle_s(buckets[bisect_left(sums, rank)])


@cache
def _middles() -> tuple[float, ...]:
    return tuple(map(bucket_middle_s, range(LAST_BUCKET + 1)))


def cumulative_counts(
    counts: Mapping[int, int], bounds: tuple[float, ...]
) -> list[tuple[str, float]]:
    """Return cumulative counts by upper bound in seconds, as Prometheus wants them.

    A bucket always belongs to the first bound that its middle does not exceed, so that no count
    ever moves from one bound to another.
    """
    buckets = _existing_buckets(counts)
    sums = [0, *accumulate(counts[bucket] for bucket in buckets)]
    rows = []
    for bound in bounds:
        first_beyond = bisect_right(_middles(), bound)
        rows.append((repr(bound), float(sums[bisect_left(buckets, first_beyond)])))
    return [*rows, ("+Inf", float(sums[-1]))]


def total_s(counts: Mapping[int, int]) -> float:
    """Return the sum of all durations in seconds, within 1 %.

    It is rounded once, at its end: otherwise it could become smaller when a count grows.
    """
    middles = _middles()
    return math.fsum(counts[bucket] * middles[bucket] for bucket in _existing_buckets(counts))


def _existing_buckets(counts: Mapping[int, int]) -> list[int]:
    """Return the buckets in their order, without those that foreign data made up."""
    return [bucket for bucket in sorted(counts) if 0 <= bucket <= LAST_BUCKET]


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
        self.counts[bucket_of(seconds)] += 1
        self.count += 1
        self.total += seconds
        self.low = min(self.low, seconds)
        self.high = max(self.high, seconds)

    def plus(self, other: "DurationHistogram") -> "DurationHistogram":
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
        seconds = histogram_quantile(self.counts, QUANTILES[name])
        return None if seconds is None else min(self.high, max(self.low, seconds))

    def summary(self) -> DurationSummary:
        """Return count, extremes, mean and the quantiles for which there are enough durations."""
        return DurationSummary(
            count=self.count,
            low_s=self.low if self.count else None,
            mean_s=self.total / self.count if self.count else None,
            high_s=self.high if self.count else None,
            quantiles_s={name: self.quantile(name) for name in QUANTILES},
        )

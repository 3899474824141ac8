"""Percentiles with exact intervals by order statistics.

How many of n independent values lie below the true p-quantile is binomial (n, p), whatever their
distribution. So the l-th and the u-th smallest value enclose it with probability P(l <= B < u). The
tails are 2.5 % each where the sample allows; where even the largest value leaves more than that
above it, the lower end takes what is left of the 5 %.

A percentile is given only where the extreme value lies beyond it with 95 %: n >= ln(0.05) / ln(p),
which is 299 for p99 and 2995 for p99.9. Values that follow each other closely (waiting times in a
queue) carry less than n independent ones would, so their intervals are too narrow. Percentiles of
groups must never be averaged: join the values.
"""

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Annotated

from scaletest.model.declared import INNER, Count
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate

# The chance that an interval misses the percentile.
_MISS_CHANCE = 0.05
# The chance that not even the extreme value lies beyond a percentile that is given.
_NONE_BEYOND_CHANCE = 0.05
# Masses of the binomial distribution below this are left out: beside 0.05 they are nothing.
_LEAST_MASS = 1e-18


@dataclass(frozen=True, slots=True)
class Percentile(Written):
    """A p-quantile; low and high are None without enough values for an interval."""

    description = "null when there are too few values"

    p: Annotated[float, INNER]
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Distribution(Written):
    """How values spread, in their own unit; None where they are too few for a percentile."""

    count: Count
    mean: float | None
    min: float | None
    p50: Annotated[Percentile | None, "null when there are too few values"]
    p90: Annotated[Percentile | None, "null when there are too few values"]
    p95: Annotated[Percentile | None, "null when there are too few values"]
    p99: Annotated[Percentile | None, "null when there are too few values"]
    p99_9: Annotated[Percentile | None, "null when there are too few values"]
    max: float | None


def summarise_samples(values: Iterable[float]) -> Distribution:
    """Return count, mean, extremes and percentiles of values in any order."""
    ordered = sorted(values)
    return Distribution(
        count=len(ordered),
        mean=statistics.fmean(ordered) if ordered else None,
        min=next(iter(ordered), None),
        p50=find_percentile(ordered, 0.5),
        p90=find_percentile(ordered, 0.9),
        p95=find_percentile(ordered, 0.95),
        p99=find_percentile(ordered, 0.99),
        p99_9=find_percentile(ordered, 0.999),
        max=next(reversed(ordered), None),
    )


def find_percentile(ordered: Sequence[float], p: float) -> Percentile | None:
    """Return the p-quantile of ascending values with its 95 % interval, in their unit.

    None for fewer than `samples_needed(p)` values. 0 < p < 1.
    """
    count = len(ordered)
    if count < samples_needed(p):
        return None
    low, high = None, None
    ranks = _interval_ranks(count, p)
    if ranks:
        low, high = (ordered[rank - 1] for rank in ranks)
    return Percentile(p, quantile(ordered, p), low, high)


def samples_needed(p: float) -> int:
    """Return the fewest values whose extreme lies beyond the p-quantile with 95 %; 0 < p < 1."""
    return math.ceil(math.log(_NONE_BEYOND_CHANCE) / math.log(max(p, 1.0 - p)))


def quantile(ordered: Sequence[float], p: float) -> float:
    """Return the p-quantile of ascending values, at least one; 0 <= p <= 1.

    It is linear around rank (n - 1) p: type 7 of Hyndman and Fan (1996), numpy's default.
    """
    rank = (len(ordered) - 1) * p
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


@lru_cache(maxsize=1024)
def _interval_ranks(count: int, p: float) -> tuple[int, int] | None:
    """Return ranks, counted from 1, of the ends of the 95 % interval; None when there are none."""
    first, masses = binomial_masses(count, p)
    # the upper end is the lower one of the failures, counted from the other side
    first_failures = count - first - len(masses) + 1
    mirrored = masses[::-1]
    low = _lower_rank(first, masses, _MISS_CHANCE / 2)
    high = count + 1 - _lower_rank(first_failures, mirrored, _MISS_CHANCE / 2)
    # where an extreme value leaves more than its tail beyond it, the other end takes what is left
    if high > count:
        high, low = count, _lower_rank(first, masses, _MISS_CHANCE - p**count)
    elif low < 1:
        tail = _MISS_CHANCE - (1 - p) ** count
        low, high = 1, count + 1 - _lower_rank(first_failures, mirrored, tail)
    return (low, high) if 1 <= low < high <= count else None


def _lower_rank(first: int, masses: Sequence[float], tail: float) -> int:
    """Return the largest l with P(B < l) <= `tail`. masses: of B = first, first + 1, ..."""
    return first + bisect_right(list(accumulate(masses)), tail)


def binomial_masses(count: int, p: float) -> tuple[int, list[float]]:
    """Return the least number of successes whose mass counts, and the masses from there on.

    Exact for every n by recurrence from the mode: 9 standard deviations on each side, 2 ms for a
    million values.
    """
    mode = min(int((count + 1) * p), count)
    # the mass of the mode, by logarithms: the binomial coefficient may exceed every float
    log = math.lgamma(count + 1) - math.lgamma(mode + 1) - math.lgamma(count - mode + 1)
    peak = math.exp(log + mode * math.log(p) + (count - mode) * math.log1p(-p))
    odds = p / (1 - p)
    upward, downward = [peak], []
    k, mass = mode, peak
    while k < count and mass > _LEAST_MASS:
        mass *= (count - k) / (k + 1) * odds
        k += 1
        upward.append(mass)
    k, mass = mode, peak
    while k > 0 and mass > _LEAST_MASS:
        mass *= k / (count - k + 1) / odds
        k -= 1
        downward.append(mass)
    return k, [*reversed(downward), *upward]


def estimate_from_percentile(percentile: Percentile) -> Estimate:
    """Return a percentile of values >= 0, such as durations, as an estimate.

    Where too few values leave an end of the interval unknown, it is 0 or infinite.
    """
    high = math.inf if percentile.high is None else percentile.high
    return Estimate(value=percentile.value, low=percentile.low or 0.0, high=high)

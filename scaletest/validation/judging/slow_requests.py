"""Rare slow requests: their number, their part in the mean, and how well both are known.

A request is slow that takes more than three times as long as its worker's requests usually do
(their median). The mean time between completions is then

    E = b (1 + p s)    b: mean of the usual ones, p: share of slow ones, s: their added time, in
                       units of b

A mean of few values says little of a rare event, and its standard error even less: where one
request in 50 takes 20 times as long, half of all steps of 35 requests hold none of them and look
precise. So b has the interval of a mean, and p that of a count: Wilson's score interval with
continuity correction (Newcombe 1998, Statistics in Medicine 17, 857, method 4), which is close to
the exact one. Steps that are compared share s, unless the slow requests of one are significantly
longer (Mann and Whitney, 1 %): then each step has its own.

The two intervals of a sum are joined by the method of variance estimates recovery (Zou and Donner
2008, Statistics in Medicine 27, 1693), which needs no symmetry.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Count
from scaletest.stats.completions import Completions
from scaletest.stats.estimate import Estimate
from scaletest.stats.rank_test import mann_whitney
from scaletest.stats.student import t95
from scaletest.validation.judging.throughput import error_of_mean

# Slow requests of two steps differ when chance makes such a difference in one of a hundred cases.
DIFFERENT = 0.01
_NORMAL = t95(math.inf)


@dataclass(frozen=True, slots=True)
class Tail:
    """The slow requests of one step, or of parts of it."""

    usual: int  # cycles that were not slow
    usual_s: float  # their mean length
    error: float  # relative standard error of that mean
    excess: tuple[float, ...]  # by how much each slow cycle was longer, in units of usual_s

    @property
    def slow(
        self,
    ) -> Annotated[Count, "requests that took more than three times as long as usual"]:
        """How many were slow."""
        return len(self.excess)

    @property
    def count(self) -> int:
        """How many there were in all."""
        return self.usual + self.slow


def find_slow(completions: Completions) -> Tail:
    """Return the slow requests among these completions."""
    mean = completions.mean_usual_cycle_s
    if mean <= 0:
        return Tail(0, 0.0, math.inf, ())
    excess: list[float] = []
    for worker, limit in completions.slow_limits.items():
        excess += [cycle / mean - 1.0 for cycle in completions.cycles[worker] if cycle > limit]
    return Tail(
        usual=sum(map(len, completions.usual_cycles)),
        usual_s=mean,
        error=error_of_mean(completions.usual_cycles) / mean,
        excess=tuple(excess),
    )


def join_tails(tails: Sequence[Tail]) -> Tail:
    """Return the slow requests of several parts of one step together."""
    count = sum(part.usual for part in tails)
    if not count:
        return Tail(0, 0.0, math.inf, ())
    mean = sum(part.usual * part.usual_s for part in tails) / count
    errors = (part.usual * part.usual_s * part.error for part in tails if part.usual)
    excess = tuple(itertools.chain.from_iterable(part.excess for part in tails))
    return Tail(count, mean, math.hypot(*errors) / (count * mean), excess)


def slowdowns(first: Tail, second: Tail, z: float) -> tuple[Estimate, Estimate]:
    """Return by how much slow requests lengthen the means of two steps: logarithms of 1 + p s.

    One of them at least has slow requests. z: quantile of the normal distribution for each bound.
    """
    excess = first.excess + second.excess
    test = mann_whitney(first.excess, second.excess)
    differ = test is not None and test.p < DIFFERENT
    return (
        _slowdown(first, z, first.excess if differ else excess, size_error=differ),
        _slowdown(second, z, second.excess if differ else excess, size_error=differ),
    )


def _slowdown(tail: Tail, z: float, excess: Sequence[float], *, size_error: bool) -> Estimate:
    """Return the slowdown of one step. size_error: widen by the error of the mean excess."""
    size = statistics.fmean(excess)
    share = tail.slow / tail.count
    low, high = share_bounds(tail.slow, tail.count, z)
    log_slowdown = math.log1p(share * size)
    below = log_slowdown - math.log1p(low * size)
    above = math.log1p(high * size) - log_slowdown
    if size_error and len(excess) > 1:
        part = share * size / (1.0 + share * size)
        error = z * part * statistics.stdev(excess) / (size * math.sqrt(len(excess)))
        below = math.hypot(below, error)
        above = math.hypot(above, error)
    return Estimate(log_slowdown, log_slowdown - below, log_slowdown + above)


def share_bounds(count: int, total: int, z: float) -> tuple[float, float]:
    """Return the bounds of a share, `count` in 1 or more: Wilson's with continuity correction."""
    share, square = count / total, z * z
    below = 4.0 * share * (total * (1.0 - share) + 1.0) + square - 2.0 - 1.0 / total
    above = 4.0 * share * (total * (1.0 - share) - 1.0) + square + 2.0 - 1.0 / total
    middle, width = 2.0 * total * share + square, 2.0 * (total + square)
    low = (middle - 1.0 - z * math.sqrt(max(0.0, below))) / width if count else 0.0
    high = (middle + 1.0 + z * math.sqrt(max(0.0, above))) / width if count < total else 1.0
    return max(0.0, low), min(1.0, high)

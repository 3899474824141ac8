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
2008, Statistics in Medicine 27, 1693), which needs no symmetry. A kind of request that no step has
shown cannot be excluded: `unseen_share` says how frequent it may be.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Count
from scaletest.stats.completions import Ends, cycles
from scaletest.stats.estimate import Estimate
from scaletest.stats.rank_test import mann_whitney
from scaletest.stats.student import t95
from scaletest.validation.judging.throughput import error_of_mean

SLOW = 3.0
# A worker with fewer cycles borrows the median of all workers.
OWN_MEDIAN = 5
# Slow requests of two steps differ when chance makes such a difference in one of a hundred cases.
DIFFERENT = 0.01
# A cycle of more usual requests than this was a standstill; a list of them would take memory.
MOST_FILLED = 10_000
_NORMAL = t95(math.inf)


@dataclass(frozen=True, slots=True)
class Tail:
    """The slow requests of one step, or of parts of it.

    usual: cycles that were not slow. usual_s: their mean length in s. error: relative standard
    error of that mean. excess: of every slow cycle how much longer it was than usual_s, in units of
    usual_s.
    """

    usual: int
    usual_s: float
    error: float
    excess: tuple[float, ...]

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

    @property
    def share(self) -> float:
        """The part that was slow."""
        return self.slow / max(1, self.count)

    def unseen_share(self) -> float:
        """The largest share of a sort of request that did not occur, wrong in 5 % of cases."""
        return 1.0 - math.pow(0.05, 1.0 / self.count) if self.count else 1.0


def tail(ends: Ends) -> Tail:
    """The slow requests among these completions."""
    limits = _limits(ends)
    usual_cycles: list[list[float]] = []
    slow: list[float] = []
    for worker, limit in limits.items():
        own = cycles(ends[worker])
        usual_cycles.append([cycle for cycle in own if cycle <= limit])
        slow += [cycle for cycle in own if cycle > limit]
    flat = list(itertools.chain.from_iterable(usual_cycles))
    mean = statistics.fmean(flat) if flat else 0.0
    if mean <= 0:
        return Tail(0, 0.0, math.inf, ())
    return Tail(
        len(flat),
        mean,
        error_of_mean(usual_cycles) / mean,
        tuple(cycle / mean - 1.0 for cycle in slow),
    )


def usual(ends: Ends) -> Ends:
    """The completions as if slow cycles had been usual ones.

    For tests whether a step changes along its time. Where nothing is slow these are `ends`.
    """
    limits = _limits(ends)
    if not any(max(cycles(ends[worker])) > limit for worker, limit in limits.items()):
        return ends
    usual_s = tail(ends).usual_s
    return {worker: _filled(ends[worker], limits.get(worker, math.inf), usual_s) for worker in ends}


def _filled(times: Sequence[float], limit: float, usual_s: float) -> list[float]:
    """Completions of one worker with usual ones, evenly spaced, in the place of each slow cycle."""
    filled = list(times[:1])
    for cycle, end in zip(cycles(times), times[1:], strict=True):
        slow = cycle > limit and usual_s > 0
        count = round(min(MOST_FILLED, max(1.0, cycle / usual_s))) if slow else 1
        begin = filled[-1]
        filled += [begin + (end - begin) * index / count for index in range(1, count)]
        filled.append(end)
    return filled


def _limits(ends: Ends) -> dict[str, float]:
    """The length in s from which a cycle is slow, of every worker that has one."""
    series = {worker: cycles(times) for worker, times in ends.items() if len(times) > 1}
    if not series:
        return {}
    median = statistics.median(itertools.chain.from_iterable(series.values()))
    limits = {}
    for worker, own in series.items():
        own_median = statistics.median(own) if len(own) >= OWN_MEDIAN else median
        limits[worker] = SLOW * own_median
    return limits


def joined_tails(tails: Sequence[Tail]) -> Tail:
    """The slow requests of several parts of one step together."""
    count = sum(part.usual for part in tails)
    if not count:
        return Tail(0, 0.0, math.inf, ())
    mean = sum(part.usual * part.usual_s for part in tails) / count
    errors = (part.usual * part.usual_s * part.error for part in tails if part.usual)
    excess = tuple(itertools.chain.from_iterable(part.excess for part in tails))
    return Tail(count, mean, math.hypot(*errors) / (count * mean), excess)


def slowdowns(first: Tail, second: Tail, z: float) -> tuple[Estimate, Estimate]:
    """By how much the slow requests of two steps lengthen their means: logarithms of 1 + p s, with
    bounds.

    z: quantile of the normal distribution for each bound.
    """
    sizes = first.excess + second.excess
    if not sizes:
        return Estimate(0.0, 0.0, 0.0), Estimate(0.0, 0.0, 0.0)
    test = mann_whitney(first.excess, second.excess)
    if test and test.p < DIFFERENT:
        return _slowdown(first, first.excess, z, own=True), _slowdown(
            second, second.excess, z, own=True
        )
    return _slowdown(first, sizes, z), _slowdown(second, sizes, z)


def _slowdown(tail_: Tail, sizes: Sequence[float], z: float, own: bool = False) -> Estimate:
    size = statistics.fmean(sizes)
    low, high = share_bounds(tail_.slow, tail_.count, z)
    log_slowdown = math.log1p(tail_.share * size)
    below, above = log_slowdown - math.log1p(low * size), math.log1p(high * size) - log_slowdown
    if own and len(sizes) > 1:
        part = tail_.share * size / (1.0 + tail_.share * size)
        size_error = z * part * statistics.stdev(sizes) / (size * math.sqrt(len(sizes)))
        below, above = math.hypot(below, size_error), math.hypot(above, size_error)
    return Estimate(log_slowdown, log_slowdown - below, log_slowdown + above)


def share_bounds(count: int, total: int, z: float) -> tuple[float, float]:
    """Bounds of a share, from `count` in `total`: Wilson's with continuity correction."""
    if total <= 0:
        return 0.0, 1.0
    share, square = count / total, z * z
    below = 4.0 * share * (total * (1.0 - share) + 1.0) + square - 2.0 - 1.0 / total
    above = 4.0 * share * (total * (1.0 - share) - 1.0) + square + 2.0 - 1.0 / total
    middle, width = 2.0 * total * share + square, 2.0 * (total + square)
    low = (middle - 1.0 - z * math.sqrt(max(0.0, below))) / width if count else 0.0
    high = (middle + 1.0 + z * math.sqrt(max(0.0, above))) / width if count < total else 1.0
    return max(0.0, low), min(1.0, high)

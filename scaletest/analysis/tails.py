"""Rare slow requests: how many there are, how much they add to the mean, and what of that is known.

A request is slow that takes more than three times as long as its worker's requests usually do (their median). The
mean time between completions is then

    E = b (1 + p s)    b: mean of the usual ones, p: share of slow ones, s: how much longer they are, in units of b

A mean of few values says little of a rare event, and its standard error says even less: where one request in 50 takes
20 times as long, half of all steps of 35 requests hold none of them and look precise. So b has the interval of a mean,
and p that of a count: Wilson's score interval with continuity correction (Newcombe 1998, Statistics in Medicine 17,
857, method 4), which is close to the exact one. Steps that are compared share s, unless the slow requests of one are
significantly longer (Mann and Whitney, 1 %): then each step has its own.

The two intervals of a sum are joined by the method of variance estimates recovery (Zou and Donner 2008, Statistics in
Medicine 27, 1693), which needs no symmetry. What no step has seen cannot be excluded: `unseen_share` says how frequent
it may be.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.analysis.completions import Ends
from scaletest.analysis.rank_test import mann_whitney
from scaletest.analysis.student_t import t95
from scaletest.analysis.throughput import cycles, error_of_mean

SLOW = 3.0
# A worker with fewer cycles borrows the median of all workers.
OWN_MEDIAN = 5
# Slow requests differ between two steps when chance does so in one of a hundred.
DIFFERENT = 0.01
# A worker that stood still for longer than so many usual requests has not gone on as usual, and no list holds them all.
MOST_FILLED = 10_000
_NORMAL = t95(math.inf)


@dataclass(frozen=True, slots=True)
class Tail:
    """The slow requests of one step, or of parts of it.

    usual: cycles that were not slow. usual_s: their mean length in s. error: relative standard error of that mean.
    excess: of every slow cycle how much longer it was than usual_s, in units of usual_s.
    """

    usual: int
    usual_s: float
    error: float
    excess: tuple[float, ...]

    @property
    def slow(self) -> int:
        """How many were slow."""
        return len(self.excess)

    @property
    def count(self) -> int:
        """How many there were in all."""
        return self.usual + self.slow

    @property
    def share(self) -> float:
        """The part that was slow."""
        return self.slow / self.count if self.count else 0.0

    def unseen_share(self, error: float = 0.05) -> float:
        """The largest share of requests of a sort that none of these was, wrong in `error` of all cases."""
        return 1.0 - error ** (1.0 / self.count) if self.count else 1.0


def tail(ends: Ends) -> Tail:
    """The slow requests among these completions."""
    limits = _limits(ends)
    series = {worker: cycles(ends[worker]) for worker in limits}
    fast = [[cycle for cycle in own if cycle <= limits[worker]] for worker, own in series.items()]
    slow = [cycle for worker, own in series.items() for cycle in own if cycle > limits[worker]]
    flat = [cycle for own in fast for cycle in own]
    mean = statistics.fmean(flat) if flat else 0.0
    if mean <= 0:
        return Tail(0, 0.0, math.inf, ())
    return Tail(len(flat), mean, error_of_mean(fast) / mean, tuple(cycle / mean - 1.0 for cycle in slow))


def usual(ends: Ends) -> Ends:
    """The completions as if workers had gone on as usual in slow cycles: for what looks at the course of a step."""
    limits = _limits(ends)
    if not any(cycle > limits[worker] for worker in limits for cycle in cycles(ends[worker])):
        return ends
    usual_s = tail(ends).usual_s
    return {worker: _filled(ends[worker], limits.get(worker, math.inf), usual_s) for worker in ends}


def _filled(times: Sequence[float], limit: float, usual_s: float) -> list[float]:
    filled = list(times[:1])
    for cycle, end in zip(cycles(times), times[1:], strict=True):
        count = _filling(cycle, usual_s) if cycle > limit and usual_s > 0 else 1
        begin = filled[-1]
        filled += [begin + (end - begin) * index / count for index in range(1, count)]
        filled.append(end)
    return filled


def _filling(cycle: float, usual_s: float) -> int:
    """How many usual requests take the place of a slow one."""
    return round(min(MOST_FILLED, max(1.0, cycle / usual_s)))


def _limits(ends: Ends) -> dict[str, float]:
    """Beyond how many seconds a cycle is slow, of every worker that has one."""
    series = {worker: cycles(times) for worker, times in ends.items() if len(times) > 1}
    if not series:
        return {}
    middle = statistics.median(cycle for own in series.values() for cycle in own)
    return {
        worker: SLOW * (statistics.median(own) if len(own) >= OWN_MEDIAN else middle) for worker, own in series.items()
    }


def joined(tails: Sequence[Tail]) -> Tail:
    """Several parts of one step as one."""
    count = sum(one.usual for one in tails)
    if not count:
        return Tail(0, 0.0, math.inf, ())
    mean = sum(one.usual * one.usual_s for one in tails) / count
    error = math.hypot(*(one.usual * one.usual_s * one.error for one in tails if one.usual)) / (count * mean)
    return Tail(count, mean, error, tuple(value for one in tails for value in one.excess))


@dataclass(frozen=True, slots=True)
class Slowdown:
    """By how much slow requests lengthen a step's mean: the logarithm of 1 + p s, and its bounds."""

    value: float
    low: float
    high: float


def slowdowns(first: Tail, second: Tail, z: float) -> tuple[Slowdown, Slowdown]:
    """What the slow requests of two steps do to their means. z: quantile of the normal distribution of each bound."""
    sizes = first.excess + second.excess
    if not sizes:
        return Slowdown(0.0, 0.0, 0.0), Slowdown(0.0, 0.0, 0.0)
    test = mann_whitney(first.excess, second.excess)
    if test and test.p < DIFFERENT:
        return _slowdown(first, first.excess, z, own=True), _slowdown(second, second.excess, z, own=True)
    return _slowdown(first, sizes, z), _slowdown(second, sizes, z)


def _slowdown(tail_: Tail, sizes: Sequence[float], z: float, own: bool = False) -> Slowdown:
    size = statistics.fmean(sizes)
    low, high = share_bounds(tail_.slow, tail_.count, z)
    value = math.log1p(tail_.share * size)
    below, above = value - math.log1p(low * size), math.log1p(high * size) - value
    if own and len(sizes) > 1:
        part = tail_.share * size / (1.0 + tail_.share * size)
        size_error = z * part * statistics.stdev(sizes) / (size * math.sqrt(len(sizes)))
        below, above = math.hypot(below, size_error), math.hypot(above, size_error)
    return Slowdown(value, value - below, value + above)


def share_bounds(count: int, total: int, z: float) -> tuple[float, float]:
    """Bounds of a share of which `count` in `total` were seen: Wilson's with continuity correction."""
    if total <= 0:
        return 0.0, 1.0
    share, square = count / total, z * z
    below = 4.0 * share * (total * (1.0 - share) + 1.0) + square - 2.0 - 1.0 / total
    above = 4.0 * share * (total * (1.0 - share) - 1.0) + square + 2.0 - 1.0 / total
    middle, width = 2.0 * total * share + square, 2.0 * (total + square)
    low = (middle - 1.0 - z * math.sqrt(max(0.0, below))) / width if count else 0.0
    high = (middle + 1.0 + z * math.sqrt(max(0.0, above))) / width if count < total else 1.0
    return max(0.0, low), min(1.0, high)

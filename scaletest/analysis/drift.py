"""Whether a step stayed the same while it was measured: trend, shift, dips.

trend: slope of the throughput over time, for the question whether to go on measuring.
shift: the largest standardised cumulative sum of batch means (CUSUM), for heat, leaks, noisy neighbours.
dips: batches far from the median in units of the median absolute deviation, for short breaks that CUSUM misses.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.analysis.series import Ends, rates, span

BATCHES = 20
# The 95 % and the 99 % point of max |S| / (s sqrt(n)) for 20 independent batches, simulated (tests/unit).
CUSUM_5, CUSUM_1 = 1.19, 1.38
# Beyond this a shift is no nuisance but another measurement.
MOST_SHIFT = 0.03
DIP_DEVIATIONS = 5.0
DIP_EFFECT = 0.10
TREND_EFFECT = 0.02


@dataclass(frozen=True, slots=True)
class Drift:
    """shift: relative change of throughput at the change point, 0 when there is no significant one.

    shift_at_s: when, seconds after the measuring began. certain: at 1 % significance instead of 5 %.
    dips: (seconds after the beginning, relative depth) of single batches far below the rest.
    """

    shift: float = 0.0
    shift_at_s: float = 0.0
    certain: bool = False
    dips: tuple[tuple[float, float], ...] = ()

    @property
    def unsteady(self) -> bool:
        """Whether the step must not be judged: a change of more than 3 % that chance does in 1 of 100."""
        return self.certain and abs(self.shift) > MOST_SHIFT


def drift(ends: Ends) -> Drift:
    """What happened within a step; nothing when there are less than two completions a worker and batch."""
    first, last = span(ends)
    if last <= first or min(map(len, ends.values())) < 2 * BATCHES:
        return Drift()
    batches = rates(ends, first, last, BATCHES)
    width = (last - first) / BATCHES
    statistic, at = cusum(batches)
    dips = tuple((index * width, depth) for index, depth in _dips(batches))
    if statistic <= CUSUM_5:
        return Drift(dips=dips)
    before, behind = statistics.fmean(batches[:at]), statistics.fmean(batches[at:])
    return Drift(behind / before - 1 if before > 0 else 0.0, at * width, statistic > CUSUM_1, dips)


def cusum(batches: Sequence[float]) -> tuple[float, int]:
    """max |S(k)| / (s sqrt(n)), S(k) the sum of the first k deviations from the mean; and that k."""
    mean, spread = statistics.fmean(batches), statistics.stdev(batches)
    if spread <= 1e-9 * abs(mean):
        return 0.0, 0
    total, best, at = 0.0, 0.0, 0
    for index, value in enumerate(batches[:-1], start=1):
        total += value - mean
        if abs(total) > best:
            best, at = abs(total), index
    return best / (spread * math.sqrt(len(batches))), at


def rising(ends: Ends, significant: float = 2.0, effect: float = TREND_EFFECT) -> bool:
    """Whether throughput still changes along the time so far: by over `effect` from end to end, and beyond chance.

    A straight line through 4 to 20 parts of the time; chance is excluded at |t| > `significant`. A false alarm only
    costs time.
    """
    first, last = span(ends)
    if last <= first:
        return True
    count = max(4, min(BATCHES, sum(map(len, ends.values())) // 5))
    batches = rates(ends, first, last, count)
    centre, mean = (count - 1) / 2, statistics.fmean(batches)
    spread = sum((index - centre) ** 2 for index in range(count))
    slope = sum((index - centre) * (value - mean) for index, value in enumerate(batches)) / spread
    left = sum((value - mean - slope * (index - centre)) ** 2 for index, value in enumerate(batches))
    error = math.sqrt(left / (count - 2) / spread)
    return abs(slope) * (count - 1) > effect * mean and abs(slope) > significant * error


def _dips(batches: Sequence[float]) -> list[tuple[int, float]]:
    middle = statistics.median(batches)
    deviation = 1.4826 * statistics.median(abs(value - middle) for value in batches)
    limit = max(DIP_DEVIATIONS * deviation, DIP_EFFECT * middle)
    return [(index, value / middle - 1) for index, value in enumerate(batches) if middle - value > limit]

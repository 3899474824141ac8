"""Whether a step stayed the same while it was measured: trend, shift, dips.

trend: slope of the throughput over time, for the question whether to go on measuring.
shift: the largest standardised cumulative sum of batch means (CUSUM), for heat, leaks, noisy
neighbours.
dips: batches far from the median in units of the median absolute deviation, for short breaks that
CUSUM misses.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scaletest.analysis.completions import Ends, rates, span
from scaletest.analysis.student_t import t_quantile

BATCHES = 20
# 95 % and 99 % points of max |S| / (s sqrt(n)) for 20 independent batches, simulated in tests/unit.
CUSUM_5, CUSUM_1 = 1.19, 1.38
# A step with a larger relative shift must not be judged.
MOST_SHIFT = 0.03
HALVES_DIFFER = 2.63
# A smaller relative shift is not reported, however certain it is.
LEAST_SHIFT = 0.0005
DIP_DEVIATIONS = 5.0
DIP_EFFECT = 0.10
# A line through a step: it may change, or surely does.
TREND_EFFECT, MAY_BE = 0.02, 2.0
SURE_EFFECT, SURE_ERROR = 0.05, 0.001


@dataclass(frozen=True, slots=True)
class Drift:
    """shift: relative change of throughput at the change point, 0 when there is no significant one.

    shift_at_s: when, seconds after the warm-up. certain: at 1 % significance instead of 5 %.
    dips: (seconds after the warm-up, relative depth) of single batches far below the rest.
    """

    shift: float = 0.0
    shift_at_s: float = 0.0
    certain: bool = False
    dips: tuple[tuple[float, float], ...] = ()

    @property
    def unsteady(self) -> bool:
        """Whether the step must not be judged: it changed by over 3 %, by chance in 1 of 100."""
        return self.certain and abs(self.shift) > MOST_SHIFT


def drift(ends: Ends, per_s: float = 0.0) -> Drift:
    """The changes within a step; none with less than two completions a worker and batch.

    per_s: the trend of the whole run, see `machine_trend`, which is taken out before.
    """
    first, last = span(ends)
    if last <= first or min(map(len, ends.values())) < 2 * BATCHES:
        return Drift()
    width = (last - first) / BATCHES
    batches = _flat(rates(ends, first, last, BATCHES), width, per_s)
    statistic, at = cusum(batches)
    dips = tuple((index * width, depth) for index, depth in _dips(batches))
    if statistic <= CUSUM_5:
        return Drift(dips=dips)
    before, behind = statistics.fmean(batches[:at]), statistics.fmean(batches[at:])
    change = 0.0
    if before > 0:
        change = behind / before - 1
    if abs(change) < LEAST_SHIFT:
        return Drift(dips=dips)
    return Drift(change, at * width, statistic > CUSUM_1, dips)


def beyond_noise(drift_: Drift, relative: float) -> Drift:
    """The drift, certain only where the correlation of requests does not explain it.

    relative: half-width of the 95 % interval over the throughput. The means of two halves differ by
    twice the standard error of the whole, so a change that chance makes in one of a hundred cases
    is 2 x 2.576 / 1.96 of it. A step that is measured again on the way down needs no more: a change
    shows there, and here in the interval.
    """
    explained = abs(drift_.shift) <= HALVES_DIFFER * relative
    return replace(drift_, certain=drift_.certain and not explained)


def cusum(batches: Sequence[float]) -> tuple[float, int]:
    """max |S(k)| / (s sqrt(n)) and its k; S(k): sum of the first k deviations from the mean."""
    mean, spread = statistics.fmean(batches), statistics.stdev(batches)
    if spread <= 1e-9 * abs(mean):
        return 0.0, 0
    total, best, at = 0.0, 0.0, 0
    for index, rate in enumerate(batches[:-1], start=1):
        total += rate - mean
        if abs(total) > best:
            best, at = abs(total), index
    return best / (spread * math.sqrt(len(batches))), at


def rising(ends: Ends, effect: float = TREND_EFFECT, t: float = MAY_BE) -> bool:
    """Whether throughput may still change along the time so far: by over `effect` from end to end
    at |t| > `t`.

    A false alarm only costs time.
    """
    line = _line(ends)
    return line is None or (line.effect > effect and line.t > t)


def surely_rising(ends: Ends, per_s: float = 0.0) -> bool:
    """Whether throughput changes for certain: by over 5 % from end to end, by chance once in a
    thousand times.

    per_s: the trend of the whole run, which is taken out before.
    """
    line = _line(ends, per_s)
    if line is None:
        return True
    limit = t_quantile(1.0 - SURE_ERROR / 2.0, line.freedom)
    return line.effect > SURE_EFFECT and line.t > limit


@dataclass(frozen=True, slots=True)
class _Line:
    """A straight line through the throughput. effect: change from end to end over the mean; t:
    slope over its error.
    """

    effect: float
    t: float
    freedom: int


def _line(ends: Ends, per_s: float = 0.0) -> _Line | None:
    """The line through 4 to 20 parts of the time; None where there is no time."""
    first, last = span(ends)
    if last <= first:
        return None
    count = max(4, min(BATCHES, sum(map(len, ends.values())) // 5))
    batches = _flat(rates(ends, first, last, count), (last - first) / count, per_s)
    centre, mean = (count - 1) / 2, statistics.fmean(batches)
    spread = sum((index - centre) ** 2 for index in range(count))
    slope = sum((index - centre) * (rate - mean) for index, rate in enumerate(batches)) / spread
    left = sum((rate - mean - slope * (index - centre)) ** 2 for index, rate in enumerate(batches))
    error = math.sqrt(left / (count - 2) / spread)
    effect = math.inf
    if mean > 0:
        effect = abs(slope) * (count - 1) / mean
    t = math.inf
    if error > 0:
        t = abs(slope) / error
    return _Line(effect, t, count - 2)


def _flat(batches: Sequence[float], width: float, per_s: float) -> list[float]:
    """Batches of `width` seconds without a steady relative change per second."""
    return [rate * math.exp(-per_s * index * width) for index, rate in enumerate(batches)]


def _dips(batches: Sequence[float]) -> list[tuple[int, float]]:
    middle = statistics.median(batches)
    deviation = 1.4826 * statistics.median(abs(rate - middle) for rate in batches)
    limit = max(DIP_DEVIATIONS * deviation, DIP_EFFECT * middle)
    return [
        (index, rate / middle - 1) for index, rate in enumerate(batches) if middle - rate > limit
    ]

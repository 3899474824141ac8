"""Tests whether a step stayed the same while it was measured.

line: slope of the throughput over time, for the question whether to go on measuring.
shift: the largest standardised cumulative sum of batch means (CUSUM), for heat, leaks, noisy
neighbours.
dips: batches far from the median in units of the median absolute deviation, for short breaks that
CUSUM misses.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from scaletest.model.writing import Written
from scaletest.stats.completions import Completions
from scaletest.stats.student import t_quantile
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.judging.warm_up import Warmup

# The parts of a step that are compared.
BATCHES = 20
# A line through a step: it may change, or surely does.
TREND_EFFECT, MAY_BE = 0.02, 2.0
SURE_EFFECT, SURE_ERROR = 0.05, 0.001
# 95 % and 99 % points of max |S| / (s sqrt(n)) for 20 independent batches, simulated in tests/unit.
CUSUM_5, CUSUM_1 = 1.19, 1.38
# A step with a larger relative shift must not be judged.
MOST_SHIFT = 0.03
# By chance the means of two halves differ by more than this many half-widths of the whole in one of
# a hundred cases: by twice the standard error of the whole, so 2 x 2.576 / 1.96.
HALVES_DIFFER = 2.63
# A smaller relative shift is not reported, however certain it is.
LEAST_SHIFT = 0.0005
# A dip lies below the median by more than this, in deviations and as a part of it.
DIP_DEVIATIONS, DIP_EFFECT = 5.0, 0.10


@dataclass(frozen=True, slots=True)
class Drift(Written):
    """A change of throughput within a measurement, and short breaks."""

    shift: Annotated[float, "relative change of throughput, 0 when there is no significant one"] = (
        0.0
    )
    shift_at_s: Annotated[float, "when, seconds after the warm-up."] = 0.0
    certain: Annotated[bool, "whether it is significant at 1 %"] = False
    dips: Annotated[
        tuple[tuple[float, float], ...], "seconds and relative depth of short breaks"
    ] = ()

    @property
    def unsteady(self) -> bool:
        """Whether the step must not be judged: it changed by over 3 %, by chance in 1 of 100."""
        return self.certain and abs(self.shift) > MOST_SHIFT


@dataclass(frozen=True, slots=True)
class _Line:
    """A straight line through the throughput."""

    effect: float  # change from end to end over the mean
    t: float  # slope over its error
    freedom: int


def drift_of(completions: Completions, rate: Throughput, trend_per_s: float) -> Drift:
    """Return what changed within one measurement with that throughput.

    trend_per_s: the trend of the whole run, see `machine_trend`, which is taken out before.
    """
    if not rate.enough:
        return Drift()
    # a slow request is a dip, and no lasting change
    drift = find_drift(completions.usual, trend_per_s)
    dips = find_drift(completions, trend_per_s).dips
    # It is certain only where the correlation of requests does not explain it. A step that is
    # measured again on the way down needs no more: a change shows there, and here in the interval.
    explained = abs(drift.shift) <= HALVES_DIFFER * rate.relative
    return replace(drift, dips=dips, certain=drift.certain and not explained)


def find_drift(completions: Completions, trend_per_s: float = 0.0) -> Drift:
    """Find the changes within a step; none with less than two completions a worker and batch.

    trend_per_s: as in `drift_of`.
    """
    first, last = completions.span
    if last <= first or completions.fewest < 2 * BATCHES:
        return Drift()
    width = (last - first) / BATCHES
    batches = completions.rates(BATCHES, trend_per_s)
    # short breaks; 1.4826 median absolute deviations of normal values are a standard deviation
    middle = statistics.median(batches)
    deviation = 1.4826 * statistics.median(abs(rate - middle) for rate in batches)
    limit = max(DIP_DEVIATIONS * deviation, DIP_EFFECT * middle)
    dips = tuple(
        (index * width, rate / middle - 1)
        for index, rate in enumerate(batches)
        if middle - rate > limit
    )
    # one lasting change
    statistic, index = cusum(batches)
    if statistic <= CUSUM_5:
        return Drift(dips=dips)
    before, behind = statistics.fmean(batches[:index]), statistics.fmean(batches[index:])
    change = behind / before - 1 if before > 0 else 0.0
    if abs(change) < LEAST_SHIFT:
        return Drift(dips=dips)
    return Drift(change, index * width, statistic > CUSUM_1, dips)


def cusum(batches: Sequence[float]) -> tuple[float, int]:
    """Return max |S(k)| / (s sqrt(n)) and its k; S(k) sums the first k deviations from the mean."""
    mean, spread = statistics.fmean(batches), statistics.stdev(batches)
    if spread <= 1e-9 * abs(mean):
        return 0.0, 0
    total, largest, change_at = 0.0, 0.0, 0
    for index, rate in enumerate(batches[:-1], start=1):
        total += rate - mean
        if abs(total) > largest:
            largest, change_at = abs(total), index
    return largest / (spread * math.sqrt(len(batches))), change_at


def may_rise(completions: Completions, effect: float = TREND_EFFECT, t: float = MAY_BE) -> bool:
    """Return whether throughput may still change along the time so far; a false alarm costs time.

    It may where it changed by over `effect` from end to end, with a statistic over `t`.
    """
    line = _line_through(completions)
    return line is None or (line.effect > effect and line.t > t)


def has_settled(warm: Warmup, trend_per_s: float = 0.0) -> bool:
    """Return whether the rest behind a warm-up is free of a clear trend.

    Its usual requests must not rise or fall for certain: by over 5 % from end to end, by chance
    once in a thousand times. trend_per_s: the trend of the whole run, which is taken out before.
    """
    if warm.settled is not None:
        return warm.settled
    line = _line_through(warm.rest.usual, trend_per_s)
    return line is not None and (
        line.effect <= SURE_EFFECT or line.t <= t_quantile(1.0 - SURE_ERROR / 2.0, line.freedom)
    )


def _line_through(completions: Completions, trend_per_s: float = 0.0) -> _Line | None:
    """Return the line through 4 to 20 parts of the time; None where there is no time."""
    first, last = completions.span
    if last <= first:
        return None
    count = max(4, min(BATCHES, completions.total // 5))
    batches = completions.rates(count, trend_per_s)
    mean = statistics.fmean(batches)
    slope, begin = statistics.linear_regression(range(count), batches)
    squares = sum((rate - begin - slope * index) ** 2 for index, rate in enumerate(batches))
    error = math.sqrt(squares / (count - 2) * 12 / (count**3 - count))
    effect = abs(slope) * (count - 1) / mean if mean > 0 else math.inf
    t = abs(slope) / error if error > 0 else math.inf
    return _Line(effect, t, count - 2)

"""Tests whether a step stayed the same while it was measured.

line: slope of the throughput over time, for the question whether to go on measuring.
shift: the largest standardised cumulative sum of batch means (CUSUM), for heat, leaks, noisy
neighbours.
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
# Throughput may still change where the line through it does so by this part, and by so many of its
# standard errors.
POSSIBLE_CHANGE = 0.02
POSSIBLE_T_VALUE = 2.0
# It certainly changes where the line does so by this part, by chance in so few of all cases.
CERTAIN_CHANGE = 0.05
CERTAIN_ERROR = 0.001
# 95 % and 99 % points of max |S| / (s sqrt(n)) for 20 independent batches, simulated in tests/unit.
CUSUM_95_PERCENT = 1.19
CUSUM_99_PERCENT = 1.38
# A step with a larger relative shift must not be judged.
MOST_SHIFT = 0.03
# By chance the means of two halves differ by more than this many half-widths of the whole in one of
# a hundred cases: by twice the standard error of the whole, so 2 x 2.576 / 1.96.
HALVES_DIFFER = 2.63
# A smaller relative shift is not reported, however certain it is.
LEAST_SHIFT = 0.0005


@dataclass(frozen=True, slots=True)
class Drift(Written):
    """A lasting change of throughput within a measurement."""

    shift: Annotated[float, "relative change of throughput, 0 when there is no significant one"] = (
        0.0
    )
    shift_at_s: Annotated[float, "when, seconds after the warm-up."] = 0.0
    certain: Annotated[bool, "whether it is significant at 1 %"] = False

    @property
    def unsteady(self) -> bool:
        """Whether the step must not be judged: it changed by over 3 %, by chance in 1 of 100."""
        return self.certain and abs(self.shift) > MOST_SHIFT


@dataclass(frozen=True, slots=True)
class _TrendLine:
    """A straight line through the throughput."""

    change: float  # from end to end, over the mean, without its sign
    t_value: float  # slope over its standard error, without its sign
    freedom: int  # degrees of freedom behind the error


def drift_of(completions: Completions, rate: Throughput, trend_per_s: float) -> Drift:
    """Return what changed within one measurement with that throughput.

    trend_per_s: the trend of the whole run, see `machine_trend`, which is taken out before.
    """
    if not rate.enough:
        return Drift()
    # a slow request is a short break, and no lasting change
    drift = find_drift(completions.with_slow_cycles_filled, trend_per_s)
    # It is certain only where the correlation of requests does not explain it. A step that is
    # measured again in the pass down needs no more: a change shows there, and here in the interval.
    is_explained = abs(drift.shift) <= HALVES_DIFFER * rate.relative
    return replace(drift, certain=drift.certain and not is_explained)


def find_drift(completions: Completions, trend_per_s: float = 0.0) -> Drift:
    """Find the largest change in a step; none with less than two completions a worker and batch.

    trend_per_s: as in `drift_of`.
    """
    begin_s, end_s = completions.span
    if end_s <= begin_s or completions.fewest < 2 * BATCHES:
        return Drift()
    batches = completions.rates(BATCHES, trend_per_s)
    statistic, index = cusum(batches)
    if statistic <= CUSUM_95_PERCENT:
        return Drift()
    rate_before = statistics.fmean(batches[:index])
    rate_after = statistics.fmean(batches[index:])
    shift = rate_after / rate_before - 1 if rate_before > 0 else 0.0
    if abs(shift) < LEAST_SHIFT:
        return Drift()
    shift_at_s = index * ((end_s - begin_s) / BATCHES)
    return Drift(shift, shift_at_s, certain=statistic > CUSUM_99_PERCENT)


def cusum(batches: Sequence[float]) -> tuple[float, int]:
    """Return max |S(k)| / (s sqrt(n)) and its k: how many batches lie before the change.

    S(k) is the sum of the first k deviations from the mean.
    """
    mean, spread = statistics.fmean(batches), statistics.stdev(batches)
    if spread <= 1e-9 * abs(mean):
        return 0.0, 0
    total, largest, change_at = 0.0, 0.0, 0
    for index, rate in enumerate(batches[:-1], start=1):
        total += rate - mean
        if abs(total) > largest:
            largest, change_at = abs(total), index
    return largest / (spread * math.sqrt(len(batches))), change_at


def may_still_change(
    completions: Completions,
    least_change: float = POSSIBLE_CHANGE,
    least_t_value: float = POSSIBLE_T_VALUE,
) -> bool:
    """Return whether throughput may still change along the time so far; a false alarm costs time.

    It may where the line through it changed by more than `least_change` from end to end, and by
    more than `least_t_value` standard errors.
    """
    line = _line_through(completions)
    return line is None or (line.change > least_change and line.t_value > least_t_value)


def has_settled(warm: Warmup, trend_per_s: float = 0.0) -> bool:
    """Return whether the rest behind a warm-up is free of a clear trend.

    Its usual requests must not rise or fall for certain: by over 5 % from end to end, by chance
    once in a thousand times. trend_per_s: the trend of the whole run, which is taken out before.
    """
    if warm.settled is not None:
        return warm.settled
    line = _line_through(warm.rest.with_slow_cycles_filled, trend_per_s)
    return line is not None and (
        line.change <= CERTAIN_CHANGE
        or line.t_value <= t_quantile(1.0 - CERTAIN_ERROR / 2.0, line.freedom)
    )


def _line_through(completions: Completions, trend_per_s: float = 0.0) -> _TrendLine | None:
    """Return the line through 4 to 20 parts of the time; None where there is no time."""
    begin_s, end_s = completions.span
    if end_s <= begin_s:
        return None
    count = max(4, min(BATCHES, completions.total // 5))
    batches = completions.rates(count, trend_per_s)
    mean = statistics.fmean(batches)
    slope, first_rate = statistics.linear_regression(range(count), batches)
    squares = sum((rate - first_rate - slope * index) ** 2 for index, rate in enumerate(batches))
    error = math.sqrt(squares / (count - 2) * 12 / (count**3 - count))
    change = abs(slope) * (count - 1) / mean if mean > 0 else math.inf
    t_value = abs(slope) / error if error > 0 else math.inf
    return _TrendLine(change, t_value, freedom=count - 2)

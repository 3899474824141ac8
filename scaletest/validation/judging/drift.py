"""Whether a step stayed the same while it was measured, and where its warm-up ended.

trend: slope of the throughput over time, for the question whether to go on measuring.
shift: the largest standardised cumulative sum of batch means (CUSUM), for heat, leaks, noisy
neighbours.
dips: batches far from the median in units of the median absolute deviation, for short breaks that
CUSUM misses.

Where a step's warm-up ends: MSER-5, and a test whether there was a warm-up at all.

MSER (White 1997) cuts where the squared standard error of the rest is least, looking at the first
half only; MSER-5 (Spratt 1998) does so on batches of five. Here they are equal parts of the time
with five completions each on average, so that all workers count together. MSER can be deceived
(Wang and Glynn 2016), so the rest must not change along the time: else the step never settled. On
steady data MSER cuts by chance, so the cut counts only when the part before it differs from the
part behind.

A cut leaves enough for a rate where there was enough. A step that needs a later cut may not have
settled: it is marked so, but its rate is still known, since a few requests that end while the step
is drained must not make its measurement worthless.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from scaletest.model.writing import Written
from scaletest.stats.completions import Ends, after, rates, span
from scaletest.stats.student import t_quantile
from scaletest.validation.judging.slow_requests import usual

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
    change = behind / before - 1 if before > 0 else 0.0
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
    return line is None or (
        line.effect > SURE_EFFECT and line.t > t_quantile(1.0 - SURE_ERROR / 2.0, line.freedom)
    )


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
    mean = statistics.fmean(batches)
    slope, begin = statistics.linear_regression(range(count), batches)
    left = sum((rate - begin - slope * index) ** 2 for index, rate in enumerate(batches))
    error = math.sqrt(left / (count - 2) * 12 / (count**3 - count))
    effect = abs(slope) * (count - 1) / mean if mean > 0 else math.inf
    t = abs(slope) / error if error > 0 else math.inf
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


PER_BATCH = 5
MOST_BATCHES = 60
LEAST_BATCHES = 8
# A smaller relative difference does not matter beside a precision of 2 %.
MATTERS = 0.005
SIGNIFICANT = 3.5
# Completions that a cut leaves, of all workers and of each.
LEFT, LEFT_PER_WORKER = 8, 3


@dataclass(frozen=True, slots=True)
class Warmup:
    """The result of cutting the warm-up off.

    ends: the rest. cut_s: the first instant that counts, on the Redis clock. share: the part of the
    time that was cut off. settled: whether the rest is free of a clear trend.
    """

    ends: Ends
    cut_s: float
    share: float
    settled: bool


def cut(ends: Ends, per_s: float = 0.0) -> Warmup:
    """The completions without their warm-up.

    per_s: the trend of the whole run, with which a step may rise or fall.
    """
    first, last = span(ends)
    count = min(MOST_BATCHES, sum(map(len, ends.values())) // PER_BATCH)
    if last <= first or count < LEAST_BATCHES:
        return Warmup(ends, first, 0.0, True)
    batches = rates(ends, first, last, count)
    at = mser(batches)
    # a warm-up differs most at its beginning; a single slow request later does not count
    if (
        at == 0
        or not _differs(batches[:at], batches[at:])
        or not _differs(batches[:1], batches[at:])
    ):
        return Warmup(ends, first, 0.0, _steady(ends, per_s))
    at += 1  # the end of a ramp hides in the noise: one batch more costs little
    room = _room(ends, first, last, count)
    if room < 1:
        return Warmup(ends, first, 0.0, False)
    cut_s = first + min(at, room) * (last - first) / count
    remaining = after(ends, cut_s)
    return Warmup(remaining, cut_s, min(at, room) / count, at <= room and _steady(remaining, per_s))


def agreed(ends: Ends, at_s: float) -> Warmup:
    """The completions from `at_s` on, where a check during the step found the end of the warm-up.

    0: there was no warm-up. A beginning does not change by what comes later: the few requests that
    end after that check neither move the cut nor make the step doubtful again. In simulated sleeps
    of 0.4 s on a noisy machine they did so in one step of four.
    """
    first, last = span(ends)
    share = max(0.0, at_s - first) / (last - first) if last > first else 0.0
    return Warmup(after(ends, at_s), max(at_s, first), share, True)


def _steady(ends: Ends, per_s: float) -> bool:
    """Whether the usual requests neither rise nor fall for certain."""
    return not surely_rising(usual(ends), per_s)


def _room(ends: Ends, first: float, last: float, count: int) -> int:
    """How many of `count` batches may be cut so that enough remains.

    All of them where there is too little anyway.
    """
    keep = max(LEFT_PER_WORKER, math.ceil(LEFT / len(ends)))
    if min(map(len, ends.values())) < keep:
        return count
    latest = min(times[-keep] for times in ends.values())
    return math.ceil((latest - first) / (last - first) * count) - 1


def mser(batches: Sequence[float]) -> int:
    """How many batches to cut from the front, half of them at most."""
    half = len(batches) // 2
    best, at = math.inf, 0
    mean, squares = 0.0, 0.0
    for count, index in enumerate(
        reversed(range(len(batches))), start=1
    ):  # each mean follows from the last (Welford)
        step = batches[index] - mean
        mean += step / count
        squares += step * (batches[index] - mean)
        if index <= half and squares / count**2 <= best:
            best, at = squares / count**2, index
    return at


def _differs(before: Sequence[float], behind: Sequence[float]) -> bool:
    """Whether the means differ by more than chance and by more than MATTERS."""
    early, late = statistics.fmean(before), statistics.fmean(behind)
    error = 0.0
    if len(behind) > 1:
        error = statistics.stdev(behind) * math.sqrt(1 / len(before) + 1 / len(behind))
    return abs(early - late) > max(MATTERS * late, SIGNIFICANT * error)

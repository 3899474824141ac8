"""Where a step's warm-up ends: MSER-5, and a test whether there was a warm-up at all.

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
from dataclasses import dataclass

from scaletest.analysis.completions import Ends, after, rates, span
from scaletest.analysis.drift import surely_rising
from scaletest.analysis.tails import usual
from scaletest.analysis.throughput import least_each

PER_BATCH = 5
MOST_BATCHES = 60
LEAST_BATCHES = 8
# A smaller relative difference does not matter beside a precision of 2 %.
MATTERS = 0.005
SIGNIFICANT = 3.5


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
    share = 0.0
    if last > first:
        share = max(0.0, at_s - first) / (last - first)
    return Warmup(after(ends, at_s), max(at_s, first), share, True)


def _steady(ends: Ends, per_s: float) -> bool:
    """Whether the usual requests neither rise nor fall for certain."""
    return not surely_rising(usual(ends), per_s)


def _room(ends: Ends, first: float, last: float, count: int) -> int:
    """How many of `count` batches may be cut so that enough remains.

    All of them where there is too little anyway.
    """
    keep = least_each(len(ends))
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

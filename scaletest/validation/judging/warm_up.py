"""The end of a step's warm-up: MSER-5, and a test whether there was a warm-up at all.

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

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.stats.completions import Completions

# Completions in a batch on average, and how many batches there are.
PER_BATCH = 5
LEAST_BATCHES = 8
MOST_BATCHES = 60
# A smaller relative difference does not matter beside a precision of 2 %.
LEAST_DIFFERENCE = 0.005
# A warm-up differs from the rest by more than this many standard errors.
LEAST_STANDARD_ERRORS = 3.5
# Completions that a cut leaves, of all workers and of each.
LEAST_LEFT = 8
LEAST_LEFT_PER_WORKER = 3


@dataclass(frozen=True, slots=True)
class Warmup:
    """The result of cutting the warm-up off."""

    rest: Completions
    cut_s: float  # the first instant that counts, on the Redis clock
    share: float  # of the time, that was cut off
    # whether the rest is free of a clear trend; None where that is to be seen, see `has_settled`
    settled: bool | None


def cut_warm_up(
    completions: Completions,
    warmup_s: float | None,
    began_s: float,
    warm_at_s: float | None = None,
) -> Warmup:
    """Return the completions without the warm-up.

    warmup_s: seconds to cut from `began_s` on; None: those that MSER-5 finds. warm_at_s: what it
    found when the step was ended, see `Stopping.warm_at_s`.
    """
    if warmup_s is None:
        if warm_at_s is None:
            return cut_by_mser(completions)
        # A beginning does not change by what comes later: the few requests that end after that
        # check neither move the cut nor make the step doubtful again. In simulated sleeps of 0.4 s
        # on a noisy machine they did so in one step of four.
        first, last = completions.span
        share = max(0.0, warm_at_s - first) / (last - first) if last > first else 0.0
        return Warmup(completions.after(warm_at_s), max(warm_at_s, first), share, True)
    cut_s = began_s + warmup_s
    return Warmup(completions.after(cut_s), cut_s, 0.0, True)


def cut_by_mser(completions: Completions) -> Warmup:
    """Return the completions without the warm-up that MSER-5 finds."""
    first, last = completions.span
    count = min(MOST_BATCHES, completions.total // PER_BATCH)
    if last <= first or count < LEAST_BATCHES:
        return Warmup(completions, first, 0.0, True)
    batches = completions.rates(count)
    cut = mser_cut(batches)
    # a warm-up differs most at its beginning; a single slow request later does not count
    if (
        cut == 0
        or not _differ_beyond_chance(batches[:cut], batches[cut:])
        or not _differ_beyond_chance(batches[:1], batches[cut:])
    ):
        return Warmup(completions, first, 0.0, None)
    cut += 1  # the end of a ramp hides in the noise: one batch more costs little
    # how many batches may be cut so that enough remains: all where there is too little anyway
    most = count
    keep = max(LEAST_LEFT_PER_WORKER, math.ceil(LEAST_LEFT / len(completions.by_worker)))
    if completions.fewest >= keep:
        latest_s = min(times[-keep] for times in completions.by_worker.values())
        most = math.ceil((latest_s - first) / (last - first) * count) - 1
        if most < 1:
            return Warmup(completions, first, 0.0, False)
    cut_s = first + min(cut, most) * (last - first) / count
    return Warmup(
        completions.after(cut_s),
        cut_s,
        share=min(cut, most) / count,
        settled=None if cut <= most else False,
    )


def mser_cut(batches: Sequence[float]) -> int:
    """Return how many batches to cut from the front, half of them at most.

    That is where the squared standard error of the mean of the rest is least.
    """
    half = len(batches) // 2
    least, cut = math.inf, 0
    mean, squares = 0.0, 0.0
    # each mean follows from the last (Welford)
    for count, index in enumerate(reversed(range(len(batches))), start=1):
        step = batches[index] - mean
        mean += step / count
        squares += step * (batches[index] - mean)
        if index <= half and squares / count**2 <= least:
            least, cut = squares / count**2, index
    return cut


def _differ_beyond_chance(before: Sequence[float], behind: Sequence[float]) -> bool:
    """Return whether the means differ by more than chance and by more than LEAST_DIFFERENCE."""
    early, late = statistics.fmean(before), statistics.fmean(behind)
    error = statistics.stdev(behind) * math.sqrt(1 / len(before) + 1 / len(behind))
    return abs(early - late) > max(LEAST_DIFFERENCE * late, LEAST_STANDARD_ERRORS * error)

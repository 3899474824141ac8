"""How fast the backlog grows, with an interval that is honest near saturation.

The backlog at an instant is the number of due requests less that of ended ones. Over a window cut
into batches of h seconds

    slope = (mean backlog of the last batch - that of the first) / (window - h)

and its standard error comes from the completions: s(c) / (h sqrt(m)) for m batches with c
completions each. Beyond saturation, completions of batches are independent, and that is the right
error. Below it, completions follow arrivals and the true error is smaller: the interval is too wide
and contains 0, as it should. An ordinary regression on the backlog has neither property.
"""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from scaletest.stats.estimate import Estimate
from scaletest.stats.student import t95

# Batches of a window, as many as have enough completions each; with fewer there is no interval.
BATCHES = 20
LEAST_BATCHES = 4
LEAST_PER_BATCH = 4.0
# No interval is narrower than this part of the offered load on each side: one pause of the tester
# must not look like growth.
_LEAST_HALF = 1 / 500
# Half the normal quantile of 95 %, around the root of a Poisson count.
_HALF_QUANTILE = 0.98


def backlog_growth(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> Estimate | None:
    """Return by how many requests a second the backlog grows; None with fewer than 16 completions.

    due, ended: ascending times in s of the whole step, not only of the window.
    """
    edges, counts = _count_batches(ended, begin_s, end_s)
    if not counts:
        return None
    window_s, batches = end_s - begin_s, len(counts)
    width_s = window_s / batches
    first = mean_backlog(due, ended, edges[0], edges[1])
    last = mean_backlog(due, ended, edges[-2], edges[-1])
    slope = (last - first) / (window_s - width_s)
    error = statistics.stdev(counts) / (width_s * math.sqrt(batches))
    offered_per_s = _count_within(due, begin_s, end_s) / window_s
    half = max(t95(batches - 1) * error, 2.0 / window_s, offered_per_s * _LEAST_HALF)
    return Estimate(slope, slope - half, slope + half)


def _count_within(times: Sequence[float], begin_s: float, end_s: float) -> int:
    """Count the ascending times that lie in a window, its end excluded."""
    return bisect_left(times, end_s) - bisect_left(times, begin_s)


def _count_batches(
    ended: Sequence[float], begin_s: float, end_s: float
) -> tuple[list[float], list[int]]:
    """Return the edges of equal parts of a window, and the completions in each; [] below 16."""
    batches = min(BATCHES, int(_count_within(ended, begin_s, end_s) / LEAST_PER_BATCH))
    if batches < LEAST_BATCHES:
        return [], []
    edges = [begin_s + (end_s - begin_s) * index / batches for index in range(batches + 1)]
    return edges, [_count_within(ended, low, high) for low, high in pairwise(edges)]


def scarce_backlog_growth(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> Estimate | None:
    """Return the growth of the backlog from so few completions that `backlog_growth` is None.

    It is None as well with fewer than 16 requests due. Not for a step that is shorter than a
    request: nothing can have ended there. Completions are taken as Poisson's, with bounds by roots
    (Freeman and Tukey 1950), which is too wide for a service that works without pause.
    """
    window_s = end_s - begin_s
    came, done = _count_within(due, begin_s, end_s), _count_within(ended, begin_s, end_s)
    if window_s <= 0 or came < LEAST_BATCHES * LEAST_PER_BATCH:
        return None
    least = max(0.0, math.sqrt(done) - _HALF_QUANTILE) ** 2
    most = (math.sqrt(done + 1) + _HALF_QUANTILE) ** 2
    return Estimate((came - done) / window_s, (came - most) / window_s, (came - least) / window_s)


def pool_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent steps at one level, with its error."""
    mean = statistics.fmean(estimate.value for estimate in estimates)
    half = math.hypot(*(estimate.high - estimate.value for estimate in estimates)) / len(estimates)
    return Estimate(mean, mean - half, mean + half)


def mean_backlog(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> float:
    """Return the time average of the requests that were due and had not ended."""
    return (_area(due, begin_s, end_s) - _area(ended, begin_s, end_s)) / (end_s - begin_s)


def completion_rate(ended: Sequence[float], begin_s: float, end_s: float) -> Estimate:
    """Return completions a second; the interval is from 0 to infinity with fewer than 16."""
    window_s, per_s = end_s - begin_s, mean_rate(ended, begin_s, end_s)
    counts = _count_batches(ended, begin_s, end_s)[1]
    if not counts:
        return Estimate(per_s, 0.0, math.inf)
    batches = len(counts)
    error = statistics.stdev(counts) / math.sqrt(batches) * batches / window_s
    half = max(t95(batches - 1) * error, 1.0 / window_s)
    return Estimate(per_s, max(0.0, per_s - half), per_s + half)


def _area(times: Sequence[float], begin_s: float, end_s: float) -> float:
    """Return the integral over the window of how many of `times` have passed."""
    before = bisect_left(times, begin_s)
    within = times[before : bisect_left(times, end_s)]
    return before * (end_s - begin_s) + sum(end_s - time for time in within)


def mean_rate(times: Sequence[float], begin_s: float, end_s: float) -> float:
    """Return how many of ascending times lie in a window, a second."""
    return _count_within(times, begin_s, end_s) / (end_s - begin_s) if end_s > begin_s else 0.0

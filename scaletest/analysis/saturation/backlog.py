"""How fast the backlog grows, with an interval that is honest near saturation.

The backlog at an instant is the number of due requests less that of ended ones. Over a window cut
into batches of h seconds

    slope = (mean backlog of the last batch - that of the first) / (window - h)

and its standard error comes from the completions: s(c) / (h sqrt(m)) for m batches with c
completions each. Beyond saturation the service works without pause, completions of batches are
independent, and that is the right error; arrivals do not add to it, since they are known. Below
saturation completions follow arrivals, each busy batch is paid back by an idle one, and the true
error is smaller: the interval is too wide and contains 0, as it should. An ordinary regression on
the backlog has neither property: near saturation it wanders, and residuals look like a trend.

With fewer than 16 completions there are no batches: due less ended requests are counted, and the
completions are taken as Poisson's, which is too wide for a service that works without pause. A slow
one that is far beyond saturation shows all the same.

The interval is never narrower than two requests over the window, nor than 1/500 of the offered
load: one pause of the tester must not look like growth.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.student_t import t95

BATCHES = 20
LEAST_BATCHES = 4
LEAST_PER_BATCH = 4.0
_ROUNDING = 1 / 500
_HALF = 0.98


def growth(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> Estimate | None:
    """Requests a second by which the backlog grows from begin to end; None with fewer than 16
    completions.

    due, ended: ascending times in s of the whole step, not only of the window.
    """
    long = end_s - begin_s
    inside = bisect_left(ended, end_s) - bisect_left(ended, begin_s)
    batches = min(BATCHES, int(inside / LEAST_PER_BATCH))
    if long <= 0 or batches < LEAST_BATCHES:
        return None
    edges = [begin_s + long * index / batches for index in range(batches + 1)]
    counts = [bisect_left(ended, high) - bisect_left(ended, low) for low, high in pairwise(edges)]
    width = long / batches
    first = mean_backlog(due, ended, edges[0], edges[1])
    last = mean_backlog(due, ended, edges[-2], edges[-1])
    slope = (last - first) / (long - width)
    error = statistics.stdev(counts) / (width * math.sqrt(batches))
    offered = (bisect_left(due, end_s) - bisect_left(due, begin_s)) / long
    half = max(t95(batches - 1) * error, 2.0 / long, offered * _ROUNDING)
    return Estimate(slope, slope - half, slope + half)


def scarce_growth(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> Estimate | None:
    """Growth of the backlog from so few completions that `growth` is None.

    None with fewer than 16 requests due. Not for a step that is shorter than a request: nothing can
    have ended there. Bounds of a Poisson count by roots (Freeman and Tukey 1950), half the normal
    quantile around them.
    """
    long = end_s - begin_s
    begun = bisect_left(due, end_s) - bisect_left(due, begin_s)
    done = bisect_left(ended, end_s) - bisect_left(ended, begin_s)
    if long <= 0 or begun < LEAST_BATCHES * LEAST_PER_BATCH:
        return None
    least, most = max(0.0, math.sqrt(done) - _HALF) ** 2, (math.sqrt(done + 1) + _HALF) ** 2
    return Estimate((begun - done) / long, (begun - most) / long, (begun - least) / long)


def pooled(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate of independent steps at one level together: their mean, with its error."""
    mean = statistics.fmean(estimate.value for estimate in estimates)
    half = math.hypot(*(estimate.high - estimate.value for estimate in estimates)) / len(estimates)
    return Estimate(mean, mean - half, mean + half)


def mean_backlog(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> float:
    """Time average of the requests that were due and had not ended."""
    return (_area(due, begin_s, end_s) - _area(ended, begin_s, end_s)) / (end_s - begin_s)


def rate(ended: Sequence[float], begin_s: float, end_s: float) -> Estimate:
    """Completions a second, with an interval from batches; ends at infinity with fewer than 16."""
    long = end_s - begin_s
    first, last = bisect_left(ended, begin_s), bisect_left(ended, end_s)
    count = last - first
    per_s = 0.0
    if long > 0:
        per_s = count / long
    batches = min(BATCHES, int(count / LEAST_PER_BATCH))
    if batches < LEAST_BATCHES:
        return Estimate(per_s, 0.0, math.inf)
    edges = [bisect_left(ended, begin_s + long * index / batches) for index in range(batches + 1)]
    counts = [high - low for low, high in pairwise(edges)]
    half = max(
        t95(batches - 1) * statistics.stdev(counts) / math.sqrt(batches) * batches / long,
        1.0 / long,
    )
    return Estimate(per_s, max(0.0, per_s - half), per_s + half)


def _area(times: Sequence[float], begin_s: float, end_s: float) -> float:
    """Integral over the window of how many of `times` have passed."""
    before = bisect_left(times, begin_s)
    within = times[before : bisect_left(times, end_s)]
    return before * (end_s - begin_s) + sum(end_s - time for time in within)

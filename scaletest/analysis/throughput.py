"""Throughput with an interval that stays honest for few, correlated and shared fluctuations.

The rate is the progress (see `completions`) in the time that all workers share. Its variance is
built from the cycles of each worker, c(i) = e(i+1) - e(i): a renewal process makes k = T / m cycles
in T with variance k s^2 / m^2. Three corrections follow, each for an effect that made the plain
interval too narrow (figures: docs/performance.md):

1. Cycles of one worker follow each other alike. The lag-1 correlation, pooled over workers and
   freed of its small-sample bias (Marriott and Pope 1954), inflates the variance as for a
   first-order autoregression.
2. With few cycles a worker that correlation cannot be estimated; the spread between workers can,
   and the larger of the two counts.
3. Workers fluctuate together (heat, a shared disk). When the sum of all scatters more than its
   parts explain, by twice the standard error of such a ratio, the interval comes from the sum:
   batch means, corrected for correlation likewise.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scaletest.analysis.completions import Ends, progress, rates, span
from scaletest.analysis.student_t import t95

MIN_COMPLETIONS = 8
MIN_COMPLETIONS_PER_WORKER = 3
# Above, the autocorrelation of one worker's cycles is known well enough.
FEW_CYCLES = 20
MOST_BATCHES = 100
LEAST_BATCHES = 16


@dataclass(frozen=True, slots=True)
class Throughput:
    """Requests per second with the half-width of its 95 % interval.

    completions: successful requests counted, the first of each worker included.
    freedom: degrees of freedom behind the interval.
    enough: whether there are 8 completions in all and 3 of every worker; below that the rate is no
    evidence. Where a step is measured in two parts, each part needs half of that.
    """

    per_s: float
    half_width: float
    completions: int
    freedom: int
    enough: bool

    @property
    def relative(self) -> float:
        """Half-width over rate; infinity when the rate is 0."""
        if self.per_s > 0:
            return self.half_width / self.per_s
        return math.inf


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Standard error in requests/s, and its degrees of freedom."""

    error: float
    freedom: float

    @property
    def half_width(self) -> float:
        return t95(max(1, int(self.freedom))) * self.error


def throughput(ends: Ends, workers: int, *, parts: int = 1, cautious: bool = False) -> Throughput:
    """The throughput of one step from the completions of its workers, the warm-up already cut off.

    ends: by worker, in s. parts: in how many parts the step is measured, of which this is one.
    cautious: take the correlation two standard errors higher than estimated, for checks while
    measuring.
    """
    counts = [len(times) for times in ends.values()]
    first, last = span(ends)
    if not completed(ends, workers, least_total(parts), least_per_worker(parts)) or last <= first:
        return Throughput(_rough(ends), math.inf, sum(counts), 0, False)
    rate = sum(progress(ends, (first, last))) / (last - first)
    estimate = _of_workers(ends, first, last, cautious)
    common = _in_common(ends, first, last, estimate)
    estimate = max(estimate, common, key=lambda candidate: candidate.half_width)
    return Throughput(rate, estimate.half_width, sum(counts), max(1, int(estimate.freedom)), True)


def completed(ends: Ends, workers: int, total: int, per_worker: int) -> bool:
    """Whether there are `total` completions, and `per_worker` of each of `workers` workers."""
    counts = [len(times) for times in ends.values()]
    return len(counts) >= workers and min(counts, default=0) >= per_worker and sum(counts) >= total


def least_total(parts: int = 1) -> int:
    """The completions of all workers that suffice for one of `parts` parts: `Throughput.enough`."""
    return math.ceil(MIN_COMPLETIONS / parts)


def least_per_worker(parts: int = 1) -> int:
    """How many completions of every worker are enough for one of `parts` parts; two, since the
    first starts a cycle.
    """
    return max(2, math.ceil(MIN_COMPLETIONS_PER_WORKER / parts))


def least_each(workers: int, parts: int = 1) -> int:
    """How many completions of each of `workers` workers are enough, where all complete as many."""
    return max(least_per_worker(parts), math.ceil(least_total(parts) / workers))


def cycles(times: Sequence[float]) -> list[float]:
    """The times between a worker's completions, in s."""
    return [later - earlier for earlier, later in pairwise(times)]


def error_of_mean(series: Sequence[Sequence[float]]) -> float:
    """Standard error of the mean of all cycles; infinite for fewer than two cycles.

    series: the cycles of each worker, in s. Corrected for correlation as correction 1 says. Workers
    count as alike: where they are not, the error is too large.
    """
    all_cycles = list(itertools.chain.from_iterable(series))
    if len(all_cycles) < 2:
        return math.inf
    deviations = [_deviations(own) for own in series if own]
    inflation = _inflation(_correlation(deviations), statistics.fmean(map(len, deviations)))
    return math.sqrt(statistics.variance(all_cycles) / len(all_cycles) * inflation)


def _deviations(cycles_s: Sequence[float]) -> list[float]:
    mean = statistics.fmean(cycles_s)
    return [cycle - mean for cycle in cycles_s]


def _all_cycles(ends: Ends) -> list[float]:
    """The cycles of all workers, in s."""
    return list(itertools.chain.from_iterable(cycles(times) for times in ends.values()))


def relative_spread(ends: Ends) -> float | None:
    """The standard deviation of all cycles over their mean; None for fewer than two."""
    seconds = _all_cycles(ends)
    mean = 0.0
    if seconds:
        mean = statistics.fmean(seconds)
    if len(seconds) > 1 and mean > 0:
        return statistics.stdev(seconds) / mean
    return None


def _rough(ends: Ends) -> float:
    """Requests/s to show while there is too little for an interval: the sum of 1 / mean cycle."""
    means = [(times[-1] - times[0]) / (len(times) - 1) for times in ends.values() if len(times) > 1]
    return sum(1.0 / mean for mean in means if mean > 0)


def _of_workers(ends: Ends, first: float, last: float, cautious: bool) -> _Estimate:
    """Corrections 1 and 2: from every worker's own cycles.

    From all cycles together where a worker has only one.
    """
    if min(map(len, ends.values())) < 3:
        return _of_all(ends, first, last)
    variance, freedom, done = 0.0, 0, []
    deviations: list[list[float]] = []
    for times in ends.values():
        own = cycles(times)
        mean = statistics.fmean(own)
        share = sum(progress({"": times}, (first, last)))
        variance += share * statistics.variance(own, mean) / mean**2
        freedom += len(own) - 1
        done.append(share)
        deviations.append([(cycle - mean) / mean for cycle in own])
    correlation = _correlation(deviations, cautious)
    each = statistics.fmean(map(len, deviations))
    long = last - first
    inner = _Estimate(
        math.sqrt(variance * _inflation(correlation, each)) / long, freedom * _left(correlation)
    )
    if each >= FEW_CYCLES or len(done) < 4:
        return inner
    outer = _Estimate(statistics.stdev(done) * math.sqrt(len(done)) / long, len(done) - 1)
    if inner.error >= outer.error:
        return inner
    return outer


def _of_all(ends: Ends, first: float, last: float) -> _Estimate:
    """The error from the scatter of all cycles; workers that are not alike make it larger."""
    seconds = _all_cycles(ends)
    if len(seconds) < 2:
        return _Estimate(math.inf, 1)
    rate = sum(progress(ends, (first, last))) / (last - first)
    return _Estimate(rate * error_of_mean([seconds]) / statistics.fmean(seconds), len(seconds) - 1)


def _in_common(ends: Ends, first: float, last: float, own: _Estimate) -> _Estimate:
    """Correction 3: from the sum of all workers, when it scatters more than they do one by one."""
    batches = max(4, min(MOST_BATCHES, min(map(len, ends.values())) - 1))
    if len(ends) < 2 or min(map(len, ends.values())) < 3:
        return own
    parts = [rates({"": times}, first, last, batches) for times in ends.values()]
    whole = [sum(part) for part in zip(*parts, strict=True)]
    apart = sum(map(statistics.variance, parts))
    excess = 1.0
    if apart > 0:
        excess = statistics.variance(whole) / apart
    if excess <= 1.0 + 2.0 * math.sqrt(2.0 / (batches - 1)):
        return own
    scaled = _Estimate(own.error * math.sqrt(excess), batches - 1)
    if batches < LEAST_BATCHES:
        return scaled
    mean = statistics.fmean(whole)
    correlation = _correlation([[candidate - mean for candidate in whole]])
    spread = statistics.stdev(whole) / math.sqrt(batches)
    joint = _Estimate(
        spread * math.sqrt(_inflation(correlation, batches)), (batches - 1) * _left(correlation)
    )
    return max(scaled, joint, key=lambda candidate: candidate.half_width)


def _correlation(deviations: Sequence[Sequence[float]], cautious: bool = False) -> float:
    """Lag-1 correlation pooled over series of deviations from their means, from 0 to 0.95.

    Its bias is -(1 + 3 r) / n in a series of n (Marriott and Pope 1954). Its standard error is
    1 / sqrt(all n): a part of it is added, since too low a correlation makes intervals too narrow
    while too high a one only costs time.
    """
    products, squares = 0.0, 0.0
    for own in deviations:
        for before, behind in pairwise(own):
            products += before * behind
        for deviation in own:
            squares += deviation * deviation * (len(own) - 1) / len(own)
    if squares <= 0:
        return 0.0
    raw = products / squares
    counts = [len(own) for own in deviations]
    unbiased = raw + (1 + 3 * raw) / statistics.fmean(counts)
    error = 1.0 / math.sqrt(sum(counts))
    if cautious:
        return min(0.95, max(0.0, unbiased) + 2.0 * error)
    return min(0.95, max(0.0, unbiased + 0.25 * error))


def _inflation(correlation: float, count: float) -> float:
    """By how much the variance of a mean exceeds s^2 / count under a first-order autoregression.

    v = 1 + 2 sum (1 - i / n) r^i (Law, Simulation Modeling and Analysis, 4.4); s^2 is too small by
    (n - v) / (n - 1).
    """
    if correlation <= 0 or count < 2:
        return 1.0
    n = int(count)
    v = 1 + 2 * sum((1 - i / n) * correlation**i for i in range(1, n))
    return v / max((n - v) / (n - 1), 0.05)


def _left(correlation: float) -> float:
    """The part of the degrees of freedom that correlated values are worth."""
    return (1 - correlation) / (1 + correlation)

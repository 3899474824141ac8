"""Throughput from completions, with an interval that stays honest.

The rate is the workers' progress (`stats/completions.py`) in the time that all of them share. Its
variance is built from the cycles of each worker, c(i) = e(i+1) - e(i): a renewal process makes k =
T / m cycles in T with variance k s^2 / m^2. Three corrections follow, each for an effect that made
the plain interval too narrow (figures: docs/statistics.md):

1. Cycles of one worker follow each other alike. The lag-1 correlation, pooled over workers and
   freed of its small-sample bias (Marriott and Pope 1954), inflates the variance as for a
   first-order autoregression.
2. With few cycles a worker that correlation cannot be estimated; the spread between workers can,
   and the larger of the two counts.
3. Workers fluctuate together (heat, a shared disk). When the sum of all scatters more than its
   parts explain, by twice the standard error of such a ratio, the interval comes from the sum:
   batch means, corrected for correlation likewise.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import INNER, Count, Unbounded, named_in_documents
from scaletest.model.writing import Written
from scaletest.stats.completions import Completions
from scaletest.stats.estimate import Estimate
from scaletest.stats.student import t95

# Of one pass through a step; of every worker two, since the first starts a cycle.
MIN_COMPLETIONS = 4
MIN_COMPLETIONS_PER_WORKER = 2
# Above, the autocorrelation of one worker's cycles is known well enough.
FEW_CYCLES = 20
# The spread between fewer workers than this says nothing about them.
FEWEST_WORKERS = 4
# Parts of the time in which the sum of all workers is compared with what each does.
FEWEST_BATCHES = 4
MOST_BATCHES = 100
# With so many, the sum alone has an interval by batch means.
LEAST_BATCHES = 16
MOST_CORRELATION = 0.95
# Standard errors that are added to an estimated correlation: in a verdict, and in checks while
# measuring.
ADDED_ERRORS = 0.25
CAUTIOUS_ERRORS = 2.0
# What correlation leaves of the variance of a series about its own mean is this part at least.
LEAST_VARIANCE_LEFT = 0.05


@dataclass(frozen=True, slots=True)
class Throughput(Written):
    """Requests per second with the half-width of its 95 % interval."""

    per_s: Annotated[Unbounded, named_in_documents("throughput_per_s"), "requests per second"]
    half_width: Annotated[
        Unbounded,
        named_in_documents("half_width_per_s"),
        "half of the 95 % interval; null without enough completions",
    ]
    completions: Annotated[Count, "successful requests counted"]
    freedom: Annotated[int, INNER, "degrees of freedom behind the interval."]
    enough: Annotated[bool, "whether there are completions enough for the rate to be evidence"]

    @property
    def estimate(self) -> Estimate:
        """The rate with its 95 % interval, which ends at 0."""
        low = max(0.0, self.per_s - self.half_width)
        return Estimate(self.per_s, low, self.per_s + self.half_width)

    @property
    def relative(self) -> float:
        """Half-width over rate; infinity when the rate is 0."""
        return self.half_width / self.per_s if self.per_s > 0 else math.inf

    @property
    def error(self) -> float:
        """The relative standard error."""
        return self.relative / t95(max(1, self.freedom))


@dataclass(frozen=True, slots=True)
class MeanError:
    """How well a throughput is known."""

    error: float  # standard error, in requests/s
    freedom: float  # degrees of freedom behind it

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval."""
        return t95(max(1, int(self.freedom))) * self.error


def throughput(completions: Completions, workers: int, *, cautious: bool = False) -> Throughput:
    """Return the throughput of one pass through a step from its completions without the warm-up.

    cautious: take the correlation two standard errors higher than estimated, for checks while
    measuring.
    """
    begin_s, end_s = completions.span
    enough = has_completed(completions, workers, MIN_COMPLETIONS, MIN_COMPLETIONS_PER_WORKER)
    if not enough or end_s <= begin_s:
        # to show while there is too little for an interval: the sum of 1 / mean cycle
        means = [
            (times[-1] - times[0]) / (len(times) - 1)
            for times in completions.by_worker.values()
            if len(times) > 1
        ]
        rough = sum(1.0 / mean for mean in means if mean > 0)
        return Throughput(
            rough, half_width=math.inf, completions=completions.total, freedom=0, enough=False
        )
    if completions.fewest >= 3:
        estimate = _estimate_by_worker(completions, cautious=cautious)
        if len(completions.by_worker) > 1:
            estimate = _estimate_together(completions, estimate)
    else:
        # from all cycles together where a worker has only one; workers that are not alike make the
        # scatter larger
        cycles_s = completions.all_cycles
        error = completions.rate * error_of_mean([cycles_s]) / statistics.fmean(cycles_s)
        estimate = MeanError(error, len(cycles_s) - 1)
    freedom = max(1, int(estimate.freedom))
    return Throughput(
        completions.rate,
        half_width=estimate.half_width,
        completions=completions.total,
        freedom=freedom,
        enough=True,
    )


def has_completed(completions: Completions, workers: int, total: int, per_worker: int) -> bool:
    """Return whether there are `total` completions, and `per_worker` of each of `workers`."""
    return (
        len(completions.by_worker) >= workers
        and completions.fewest >= per_worker
        and completions.total >= total
    )


def least_per_worker(workers: int) -> int:
    """Return how many completions of each worker are enough, where all complete as many."""
    return max(MIN_COMPLETIONS_PER_WORKER, math.ceil(MIN_COMPLETIONS / workers))


def error_of_mean(series: Sequence[Sequence[float]]) -> float:
    """Return the standard error of the mean of all cycles; infinite for fewer than two cycles.

    series: the cycles of each worker, in s. Corrected for correlation as correction 1 says. Workers
    count as alike: where they are not, the error is too large.
    """
    all_cycles = list(itertools.chain.from_iterable(series))
    if len(all_cycles) < 2:
        return math.inf
    deviations = [_deviations(cycles) for cycles in series if cycles]
    inflation = _variance_inflation(
        _pooled_correlation(deviations), statistics.fmean(map(len, deviations))
    )
    return math.sqrt(statistics.variance(all_cycles) / len(all_cycles) * inflation)


def _deviations(series: Sequence[float]) -> list[float]:
    """Return each number less the mean of all."""
    mean = statistics.fmean(series)
    return [number - mean for number in series]


def relative_spread(completions: Completions) -> float | None:
    """Return the standard deviation of all cycles over their mean; None for fewer than two."""
    cycles_s = completions.all_cycles
    if len(cycles_s) < 2 or not any(cycles_s):
        return None
    return statistics.stdev(cycles_s) / statistics.fmean(cycles_s)


def _estimate_by_worker(completions: Completions, *, cautious: bool) -> MeanError:
    """Estimate from every worker's own cycles, two at least: corrections 1 and 2."""
    begin_s, end_s = completions.span
    span_s = end_s - begin_s
    variance = 0.0
    freedom = 0
    deviations: list[list[float]] = []
    for worker, done in completions.done_by_worker.items():
        cycles = completions.cycles[worker]
        mean = statistics.fmean(cycles)
        variance += done * statistics.variance(cycles, mean) / mean**2
        freedom += len(cycles) - 1
        deviations.append([(cycle - mean) / mean for cycle in cycles])
    correlation = _pooled_correlation(deviations, cautious)
    mean_cycles = statistics.fmean(map(len, deviations))
    within = MeanError(
        math.sqrt(variance * _variance_inflation(correlation, mean_cycles)) / span_s,
        _freedom_left(freedom, correlation),
    )
    workers = len(deviations)
    if mean_cycles >= FEW_CYCLES or workers < FEWEST_WORKERS:
        return within
    spread = statistics.stdev(completions.done_by_worker.values())
    between = MeanError(spread * math.sqrt(workers) / span_s, workers - 1)
    return between if between.error > within.error else within


def _estimate_together(completions: Completions, by_worker: MeanError) -> MeanError:
    """Estimate from the sum of all workers where it scatters more than they do: correction 3.

    by_worker: the estimate from each by itself, which is returned where it is the wider one.
    """
    batches = max(FEWEST_BATCHES, min(MOST_BATCHES, completions.fewest - 1))
    rates_by_worker = completions.rates_by_worker(batches)
    together = [sum(rates) for rates in zip(*rates_by_worker, strict=True)]
    variance_apart = sum(map(statistics.variance, rates_by_worker))
    excess = statistics.variance(together) / variance_apart if variance_apart > 0 else 1.0
    if excess <= 1.0 + 2.0 * math.sqrt(2.0 / (batches - 1)):  # by chance
        return by_worker
    candidates = [by_worker, MeanError(by_worker.error * math.sqrt(excess), batches - 1)]
    if batches >= LEAST_BATCHES:
        candidates.append(estimate_batches(together))
    return max(candidates, key=lambda candidate: candidate.half_width)


def estimate_batches(rates: Sequence[float]) -> MeanError:
    """Return the error of the mean of batches that follow each other, and may be alike."""
    count = len(rates)
    correlation = _pooled_correlation([_deviations(rates)])
    spread = statistics.stdev(rates) / math.sqrt(count)
    error = spread * math.sqrt(_variance_inflation(correlation, count))
    return MeanError(error, _freedom_left(count - 1, correlation))


def _pooled_correlation(deviations: Sequence[Sequence[float]], cautious: bool = False) -> float:
    """Return the lag-1 correlation pooled over series of deviations from means, from 0 to 0.95.

    Its bias is -(1 + 3 r) / n in a series of n (Marriott and Pope 1954). Its standard error is
    1 / sqrt(all n): a part of it is added, since too low a correlation makes intervals too narrow
    while too high a one only costs time.

    A short series of n shows no correlation that lasts longer than itself, (1 + r) / (1 - r) > n:
    beyond that the corrected bias leaves less than one degree of freedom, and intervals wider than
    any throughput.
    """
    products, squares = 0.0, 0.0
    for series in deviations:
        products += sum(earlier * later for earlier, later in itertools.pairwise(series))
        squares += sum(deviation**2 for deviation in series) * (len(series) - 1) / len(series)
    if squares <= 0:
        return 0.0
    raw = products / squares
    counts = [len(series) for series in deviations]
    length = statistics.fmean(counts)
    most = MOST_CORRELATION if length >= FEW_CYCLES else (length - 1) / (length + 1)
    unbiased = raw + (1 + 3 * raw) / length
    error = 1.0 / math.sqrt(sum(counts))
    if cautious:
        return min(most, max(0.0, unbiased) + CAUTIOUS_ERRORS * error)
    return min(most, max(0.0, unbiased + ADDED_ERRORS * error))


def _variance_inflation(correlation: float, count: float) -> float:
    """Return by which factor correlation makes the variance of a mean exceed s^2 / count.

    In a first-order autoregression it is v = 1 + 2 sum (1 - i / n) r^i (Law, Simulation Modeling
    and Analysis, 4.4), and s^2 itself is too small by (n - v) / (n - 1).
    """
    if correlation <= 0 or count < 2:
        return 1.0
    n = int(count)
    v = 1 + 2 * sum((1 - i / n) * correlation**i for i in range(1, n))
    return v / max((n - v) / (n - 1), LEAST_VARIANCE_LEFT)


def _freedom_left(freedom: float, correlation: float) -> float:
    """Return the degrees of freedom that correlated values have.

    Two at least: with one the interval would be three times as wide for the sake of a correlation
    that so few values hardly know.
    """
    return max(min(freedom, 2.0), freedom * (1 - correlation) / (1 + correlation))

"""Throughput from completions, with an interval that stays honest, and workers that stalled.

Completions are progress in time: between two of its completions a worker progresses evenly.

Progress has two virtues over counting completions in a window. It is not quantised: workers in
lockstep that finish a request every 30 s progress by exactly T / 30 in T seconds, wherever the
window begins. And it is unbiased for any distribution of run times: the part of a cycle that lies
before an instant is evenly distributed, so the loss at one end of the window equals the gain at the
other.

The rate is that progress in the time that all workers share. Its variance is built from the cycles
of each worker, c(i) = e(i+1) - e(i): a renewal process makes k = T / m cycles in T with variance k
s^2 / m^2. Three corrections follow, each for an effect that made the plain interval too narrow
(figures: docs/performance.md):

1. Cycles of one worker follow each other alike. The lag-1 correlation, pooled over workers and
   freed of its small-sample bias (Marriott and Pope 1954), inflates the variance as for a
   first-order autoregression.
2. With few cycles a worker that correlation cannot be estimated; the spread between workers can,
   and the larger of the two counts.
3. Workers fluctuate together (heat, a shared disk). When the sum of all scatters more than its
   parts explain, by twice the standard error of such a ratio, the interval comes from the sum:
   batch means, corrected for correlation likewise.

A worker that stopped while it was measured: its device or node was lost, or its workload hangs.

Throughput is counted in the time that all workers share, which ends with the first worker's last
completion. Workers that go on to the end leave about a cycle after that. One that stopped hides all
that came later, and the throughput is that of a system that no longer exists. So its silence must
not pass as the end of a step.

Amounts that requests report, per second: frames of transcodes, samples of training, bytes moved.

Work per second is requests per second times the mean work of the requests that are counted there,
so both rest on the same completions after the same warm-up, and a request that reports none has
done none. The relative errors of the two add in squares; requests of equal work add nothing to the
error of the throughput.

Rare slow requests: their number, their part in the mean, and how well both are known.

A request is slow that takes more than three times as long as its worker's requests usually do
(their median). The mean time between completions is then

    E = b (1 + p s)    b: mean of the usual ones, p: share of slow ones, s: their added time, in
                       units of b

A mean of few values says little of a rare event, and its standard error even less: where one
request in 50 takes 20 times as long, half of all steps of 35 requests hold none of them and look
precise. So b has the interval of a mean, and p that of a count: Wilson's score interval with
continuity correction (Newcombe 1998, Statistics in Medicine 17, 857, method 4), which is close to
the exact one. Steps that are compared share s, unless the slow requests of one are significantly
longer (Mann and Whitney, 1 %): then each step has its own.

The two intervals of a sum are joined by the method of variance estimates recovery (Zou and Donner
2008, Statistics in Medicine 27, 1693), which needs no symmetry. A kind of request that no step has
shown cannot be excluded: `unseen_share` says how frequent it may be.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.analysis.estimate import Estimate, mann_whitney, t95
from scaletest.model import Record
from scaletest.model.declared import INNER, Count, Unbounded, Written, called

# The clock of Redis counts microseconds: completions that are closer together have no rate.
RESOLUTION_S = 1e-6
# worker -> when it finished its successful requests, in Redis seconds, ascending
Ends = Mapping[str, Sequence[float]]


def ends_of(records: Iterable[Record]) -> dict[str, list[float]]:
    """The successful completions of each worker."""
    ends: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.ok:
            ends[record.reply.worker].append(record.reply.ended_s)
    return {worker: sorted(times) for worker, times in ends.items()}


def after(ends: Ends, cut_s: float) -> dict[str, Sequence[float]]:
    """The completions at or after `cut_s`; the first of each worker starts its first cycle."""
    return {worker: times[bisect_left(times, cut_s) :] for worker, times in ends.items()}


def span(ends: Ends) -> tuple[float, float]:
    """Where every worker's progress is known: from the latest first completion to the earliest last
    one, in s.

    (0, 0) when there is no such time.
    """
    full = [times for times in ends.values() if times]
    if not full:
        return 0.0, 0.0
    first, last = max(times[0] for times in full), min(times[-1] for times in full)
    return (first, last) if last - first > RESOLUTION_S else (0.0, 0.0)


def progress(ends: Ends, edges: Sequence[float]) -> list[float]:
    """Requests done between neighbouring edges, with fractions; edges ascend inside the span."""
    done = [0.0] * len(edges)
    for times in ends.values():
        done = [total + _at(times, edge) for total, edge in zip(done, edges, strict=True)]
    return cycles(done)


def rates(ends: Ends, first: float, last: float, bins: int) -> list[float]:
    """Throughput in `bins` equal parts of the time from `first` to `last`, in requests/s."""
    width = (last - first) / bins
    edges = [first + index * width for index in range(bins)] + [last]
    return [done / width for done in progress(ends, edges)]


def _at(times: Sequence[float], instant: float) -> float:
    """How many cycles a worker had done at `instant`."""
    index = bisect_right(times, instant)
    if index == 0:
        return 0.0
    if index == len(times):
        return index - 1.0
    before, behind = times[index - 1], times[index]
    return index - 1 + (instant - before) / (behind - before)


# Of one way through a step; of every worker two, since the first starts a cycle.
MIN_COMPLETIONS = 4
MIN_COMPLETIONS_PER_WORKER = 2
# Above, the autocorrelation of one worker's cycles is known well enough.
FEW_CYCLES = 20
MOST_BATCHES = 100
LEAST_BATCHES = 16
MOST_CORRELATION = 0.95


@dataclass(frozen=True, slots=True)
class Throughput(Written):
    """Requests per second with the half-width of its 95 % interval."""

    per_s: Annotated[Unbounded, called("throughput_per_s"), "requests per second"]
    half_width: Annotated[
        Unbounded,
        called("half_width_per_s"),
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
class _Estimate:
    """Standard error in requests/s, and its degrees of freedom."""

    error: float
    freedom: float

    @property
    def half_width(self) -> float:
        return t95(max(1, int(self.freedom))) * self.error


def throughput(ends: Ends, workers: int, *, cautious: bool = False) -> Throughput:
    """The throughput of one way through a step from the completions of its workers, without the
    warm-up.

    ends: by worker, in s. cautious: take the correlation two standard errors higher than estimated,
    for checks while measuring.
    """
    counts = [len(times) for times in ends.values()]
    first, last = span(ends)
    enough = completed(ends, workers, MIN_COMPLETIONS, MIN_COMPLETIONS_PER_WORKER)
    if not enough or last <= first:
        return Throughput(_rough(ends), math.inf, sum(counts), 0, False)
    rate = sum(progress(ends, (first, last))) / (last - first)
    estimate = _of_workers(ends, first, last, cautious)
    estimate = max(
        estimate,
        _in_common(ends, first, last, estimate),
        key=lambda candidate: candidate.half_width,
    )
    return Throughput(rate, estimate.half_width, sum(counts), max(1, int(estimate.freedom)), True)


def completed(ends: Ends, workers: int, total: int, per_worker: int) -> bool:
    """Whether there are `total` completions, and `per_worker` of each of `workers` workers."""
    counts = [len(times) for times in ends.values()]
    return len(counts) >= workers and min(counts, default=0) >= per_worker and sum(counts) >= total


def least_each(workers: int) -> int:
    """How many completions of each of `workers` workers are enough, where all complete as many."""
    return max(MIN_COMPLETIONS_PER_WORKER, math.ceil(MIN_COMPLETIONS / workers))


def cycles(times: Sequence[float]) -> list[float]:
    """The differences of neighbours: the times between a worker's completions, in s."""
    return [later - earlier for earlier, later in itertools.pairwise(times)]


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


def _deviations(series: Sequence[float]) -> list[float]:
    mean = statistics.fmean(series)
    return [number - mean for number in series]


def _all_cycles(ends: Ends) -> list[float]:
    """The cycles of all workers, in s."""
    return list(itertools.chain.from_iterable(cycles(times) for times in ends.values()))


def relative_spread(ends: Ends) -> float | None:
    """The standard deviation of all cycles over their mean; None for fewer than two."""
    seconds = _all_cycles(ends)
    if len(seconds) < 2 or not any(seconds):
        return None
    return statistics.stdev(seconds) / statistics.fmean(seconds)


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
        math.sqrt(variance * _inflation(correlation, each)) / long,
        _freedom_left(freedom, correlation),
    )
    if each >= FEW_CYCLES or len(done) < 4:
        return inner
    outer = _Estimate(statistics.stdev(done) * math.sqrt(len(done)) / long, len(done) - 1)
    return max(inner, outer, key=lambda estimate: estimate.error)


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
    excess = statistics.variance(whole) / apart if apart > 0 else 1.0
    if excess <= 1.0 + 2.0 * math.sqrt(2.0 / (batches - 1)):
        return own
    scaled = _Estimate(own.error * math.sqrt(excess), batches - 1)
    if batches < LEAST_BATCHES:
        return scaled
    correlation = _correlation([_deviations(whole)])
    spread = statistics.stdev(whole) / math.sqrt(batches)
    joint = _Estimate(
        spread * math.sqrt(_inflation(correlation, batches)),
        _freedom_left(batches - 1, correlation),
    )
    return max(scaled, joint, key=lambda candidate: candidate.half_width)


def _correlation(deviations: Sequence[Sequence[float]], cautious: bool = False) -> float:
    """Lag-1 correlation pooled over series of deviations from their means, from 0 to 0.95.

    Its bias is -(1 + 3 r) / n in a series of n (Marriott and Pope 1954). Its standard error is
    1 / sqrt(all n): a part of it is added, since too low a correlation makes intervals too narrow
    while too high a one only costs time.

    A short series of n shows no correlation that lasts longer than itself, (1 + r) / (1 - r) > n:
    beyond that the corrected bias leaves less than one degree of freedom, and intervals wider than
    any throughput.
    """
    products, squares = 0.0, 0.0
    for own in deviations:
        products += sum(before * behind for before, behind in itertools.pairwise(own))
        squares += sum(deviation**2 for deviation in own) * (len(own) - 1) / len(own)
    if squares <= 0:
        return 0.0
    raw = products / squares
    counts = [len(own) for own in deviations]
    length = statistics.fmean(counts)
    most = MOST_CORRELATION if length >= FEW_CYCLES else (length - 1) / (length + 1)
    unbiased = raw + (1 + 3 * raw) / length
    error = 1.0 / math.sqrt(sum(counts))
    if cautious:
        return min(most, max(0.0, unbiased) + 2.0 * error)
    return min(most, max(0.0, unbiased + 0.25 * error))


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


def _freedom_left(freedom: float, correlation: float) -> float:
    """The degrees of freedom that correlated values have.

    Two at least: with one the interval would be three times as wide for the sake of a correlation
    that so few values hardly know.
    """
    return max(min(freedom, 2.0), freedom * (1 - correlation) / (1 + correlation))


# In units of the longest cycle. With exponential run times and n cycles, a worker is silent for so
# long at the end of a step with probability n^-3.
LONGEST_CYCLES = 3.0
# A worker starves that waits for its first completion for longer than this part of a step, and for
# longer than this many requests take on average; and where all together do less than this many
# times as much as fewer workers did, or it may have met one of few slow requests.
STARVED_PART, STARVED_CYCLES, STARVED_RATIO = 0.5, 3.0, 1.25


@dataclass(frozen=True, slots=True)
class Stall:
    """The worker that was silent longest at the end of a step, and for how long, in seconds."""

    worker: str
    silent_s: float


def stall(ends: Ends) -> Stall | None:
    """The worker that stopped; None when all went on to the end of the step."""
    all_cycles = _all_cycles(ends)
    if len(ends) < 2 or not all_cycles or not all(ends.values()):
        return None
    worker = min(ends, key=lambda name: ends[name][-1])
    silent_s = max(times[-1] for times in ends.values()) - ends[worker][-1]
    if silent_s > LONGEST_CYCLES * max(all_cycles):
        return Stall(worker, silent_s)
    return None


@dataclass(frozen=True, slots=True)
class StarvedWorker:
    """A worker that others kept from what all of them share."""

    worker: str
    waited_s: float  # from the first completion of any worker to its own


def find_starved(ends: Ends) -> StarvedWorker | None:
    """Find the worker that waited for its first completion for most of the step; None without.

    A service that refuses requests beyond its limit lets those in that ask at the right moment, so
    that a few workers may have it for themselves.
    """
    if len(ends) < 2 or not all(ends.values()):
        return None
    begin_s, end_s = _under_load(ends)
    if end_s - begin_s <= RESOLUTION_S:
        return None
    worker = max(ends, key=lambda name: ends[name][0])
    waited_s = ends[worker][0] - begin_s
    cycle_s = len(ends) / rate_together(ends)
    if waited_s > max(STARVED_PART * (end_s - begin_s), STARVED_CYCLES * cycle_s):
        return StarvedWorker(worker, waited_s)
    return None


def rate_together(ends: Ends) -> float:
    """Completions a second of all workers, whoever finished them; 0 where there is no time."""
    begin_s, end_s = _under_load(ends)
    if end_s - begin_s <= RESOLUTION_S:
        return 0.0
    return (sum(bisect_right(times, end_s) for times in ends.values()) - 1) / (end_s - begin_s)


def _under_load(ends: Ends) -> tuple[float, float]:
    """From the first completion to the end of the load, when the first worker has no more to do
    while others may finish what they hold.
    """
    full = [times for times in ends.values() if times]
    if not full:
        return 0.0, 0.0
    return min(times[0] for times in full), min(times[-1] for times in full)


def deal_in_turn(ends: Ends) -> Ends:
    """Return the completions as if workers had finished them in turn: a cycle is N / throughput.

    Where a worker starves there is hardly a time in which the progress of every worker is known,
    although that of all together is.
    """
    times = sorted(itertools.chain.from_iterable(ends.values()))
    return {worker: times[index :: len(ends)] for index, worker in enumerate(ends)}


# Figures that are amounts of work, so that adding them up over requests makes sense.
FIGURES = ("frames", "samples", "bytes")
MEMORY_HITS = "memory_limit_hits"

Work = Mapping[str, Throughput]


def work(rate: Throughput, counted: Sequence[Record]) -> Work:
    """Work per second of every figure that a counted request reports, with its 95 % interval."""
    rates = {}
    for name in FIGURES:
        amounts = [_number(record.reply.figures.get(name)) for record in counted]
        if any(amounts):
            rates[name] = _times(rate, [amount or 0.0 for amount in amounts])
    return rates


def hits(rows: Sequence[Record]) -> int:
    """How many requests reached the limit of a device's memory, whether they failed or not."""
    return sum(bool(_number(record.reply.figures.get(MEMORY_HITS))) for record in rows)


def _times(rate: Throughput, amounts: Sequence[float]) -> Throughput:
    mean = statistics.fmean(amounts)
    error = math.inf
    if len(amounts) > 1:
        error = (
            t95(len(amounts) - 1) * statistics.stdev(amounts, mean) / mean / math.sqrt(len(amounts))
        )
    per_s = rate.per_s * mean
    return Throughput(
        per_s, per_s * math.hypot(rate.relative, error), rate.completions, rate.freedom, rate.enough
    )


def _number(value: object) -> float | None:
    """A figure as a number. Figures come from programs: text and negative amounts give None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value > 0 else None


SLOW = 3.0
# A worker with fewer cycles borrows the median of all workers.
OWN_MEDIAN = 5
# Slow requests of two steps differ when chance makes such a difference in one of a hundred cases.
DIFFERENT = 0.01
# A cycle of more usual requests than this was a standstill; a list of them would take memory.
MOST_FILLED = 10_000
_NORMAL = t95(math.inf)


@dataclass(frozen=True, slots=True)
class Tail:
    """The slow requests of one step, or of parts of it.

    usual: cycles that were not slow. usual_s: their mean length in s. error: relative standard
    error of that mean. excess: of every slow cycle how much longer it was than usual_s, in units of
    usual_s.
    """

    usual: int
    usual_s: float
    error: float
    excess: tuple[float, ...]

    @property
    def slow(
        self,
    ) -> Annotated[Count, "requests that took more than three times as long as usual"]:
        """How many were slow."""
        return len(self.excess)

    @property
    def count(self) -> int:
        """How many there were in all."""
        return self.usual + self.slow

    @property
    def share(self) -> float:
        """The part that was slow."""
        return self.slow / max(1, self.count)

    def unseen_share(self) -> float:
        """The largest share of a sort of request that did not occur, wrong in 5 % of cases."""
        return 1.0 - math.pow(0.05, 1.0 / self.count) if self.count else 1.0


def tail(ends: Ends) -> Tail:
    """The slow requests among these completions."""
    limits = _limits(ends)
    usual_cycles: list[list[float]] = []
    slow: list[float] = []
    for worker, limit in limits.items():
        own = cycles(ends[worker])
        usual_cycles.append([cycle for cycle in own if cycle <= limit])
        slow += [cycle for cycle in own if cycle > limit]
    flat = list(itertools.chain.from_iterable(usual_cycles))
    mean = statistics.fmean(flat) if flat else 0.0
    if mean <= 0:
        return Tail(0, 0.0, math.inf, ())
    return Tail(
        len(flat),
        mean,
        error_of_mean(usual_cycles) / mean,
        tuple(cycle / mean - 1.0 for cycle in slow),
    )


def usual(ends: Ends) -> Ends:
    """The completions as if slow cycles had been usual ones.

    For tests whether a step changes along its time. Where nothing is slow these are `ends`.
    """
    limits = _limits(ends)
    if not any(max(cycles(ends[worker])) > limit for worker, limit in limits.items()):
        return ends
    usual_s = tail(ends).usual_s
    return {worker: _filled(ends[worker], limits.get(worker, math.inf), usual_s) for worker in ends}


def _filled(times: Sequence[float], limit: float, usual_s: float) -> list[float]:
    """Completions of one worker with usual ones, evenly spaced, in the place of each slow cycle."""
    filled = list(times[:1])
    for cycle, end in zip(cycles(times), times[1:], strict=True):
        slow = cycle > limit and usual_s > 0
        count = round(min(MOST_FILLED, max(1.0, cycle / usual_s))) if slow else 1
        begin = filled[-1]
        filled += [begin + (end - begin) * index / count for index in range(1, count)]
        filled.append(end)
    return filled


def _limits(ends: Ends) -> dict[str, float]:
    """The length in s from which a cycle is slow, of every worker that has one."""
    series = {worker: cycles(times) for worker, times in ends.items() if len(times) > 1}
    if not series:
        return {}
    median = statistics.median(itertools.chain.from_iterable(series.values()))
    limits = {}
    for worker, own in series.items():
        own_median = statistics.median(own) if len(own) >= OWN_MEDIAN else median
        limits[worker] = SLOW * own_median
    return limits


def joined_tails(tails: Sequence[Tail]) -> Tail:
    """The slow requests of several parts of one step together."""
    count = sum(part.usual for part in tails)
    if not count:
        return Tail(0, 0.0, math.inf, ())
    mean = sum(part.usual * part.usual_s for part in tails) / count
    errors = (part.usual * part.usual_s * part.error for part in tails if part.usual)
    excess = tuple(itertools.chain.from_iterable(part.excess for part in tails))
    return Tail(count, mean, math.hypot(*errors) / (count * mean), excess)


def slowdowns(first: Tail, second: Tail, z: float) -> tuple[Estimate, Estimate]:
    """By how much the slow requests of two steps lengthen their means: logarithms of 1 + p s, with
    bounds.

    z: quantile of the normal distribution for each bound.
    """
    sizes = first.excess + second.excess
    if not sizes:
        return Estimate(0.0, 0.0, 0.0), Estimate(0.0, 0.0, 0.0)
    test = mann_whitney(first.excess, second.excess)
    if test and test.p < DIFFERENT:
        return _slowdown(first, first.excess, z, own=True), _slowdown(
            second, second.excess, z, own=True
        )
    return _slowdown(first, sizes, z), _slowdown(second, sizes, z)


def _slowdown(tail_: Tail, sizes: Sequence[float], z: float, own: bool = False) -> Estimate:
    size = statistics.fmean(sizes)
    low, high = share_bounds(tail_.slow, tail_.count, z)
    log_slowdown = math.log1p(tail_.share * size)
    below, above = log_slowdown - math.log1p(low * size), math.log1p(high * size) - log_slowdown
    if own and len(sizes) > 1:
        part = tail_.share * size / (1.0 + tail_.share * size)
        size_error = z * part * statistics.stdev(sizes) / (size * math.sqrt(len(sizes)))
        below, above = math.hypot(below, size_error), math.hypot(above, size_error)
    return Estimate(log_slowdown, log_slowdown - below, log_slowdown + above)


def share_bounds(count: int, total: int, z: float) -> tuple[float, float]:
    """Bounds of a share, from `count` in `total`: Wilson's with continuity correction."""
    if total <= 0:
        return 0.0, 1.0
    share, square = count / total, z * z
    below = 4.0 * share * (total * (1.0 - share) + 1.0) + square - 2.0 - 1.0 / total
    above = 4.0 * share * (total * (1.0 - share) - 1.0) + square + 2.0 - 1.0 / total
    middle, width = 2.0 * total * share + square, 2.0 * (total + square)
    low = (middle - 1.0 - z * math.sqrt(max(0.0, below))) / width if count else 0.0
    high = (middle + 1.0 + z * math.sqrt(max(0.0, above))) / width if count < total else 1.0
    return max(0.0, low), min(1.0, high)

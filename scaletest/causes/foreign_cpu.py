"""Cores that other programs use, by the samples of a node and what its requests report.

Other programs have the cores that are busy beyond the CPU time that the requests themselves used. A
request reports its CPU seconds as a whole, not when it used them, so only cores beyond the CPU time
of all requests that touch a span of time count, and the span is four times as long as requests are.
Where the tester itself costs a notable part of a request, it is one of the other programs; then
only cores beyond the usual number of the same measurement count.
"""

import itertools
import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scaletest.model import Record
from scaletest.model.node_sample import CPU, NodeSample

# Cores that other programs use: part of all cores, and number of cores, from which they disturb.
FOREIGN_PART, FOREIGN_CORES = 0.15, 0.25
# The tester is one of the other programs beyond this part of a request's time, as in the warning.
TESTER_SHARE = 0.02
# A span is so long at least, and so many run times.
LEAST_SPAN_S, RUNS_IN_SPAN = 2.0, 4.0


@dataclass(frozen=True, slots=True)
class Span:
    """Some time of one node, the figure in it, and whether it is surely a disturbance."""

    begin_s: float
    end_s: float
    value: float
    disturbed: bool
    certain: bool


def foreign_cores(
    samples: Sequence[NodeSample], rows: Sequence[Record], cores: float, tester_share: float
) -> Iterator[Span]:
    """Yield the cores of a node that other programs use, in spans as long as requests need.

    samples: of that node. rows: what it served. tester_share: the part of a request's time that the
    tester costs.
    """
    rates = _cpu_rates(rows)
    if not cores or any(record.reply.worker not in rates for record in rows):
        return
    requests_cpu = _RequestsCpu(rows, rates)
    run_times_s = sorted(record.reply.run_s for record in rows)
    long_run_s = run_times_s[int(0.9 * len(run_times_s))]
    spans = list(_long_spans(samples, max(LEAST_SPAN_S, RUNS_IN_SPAN * long_run_s)))
    if not spans:
        return
    # the cores that are busy beyond those of requests: their most likely number, and the fewest
    likely, least = [], []
    for span in spans:
        busy = _mean_busy_cores(span)
        fewest, most = requests_cpu.cores_between(begin_of(span[0]), span[-1].at_s)
        likely.append(busy - (fewest + most) / 2.0)
        least.append(busy - most)
    limit = max(FOREIGN_PART * cores, FOREIGN_CORES)
    if tester_share > TESTER_SHARE:
        limit += max(0.0, statistics.median(likely))
    # a span overlaps the next ones, and stands for the sample in its middle
    middles = [span[len(span) // 2] for span in spans]
    begins = [begin_of(spans[0][0]), *(begin_of(sample) for sample in middles[1:])]
    ends = [*(sample.at_s for sample in middles[:-1]), spans[-1][-1].at_s]
    for begin_s, end_s, others, surely in zip(begins, ends, likely, least, strict=True):
        yield Span(begin_s, end_s, min(cores, others), others >= limit, surely >= limit)


def _long_spans(samples: Sequence[NodeSample], seconds: float) -> Iterator[Sequence[NodeSample]]:
    """Yield neighbouring samples that cover so many seconds, one such span from each sample on."""
    known = [
        sample
        for sample in samples
        if sample.interval_s > 0 and sample.value(CPU, "user") is not None
    ]
    end = 0
    for first, sample in enumerate(known):
        end = max(end, first)  # intervals overlap where two workers sampled at once
        while end < len(known) and known[end].at_s - begin_of(sample) < seconds:
            end += 1
        if end == len(known):
            return
        yield known[first : end + 1]


def _mean_busy_cores(samples: Sequence[NodeSample]) -> float:
    """Return the cores that ran programs or the kernel."""
    busy_s = 0.0
    for sample in samples:
        cores = (sample.value(CPU, "user") or 0.0) + (sample.value(CPU, "system") or 0.0)
        busy_s += cores * sample.interval_s
    return busy_s / sum(sample.interval_s for sample in samples)


def begin_of(sample: NodeSample) -> float:
    """Return when the interval of a sample began, on Redis's clock."""
    return sample.at_s - sample.interval_s


class _RequestsCpu:
    """The CPU time of requests: of those that ended, or had started, by some time, as sums."""

    def __init__(self, rows: Sequence[Record], rates: Mapping[str, float]) -> None:
        """rates: cores that a request uses, by worker, for requests that do not say it."""
        used = []
        for reply in (record.reply for record in rows):
            cpu_s = reply.activity.cpu_s if reply.activity else rates[reply.worker] * reply.run_s
            used.append((reply, cpu_s))
        self._starts = _Sums((reply.started_s, cpu_s) for reply, cpu_s in used)
        self._ends = _Sums((reply.ended_s, cpu_s) for reply, cpu_s in used)

    def cores_between(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """Return the fewest and the most cores that requests can have used then."""
        most = self._starts.before(end_s) - self._ends.before(begin_s)
        at_begin = self._starts.before(begin_s) - self._ends.before(begin_s)
        at_end = self._starts.before(end_s) - self._ends.before(end_s)
        seconds = end_s - begin_s
        return max(0.0, most - at_begin - at_end) / seconds, most / seconds


class _Sums:
    """Amounts at times, added up."""

    def __init__(self, amounts: Iterable[tuple[float, float]]) -> None:
        ordered = sorted(amounts)
        self._times = [at_s for at_s, _ in ordered]
        self._sums = [0.0, *itertools.accumulate(amount for _, amount in ordered)]

    def before(self, at_s: float) -> float:
        """Return the sum of the amounts before that time."""
        return self._sums[bisect_left(self._times, at_s)]


def _cpu_rates(rows: Sequence[Record]) -> dict[str, float]:
    """Cores that the requests of each worker use on average, where some of them report it."""
    cpu_s: dict[str, float] = defaultdict(float)
    run_s: dict[str, float] = defaultdict(float)
    for record in rows:
        if record.reply.activity is not None:
            cpu_s[record.reply.worker] += record.reply.activity.cpu_s
            run_s[record.reply.worker] += record.reply.run_s
    # requests that took no time used no core
    return {worker: cpu_s[worker] / (seconds or math.inf) for worker, seconds in run_s.items()}

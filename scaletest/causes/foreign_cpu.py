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
TESTER = 0.02
LEAST_SPAN_S = 2.0
RUNS_IN_SPAN = 4.0


@dataclass(frozen=True, slots=True)
class Span:
    """Some time of one node, the figure in it, and whether it is surely a disturbance."""

    begin_s: float
    end_s: float
    value: float
    disturbed: bool
    certain: bool


def foreign_cores(
    samples: Sequence[NodeSample], rows: Sequence[Record], cores: float, tester: float
) -> Iterator[Span]:
    """Cores of a node that other programs use, in spans as long as requests need."""
    rates = _cpu_rates(rows)
    if not cores or any(record.reply.worker not in rates for record in rows):
        return
    own = _OwnCpu(rows, rates)
    run_s = rows[0].reply.run_s
    if len(rows) > 1:
        run_s = statistics.quantiles([record.reply.run_s for record in rows], n=10)[-1]
    spans = list(_spans(samples, max(LEAST_SPAN_S, RUNS_IN_SPAN * run_s)))
    if not spans:
        return
    used = [(busy, *own.between(begin_of(first), last.at_s)) for first, _, last, busy in spans]
    limit = max(FOREIGN_PART * cores, FOREIGN_CORES)
    if tester > TESTER:
        limit += max(
            0.0, statistics.median(busy - (least + most) / 2.0 for busy, least, most in used)
        )
    begins = [begin_of(middle) for _, middle, _, _ in spans]
    ends = [middle.at_s for _, middle, _, _ in spans]
    begins[0], ends[-1] = begin_of(spans[0][0]), spans[-1][2].at_s
    for begin_s, end_s, (busy, least, most) in zip(begins, ends, used, strict=True):
        others = busy - (least + most) / 2.0
        yield Span(begin_s, end_s, min(cores, others), others >= limit, busy - most >= limit)


def _spans(
    samples: Sequence[NodeSample], seconds: float
) -> Iterator[tuple[NodeSample, NodeSample, NodeSample, float]]:
    """Neighbouring samples that cover so many seconds: first, middle, last, and mean of busy cores.

    One from each sample on that has a figure of busy cores.
    """
    known = [
        sample
        for sample in samples
        if sample.interval_s > 0 and sample.value(CPU, "user") is not None
    ]
    # the cores of all programs and the kernel
    busy_s = (
        ((sample.value(CPU, "user") or 0.0) + (sample.value(CPU, "system") or 0.0))
        * sample.interval_s
        for sample in known
    )
    used_s = [0.0, *itertools.accumulate(busy_s)]
    whole_s = [0.0, *itertools.accumulate(sample.interval_s for sample in known)]
    last = 0
    for first, sample in enumerate(known):
        while last < len(known) and known[last].at_s - begin_of(sample) < seconds:
            last += 1
        if last == len(known):
            return
        busy = (used_s[last + 1] - used_s[first]) / (whole_s[last + 1] - whole_s[first])
        yield sample, known[(first + last + 1) // 2], known[last], busy


def begin_of(sample: NodeSample) -> float:
    """Return when the interval of a sample began, on Redis's clock."""
    return sample.at_s - sample.interval_s


class _OwnCpu:
    """The CPU time of requests: of those that ended, or had started, by some time, as sums."""

    def __init__(self, rows: Sequence[Record], rates: Mapping[str, float]) -> None:
        """rates: cores that a request uses, by worker, for requests that do not say it."""
        used = []
        for reply in (record.reply for record in rows):
            cpu_s = reply.activity.cpu_s if reply.activity else rates[reply.worker] * reply.run_s
            used.append((reply, cpu_s))
        self._starts = _Sums((reply.started_s, cpu_s) for reply, cpu_s in used)
        self._ends = _Sums((reply.ended_s, cpu_s) for reply, cpu_s in used)

    def between(self, begin_s: float, end_s: float) -> tuple[float, float]:
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

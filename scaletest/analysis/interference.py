"""Disturbances of a run from outside, by the samples of its nodes: their kind, place and time.

Other programs: the cores that are busy beyond the CPU time that the requests themselves used. A
request reports its CPU seconds as a whole, not when it used them, so only cores beyond the CPU time
of all requests that touch a span of time count, and the span is four times as long as requests are.
Where the tester itself costs a notable part of a request, it is one of the other programs; then
only cores beyond the usual number of the same measurement count.
"""

from __future__ import annotations

import itertools
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.node_text import clock_text, cores_text
from scaletest.analysis.steps import Rows, Step
from scaletest.model import Record, Reply
from scaletest.model.node_sample import CPU, DEVICE, PRESSURE, NodeSample

# Cores that other programs use: part of all cores, and number of cores, from which they disturb.
FOREIGN_PART, FOREIGN_CORES = 0.15, 0.25
# The tester is one of the other programs beyond this part of a request's time, as in the warning.
TESTER = 0.02
STOLEN = 0.05
# Relative fall of clocks, and rise of pressure, that disturb.
CLOCK_FELL, PRESSURE_ROSE = 0.10, 0.30
# Shorter disturbances are not reported. A span for other programs is at least LEAST_SPAN_S long,
# and RUNS_IN_SPAN run times.
SHORTEST_S = 1.5
LEAST_SPAN_S = 2.0
RUNS_IN_SPAN = 4.0
MOST_SPELLS = 8


@dataclass(frozen=True, slots=True)
class Interference:
    """One disturbance.

    kind: other programs, steal, pressure, heat, clock, device. begin_s, end_s: on Redis's clock.
    cost: the part of the node that it took, for ranking.
    """

    kind: str
    node: str
    begin_s: float
    end_s: float
    cost: float
    text: str

    @property
    def weight(self) -> float:
        """The part of the node that it took, times seconds, for ranking."""
        return self.cost * (self.end_s - self.begin_s)

    @property
    def sentence(self) -> str:
        """A sentence with its time and its figure."""
        return f"from {clock_text(self.begin_s)} to {clock_text(self.end_s)} UTC {self.text}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "sentence": self.sentence}


@dataclass(frozen=True, slots=True)
class _Span:
    """Some time of one node, the figure in it, and whether it is surely a disturbance."""

    begin_s: float
    end_s: float
    value: float
    disturbed: bool
    certain: bool


def interferences(
    steps: Sequence[Step], records: Rows, samples: Sequence[NodeSample]
) -> list[Interference]:
    """The disturbances of a run, in the order of time; the costliest where there are too many."""
    by_node: dict[str, list[NodeSample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda sample: sample.at_s):
        by_node[sample.node].append(sample)
    several = len(by_node) > 1
    spells: list[Interference] = []
    for step in steps:
        for measured in step.samples:
            rows = records.get(measured.measurement.key, ())
            last_s = max((record.reply.ended_s for record in rows), default=0.0)
            for node, own in by_node.items():
                inside = _inside(own, measured.began_s, last_s)
                served = [
                    record for record in rows if record.reply.node == node and record.reply.ended_s
                ]
                if served and len(inside) > 1:
                    where = ""
                    if several:
                        where = f" on {node}"
                    spells += _of_node(node, where, inside, served, step.overhead_share)
    costliest = sorted(spells, key=lambda spell: -spell.weight)[:MOST_SPELLS]
    return sorted(costliest, key=lambda spell: spell.begin_s)


def _inside(samples: Sequence[NodeSample], begin_s: float, end_s: float) -> list[NodeSample]:
    """The samples whose whole interval lies in that time."""
    return [sample for sample in samples if begin_s < _begin(sample) and sample.at_s < end_s]


def between(spells: Sequence[Interference], begin_s: float, end_s: float) -> Interference | None:
    """The costliest disturbance that touches that time; None where there is none."""
    touching = [spell for spell in spells if spell.begin_s < end_s and spell.end_s > begin_s]
    return max(touching, key=lambda spell: spell.cost, default=None)


def _of_node(
    node: str, where: str, samples: Sequence[NodeSample], rows: Sequence[Record], tester: float
) -> Iterator[Interference]:
    """The disturbances of one node during one measurement."""
    cores = max(0.0, samples[-1].value(CPU, "cores") or 0.0)
    for spell in _spells(_foreign(samples, rows, cores, tester)):
        text = f"other programs used {cores_text(spell.value, cores)}{where}"
        yield Interference(
            "other programs", node, spell.begin_s, spell.end_s, spell.value / cores, text
        )
    for spell in _spells(_levels(samples, CPU, "steal", STOLEN * cores)) if cores else ():
        text = f"the hypervisor took {cores_text(spell.value, cores)}{where}"
        yield Interference("steal", node, spell.begin_s, spell.end_s, spell.value / cores, text)
    for spell in _spells(_levels(samples, CPU, "heat_throttled", 1e-9)):
        text = f"heat lowered a CPU's clock{where} {spell.value:.1f} times a second"
        yield Interference("heat", node, spell.begin_s, spell.end_s, 0.1, text)
    yield from _changes(node, where, samples)
    devices: set[str] = set()
    for sample in samples:
        devices.update(sample.of_kind(DEVICE))
    for name in sorted(devices):
        for spell in _spells(_levels(samples, f"{DEVICE}:{name}", "throttled", 0.5)):
            text = f"heat, power or another limit lowered the clock of {name}{where}"
            yield Interference("device", node, spell.begin_s, spell.end_s, 0.1, text)


def _changes(node: str, where: str, samples: Sequence[NodeSample]) -> Iterator[Interference]:
    """Clocks that are lower, and pressure that is higher, than in most of the measurement."""
    usual = _median(samples, CPU, "frequency")
    clocks = _levels(samples, CPU, "frequency", usual * (1.0 - CLOCK_FELL), above=False)
    for spell in _spells(clocks) if usual > 0 else ():
        text = (
            f"the clocks{where} were at {spell.value:.0%} of their highest, usually at {usual:.0%}"
        )
        yield Interference(
            "clock", node, spell.begin_s, spell.end_s, 1.0 - spell.value / usual, text
        )
    for figure, name in (("cpu_some", "CPUs"), ("memory_some", "memory"), ("io_some", "disks")):
        usual = _median(samples, PRESSURE, figure)
        for spell in _spells(_levels(samples, PRESSURE, figure, usual + PRESSURE_ROSE)):
            text = f"the pressure on {name}{where} was {spell.value:.0%}, usually {usual:.0%}"
            yield Interference(
                "pressure", node, spell.begin_s, spell.end_s, spell.value - usual, text
            )


def _levels(
    samples: Sequence[NodeSample], resource: str, figure: str, limit: float, *, above: bool = True
) -> Iterator[_Span]:
    """A span for each sample with the figure; disturbed where it is beyond the limit."""
    for sample in samples:
        value = sample.value(resource, figure)
        if value is not None:
            disturbed = (value >= limit) is above
            yield _Span(sample.at_s - sample.interval_s, sample.at_s, value, disturbed, disturbed)


def _median(samples: Sequence[NodeSample], resource: str, figure: str) -> float:
    """The usual value of a figure; 0 where no sample has it."""
    readings = [sample.value(resource, figure) for sample in samples]
    known = [reading for reading in readings if reading is not None]
    if not known:
        return 0.0
    return statistics.median(known)


def _foreign(
    samples: Sequence[NodeSample], rows: Sequence[Record], cores: float, tester: float
) -> Iterator[_Span]:
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
    used = [(busy, *own.between(_begin(first), last.at_s)) for first, _, last, busy in spans]
    limit = max(FOREIGN_PART * cores, FOREIGN_CORES)
    if tester > TESTER:
        usual = statistics.median(busy - (least + most) / 2.0 for busy, least, most in used)
        limit += max(0.0, usual)
    begins = [_begin(middle) for _, middle, _, _ in spans]
    ends = [middle.at_s for _, middle, _, _ in spans]
    begins[0], ends[-1] = _begin(spans[0][0]), spans[-1][2].at_s
    for begin_s, end_s, (busy, least, most) in zip(begins, ends, used, strict=True):
        others = busy - (least + most) / 2.0
        yield _Span(begin_s, end_s, min(cores, others), others >= limit, busy - most >= limit)


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
    used_s = [0.0, *itertools.accumulate(_busy_s(sample) for sample in known)]
    whole_s = [0.0, *itertools.accumulate(sample.interval_s for sample in known)]
    last = 0
    for first, sample in enumerate(known):
        while last < len(known) and known[last].at_s - _begin(sample) < seconds:
            last += 1
        if last == len(known):
            return
        busy = (used_s[last + 1] - used_s[first]) / (whole_s[last + 1] - whole_s[first])
        yield sample, known[(first + last + 1) // 2], known[last], busy


def _begin(sample: NodeSample) -> float:
    return sample.at_s - sample.interval_s


def _busy_s(sample: NodeSample) -> float:
    """CPU seconds of all programs and the kernel in a sample's interval."""
    return (
        (sample.value(CPU, "user") or 0.0) + (sample.value(CPU, "system") or 0.0)
    ) * sample.interval_s


class _OwnCpu:
    """The CPU time of requests: of those that ended, or had started, by some time, as sums."""

    def __init__(self, rows: Sequence[Record], rates: Mapping[str, float]) -> None:
        """rates: cores that a request uses, by worker, for requests that do not say it."""
        used_s = [_cpu_s(record.reply, rates) for record in rows]
        starts = [record.reply.started_s for record in rows]
        ends = [record.reply.ended_s for record in rows]
        self._starts = _Sums(list(zip(starts, used_s, strict=True)))
        self._ends = _Sums(list(zip(ends, used_s, strict=True)))

    def between(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """The fewest and the most cores that requests can have used then."""
        most = self._starts.before(end_s) - self._ends.before(begin_s)
        at_begin = self._starts.before(begin_s) - self._ends.before(begin_s)
        at_end = self._starts.before(end_s) - self._ends.before(end_s)
        seconds = end_s - begin_s
        return max(0.0, most - at_begin - at_end) / seconds, most / seconds


class _Sums:
    """Amounts at times, added up."""

    def __init__(self, amounts: Sequence[tuple[float, float]]) -> None:
        ordered = sorted(amounts)
        self._times = [at_s for at_s, _ in ordered]
        self._sums = [0.0, *itertools.accumulate(amount for _, amount in ordered)]

    def before(self, at_s: float) -> float:
        """The sum of the amounts before that time."""
        return self._sums[bisect_left(self._times, at_s)]


def _cpu_rates(rows: Sequence[Record]) -> dict[str, float]:
    """Cores that the requests of each worker use on average, where some of them report it."""
    cpu_s: dict[str, float] = defaultdict(float)
    run_s: dict[str, float] = defaultdict(float)
    for record in rows:
        if record.reply.activity is not None:
            cpu_s[record.reply.worker] += record.reply.activity.cpu_s
            run_s[record.reply.worker] += record.reply.run_s
    rates = {}
    for worker, seconds in run_s.items():
        rates[worker] = 0.0
        if seconds > 0:
            rates[worker] = cpu_s[worker] / seconds
    return rates


def _cpu_s(reply: Reply, rates: Mapping[str, float]) -> float:
    return reply.activity.cpu_s if reply.activity else rates[reply.worker] * reply.run_s


def _spells(spans: Iterator[_Span]) -> Iterator[_Span]:
    """Disturbed spans that follow each other as one, with the mean of their values.

    They must be long enough, and one of them certain.
    """
    for disturbed, group in itertools.groupby(spans, key=lambda span: span.disturbed):
        parts = list(group)
        begin_s, end_s = parts[0].begin_s, parts[-1].end_s
        certain = any(span.certain for span in parts)
        if disturbed and certain and len(parts) > 1 and end_s - begin_s >= SHORTEST_S:
            yield _Span(begin_s, end_s, statistics.fmean(span.value for span in parts), True, True)

"""Disturbances from outside, before and during a run, by the samples of its nodes.

Before a run: whether a machine is busy: other programs, pressure, steal and heat distort a run.

During a run:

Other programs: the cores that are busy beyond the CPU time that the requests themselves used. A
request reports its CPU seconds as a whole, not when it used them, so only cores beyond the CPU time
of all requests that touch a span of time count, and the span is four times as long as requests are.
Where the tester itself costs a notable part of a request, it is one of the other programs; then
only cores beyond the usual number of the same measurement count.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Annotated

from scaletest.causes.resources import clock_text, cores_text, samples_by_node
from scaletest.causes.steps import MeasuredStep, Rows
from scaletest.model import Record, Reply
from scaletest.model.declared import choice
from scaletest.model.node_sample import CPU, DEVICE, PRESSURE, NodeSample
from scaletest.model.writing import Written

# Parts of the cores that other programs may use, or a hypervisor take, without a warning.
BUSY_PART, STOLEN_PART = 0.25, 0.05
# Pressures that count, with their names in texts and limits. Workers that start read files and wait
# for some of them.
PRESSED = {"memory_some": ("memory", 0.25), "io_some": ("disks", 0.5)}
REMEDY = "end the other programs there, or wait for them"
Resources = Mapping[str, Mapping[str, float]]


def busy(resources: Resources, own_cores: float) -> list[str]:
    """A warning that names what kept a machine busy; none for an idle one.

    Readers see it during the run and after it.

    resources: as in a sample, of about a second before the load; own_cores: cores that the tester
    itself used of them.
    """
    cpu, pressure = resources.get(CPU, {}), resources.get(PRESSURE, {})
    signs = _cpu_signs(cpu, own_cores)
    if cpu.get("heat_throttled"):
        signs.append(f"heat lowered a CPU's clock {cpu['heat_throttled']:.1f} times a second")
    signs += [
        f"the pressure on {name} was {pressure[figure]:.0%}"
        for figure, (name, most) in PRESSED.items()
        if pressure.get(figure, 0.0) >= most
    ]
    for resource, figures in resources.items():
        kind, _, name = resource.partition(":")
        if kind == DEVICE and figures.get("throttled"):
            signs.append(f"heat, power or another limit lowered the clock of {name}")
    return [f"before the run, {', '.join(signs)}: {REMEDY}"] if signs else []


def _cpu_signs(cpu: Mapping[str, float], own_cores: float) -> list[str]:
    """Signs of other programs and of a hypervisor on the cores; none where cores are unknown."""
    cores = cpu.get("cores", 0.0)
    if cores <= 0:
        return []
    signs = []
    foreign = min(cores, cpu.get("user", 0.0) + cpu.get("system", 0.0) - own_cores)
    if foreign >= BUSY_PART * cores:
        signs.append(f"other programs used {cores_text(foreign, cores)}")
    if cpu.get("steal", 0.0) >= STOLEN_PART * cores:
        signs.append(f"the hypervisor took {cores_text(cpu['steal'], cores)}")
    return signs


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
# kind -> its text; used: cores, value: the mean of the figure, usual: in the whole measurement
TEXTS = {
    "other programs": "other programs used {used}{where}",
    "steal": "the hypervisor took {used}{where}",
    "pressure": "the pressure on {name}{where} was {value:.0%}, usually {usual:.0%}",
    "heat": "heat lowered a CPU's clock{where} {value:.1f} times a second",
    "clock": "the clocks{where} were at {value:.0%} of their highest, usually at {usual:.0%}",
    "device": "heat, power or another limit lowered the clock of {name}{where}",
}
# The part of a node that a disturbance takes, by its figure.
Cost = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Interference(Written):
    """One disturbance."""

    kind: Annotated[str, choice(TEXTS), "other programs, steal, pressure, heat, clock, device."]
    node: str
    begin_s: Annotated[float, "on Redis's clock, as in records"]
    end_s: Annotated[float, "on Redis's clock."]
    cost: Annotated[float, "how much of the node it took, a part of 1"]
    text: Annotated[str, "the disturbance with its figure"]

    @property
    def weight(self) -> float:
        """The part of the node that it took, times seconds, for ranking."""
        return self.cost * (self.end_s - self.begin_s)

    @property
    def sentence(self) -> Annotated[str, "the disturbance with its figure and time"]:
        """A sentence with its time and its figure."""
        return f"from {clock_text(self.begin_s)} to {clock_text(self.end_s)} UTC {self.text}"


@dataclass(frozen=True, slots=True)
class _Span:
    """Some time of one node, the figure in it, and whether it is surely a disturbance."""

    begin_s: float
    end_s: float
    value: float
    disturbed: bool
    certain: bool


def interferences(
    steps: Sequence[MeasuredStep], records: Rows, samples: Sequence[NodeSample]
) -> list[Interference]:
    """The disturbances of a run, in the order of time; the costliest where there are too many."""
    by_node = samples_by_node(samples)
    spells: list[Interference] = []
    for step in steps:
        for measured in step.samples:
            rows = records.get(measured.measurement.key, ())
            last_s = max((record.reply.ended_s for record in rows), default=0.0)
            for node, own in by_node.items():
                began_s = measured.began_s
                inside = [each for each in own if began_s < _begin(each) and each.at_s < last_s]
                served = [
                    record for record in rows if record.reply.node == node and record.reply.ended_s
                ]
                if served and len(inside) > 1:
                    where = f" on {node}" if len(by_node) > 1 else ""
                    spells += _of_node(node, where, inside, served, step.overhead_share)
    costliest = sorted(spells, key=lambda spell: -spell.weight)[:MOST_SPELLS]
    return sorted(costliest, key=lambda spell: spell.begin_s)


def between(spells: Sequence[Interference], begin_s: float, end_s: float) -> Interference | None:
    """The costliest disturbance that touches that time; None where there is none."""
    touching = [spell for spell in spells if spell.begin_s < end_s and spell.end_s > begin_s]
    return max(touching, key=lambda spell: spell.cost, default=None)


def _of_node(
    node: str, where: str, samples: Sequence[NodeSample], rows: Sequence[Record], tester: float
) -> Iterator[Interference]:
    """The disturbances of one node during one measurement.

    Clocks are compared with most of the measurement, and so is pressure.
    """
    cores = max(0.0, samples[-1].value(CPU, "cores") or 0.0)

    def spells(
        kind: str, spans: Iterable[_Span], cost: Cost, name: str = "", usual: float = 0.0
    ) -> Iterator[Interference]:
        for spell in _spells(spans):
            text = TEXTS[kind].format(
                used=cores_text(spell.value, cores),
                where=where,
                name=name,
                value=spell.value,
                usual=usual,
            )
            yield Interference(kind, node, spell.begin_s, spell.end_s, cost(spell.value), text)

    if cores:
        yield from spells(
            "other programs", _foreign(samples, rows, cores, tester), lambda used: used / cores
        )
        yield from spells(
            "steal", _levels(samples, CPU, "steal", STOLEN * cores), lambda used: used / cores
        )
    yield from spells("heat", _levels(samples, CPU, "heat_throttled", 1e-9), _some)
    usual_clock = _median(samples, CPU, "frequency")
    if usual_clock > 0:
        clocks = _levels(samples, CPU, "frequency", usual_clock * (1.0 - CLOCK_FELL), above=False)
        yield from spells("clock", clocks, lambda part: 1.0 - part / usual_clock, usual=usual_clock)
    for figure, name in (("cpu_some", "CPUs"), ("memory_some", "memory"), ("io_some", "disks")):
        usual = _median(samples, PRESSURE, figure)
        yield from spells(
            "pressure",
            _levels(samples, PRESSURE, figure, usual + PRESSURE_ROSE),
            partial(add, -usual),
            name,
            usual,
        )
    for name in sorted(set[str]().union(*(sample.of_kind(DEVICE) for sample in samples))):
        yield from spells(
            "device", _levels(samples, f"{DEVICE}:{name}", "throttled", 0.5), _some, name
        )


def _some(_: float) -> float:
    """The cost of what lowers a clock by an unknown part."""
    return 0.1


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
    return statistics.median(known) if known else 0.0


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
        limit += max(
            0.0, statistics.median(busy - (least + most) / 2.0 for busy, least, most in used)
        )
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
    busy_s = (_cores_busy(sample) * sample.interval_s for sample in known)
    used_s = [0.0, *itertools.accumulate(busy_s)]
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


def _cores_busy(sample: NodeSample) -> float:
    """Cores of all programs and the kernel."""
    return (sample.value(CPU, "user") or 0.0) + (sample.value(CPU, "system") or 0.0)


class _OwnCpu:
    """The CPU time of requests: of those that ended, or had started, by some time, as sums."""

    def __init__(self, rows: Sequence[Record], rates: Mapping[str, float]) -> None:
        """rates: cores that a request uses, by worker, for requests that do not say it."""
        used = [(record.reply, _cpu_s(record.reply, rates)) for record in rows]
        self._starts = _Sums((reply.started_s, cpu_s) for reply, cpu_s in used)
        self._ends = _Sums((reply.ended_s, cpu_s) for reply, cpu_s in used)

    def between(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """The fewest and the most cores that requests can have used then."""
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
    # requests that took no time used no core
    return {worker: cpu_s[worker] / (seconds or math.inf) for worker, seconds in run_s.items()}


def _cpu_s(reply: Reply, rates: Mapping[str, float]) -> float:
    return reply.activity.cpu_s if reply.activity else rates[reply.worker] * reply.run_s


def _spells(spans: Iterable[_Span]) -> Iterator[_Span]:
    """Disturbed spans that follow each other as one, with the mean of their values.

    They must be long enough, and one of them certain.
    """
    for disturbed, group in itertools.groupby(spans, key=lambda span: span.disturbed):
        parts = list(group)
        begin_s, end_s = parts[0].begin_s, parts[-1].end_s
        certain = any(span.certain for span in parts)
        if disturbed and certain and len(parts) > 1 and end_s - begin_s >= SHORTEST_S:
            yield _Span(begin_s, end_s, statistics.fmean(span.value for span in parts), True, True)

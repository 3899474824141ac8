"""Disturbances of a run from outside, by the samples of its nodes."""

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Annotated

from scaletest.causes.foreign_cpu import Span, begin_of, foreign_cores
from scaletest.causes.node_use import samples_by_node
from scaletest.causes.resource_texts import clock_text, cores_text
from scaletest.causes.steps import MeasuredStep, Rows
from scaletest.model import Record
from scaletest.model.declared import choice
from scaletest.model.node_sample import CPU, DEVICE, PRESSURE, NodeSample
from scaletest.model.writing import Written

STOLEN = 0.05
# Relative fall of clocks, and rise of pressure, that disturb.
CLOCK_FELL, PRESSURE_ROSE = 0.10, 0.30
# Shorter disturbances are not reported. A span for other programs is at least LEAST_SPAN_S long,
# and RUNS_IN_SPAN run times.
SHORTEST_S = 1.5
MOST_SPELLS = 8
# kind -> its text; used: cores, value: the mean of the figure, usual: in the whole measurement
TEXTS = {
    "other programs": "other programs used {used}{where}",
    "steal": "the hypervisor took {used}{where}",
    "pressure": "the pressure on {name}{where} was {value:.0%}, usually {usual:.0%}",
    "heat": "heat lowered a CPU's clock{where} {value:.1f} times per second",
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
    cost: Annotated[float, "the fraction of the node that it took"]
    text: Annotated[str, "the disturbance with its figure"]

    @property
    def weight(self) -> float:
        """The part of the node that it took, times seconds, for ranking."""
        return self.cost * (self.end_s - self.begin_s)

    @property
    def sentence(self) -> Annotated[str, "the disturbance with its figure and time"]:
        """A sentence with its figure and its time."""
        return f"{self.text} ({self.clock_span})"

    @property
    def clock_span(self) -> str:
        """From when to when, by the clock in UTC."""
        return f"{clock_text(self.begin_s)} to {clock_text(self.end_s)} UTC"


def find_interferences(
    steps: Sequence[MeasuredStep], records: Rows, samples: Sequence[NodeSample]
) -> list[Interference]:
    """Return the disturbances of a run, in the order of time.

    The costliest where there are too many.
    """
    by_node = samples_by_node(samples)
    spells: list[Interference] = []
    for step in steps:
        for measured in step.samples:
            rows = records.get(measured.measurement.key, ())
            last_s = max((record.reply.ended_s for record in rows), default=0.0)
            for node, own in by_node.items():
                began_s = measured.began_s
                inside = [each for each in own if began_s < begin_of(each) and each.at_s < last_s]
                served = [
                    record for record in rows if record.reply.node == node and record.reply.ended_s
                ]
                if served and len(inside) > 1:
                    where = f" on {node}" if len(by_node) > 1 else ""
                    spells += _of_node(node, where, inside, served, step.overhead_share)
    costliest = sorted(spells, key=lambda spell: -spell.weight)[:MOST_SPELLS]
    return sorted(costliest, key=lambda spell: spell.begin_s)


def costliest_between(
    spells: Sequence[Interference], begin_s: float, end_s: float
) -> Interference | None:
    """Return the costliest disturbance that touches that time; None where there is none."""
    return max(
        [spell for spell in spells if spell.begin_s < end_s and spell.end_s > begin_s],
        key=lambda spell: spell.cost,
        default=None,
    )


def _of_node(
    node: str, where: str, samples: Sequence[NodeSample], rows: Sequence[Record], tester: float
) -> Iterator[Interference]:
    """Return the disturbances of one node during one measurement.

    Clocks are compared with most of the measurement, and so is pressure.
    """
    cores = max(0.0, samples[-1].value(CPU, "cores") or 0.0)

    def spells(
        kind: str, spans: Iterable[Span], cost: Cost, name: str = "", usual: float = 0.0
    ) -> Iterator[Interference]:
        # disturbed spans that follow each other are one, with the mean of their values, if they are
        # long enough and one of them is certain
        for disturbed, group in itertools.groupby(spans, key=lambda span: span.disturbed):
            parts = list(group)
            begin_s, end_s = parts[0].begin_s, parts[-1].end_s
            certain = any(span.certain for span in parts)
            if disturbed and certain and len(parts) > 1 and end_s - begin_s >= SHORTEST_S:
                value = statistics.fmean(span.value for span in parts)
                text = TEXTS[kind].format(
                    used=cores_text(value, cores), where=where, name=name, value=value, usual=usual
                )
                yield Interference(kind, node, begin_s, end_s, cost(value), text)

    if cores:
        yield from spells(
            "other programs", foreign_cores(samples, rows, cores, tester), lambda used: used / cores
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
    """Return the cost of what lowers a clock by an unknown part."""
    return 0.1


def _levels(
    samples: Sequence[NodeSample], resource: str, figure: str, limit: float, *, above: bool = True
) -> Iterator[Span]:
    """Return a span for each sample with the figure; disturbed where it is beyond the limit."""
    for sample in samples:
        value = sample.value(resource, figure)
        if value is not None:
            disturbed = (value >= limit) is above
            yield Span(begin_of(sample), sample.at_s, value, disturbed, disturbed)


def _median(samples: Sequence[NodeSample], resource: str, figure: str) -> float:
    """Return the usual value of a figure; 0 where no sample has it."""
    readings = [sample.value(resource, figure) for sample in samples]
    known = [reading for reading in readings if reading is not None]
    return statistics.median(known) if known else 0.0

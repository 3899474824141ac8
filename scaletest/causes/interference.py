"""Disturbances of a run from outside, by the samples of its nodes."""

import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from scaletest.causes.foreign_cpu import Span, begin_of, foreign_cores
from scaletest.causes.node_use import samples_by_node
from scaletest.causes.resources import cores_text
from scaletest.causes.steps import MeasuredStep, Rows
from scaletest.model import Record
from scaletest.model.declared import choice
from scaletest.model.node_sample import CPU, DEVICE, NodeSample
from scaletest.model.writing import Written

KINDS = ("other programs", "steal", "clock", "device")
# The hypervisor disturbs from this part of the cores on, and a device whose clock is lowered from
# this part of the time on.
STOLEN_PART, THROTTLED_PART = 0.05, 0.5
# Clocks that fell by this part disturb.
CLOCK_FALL = 0.10
# The part of a node that a device with a lowered clock is taken to cost: how much lower is unknown.
THROTTLED_COST = 0.1
# Shorter disturbances are not reported.
SHORTEST_S = 1.5
MOST_INTERFERENCES = 8


@dataclass(frozen=True, slots=True)
class Interference(Written):
    """One disturbance."""

    kind: Annotated[str, choice(KINDS), "other programs, steal, clock, device."]
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


def clock_text(at_s: float) -> str:
    """Return a time of Redis's clock in UTC, as in "12:03:10"."""
    try:
        return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S}"
    except (OverflowError, ValueError, OSError):  # samples may hold any time
        return "an unknown time"


def find_interferences(
    steps: Sequence[MeasuredStep], records: Rows, samples: Sequence[NodeSample]
) -> list[Interference]:
    """Return the disturbances of a run, in the order of time; the costliest of too many."""
    by_node = samples_by_node(samples)
    found: list[Interference] = []
    for step in steps:
        for measured in step.samples:
            rows = records.get(measured.measurement.key, ())
            last_s = max((record.reply.ended_s for record in rows), default=0.0)
            for node, node_samples in by_node.items():
                inside = [
                    sample
                    for sample in node_samples
                    if measured.began_s < begin_of(sample) and sample.at_s < last_s
                ]
                served = [
                    record for record in rows if record.reply.node == node and record.reply.ended_s
                ]
                if served and len(inside) > 1:
                    where = f" on {node}" if len(by_node) > 1 else ""
                    found += _disturbances(node, where, inside, served, step.overhead_share)
    costliest = sorted(found, key=lambda interference: -interference.weight)[:MOST_INTERFERENCES]
    return sorted(costliest, key=lambda interference: interference.begin_s)


def costliest_between(
    found: Sequence[Interference], begin_s: float, end_s: float
) -> Interference | None:
    """Return the costliest disturbance that touches that time; None where there is none."""
    return max(
        [each for each in found if each.begin_s < end_s and each.end_s > begin_s],
        key=lambda interference: interference.cost,
        default=None,
    )


def _disturbances(
    node: str,
    where: str,
    samples: Sequence[NodeSample],
    rows: Sequence[Record],
    tester_share: float,
) -> list[Interference]:
    """Return the disturbances of one node during one measurement.

    where: " on" and the node, for sentences; "" where there is only one.
    tester_share: the part of a request's time that the tester itself costs.
    """
    found: list[Interference] = []

    def add(kind: str, span: Span, cost: float, text: str) -> None:
        found.append(Interference(kind, node, span.begin_s, span.end_s, cost, text))

    cores = max(0.0, samples[-1].value(CPU, "cores") or 0.0)
    if cores:
        for span in _long_disturbances(foreign_cores(samples, rows, cores, tester_share)):
            text = f"other programs used {cores_text(span.value, cores)}{where}"
            add("other programs", span, span.value / cores, text)
        for span in _long_disturbances(_spans(samples, CPU, "steal", STOLEN_PART * cores)):
            text = f"the hypervisor took {cores_text(span.value, cores)}{where}"
            add("steal", span, span.value / cores, text)
    # clocks are compared with the usual of this measurement
    known = [sample.value(CPU, "frequency") for sample in samples]
    usual = statistics.median([clock for clock in known if clock is not None] or [0.0])
    clocks = _spans(samples, CPU, "frequency", usual * (1.0 - CLOCK_FALL), below=True)
    for span in _long_disturbances(clocks):
        ratios = f"{span.value:.0%} of their highest, usually at {usual:.0%}"
        add("clock", span, 1.0 - span.value / usual, f"the clocks{where} were at {ratios}")
    for name in sorted({name for sample in samples for name in sample.of_kind(DEVICE)}):
        limits = _spans(samples, f"{DEVICE}:{name}", "throttled", THROTTLED_PART)
        for span in _long_disturbances(limits):
            text = f"heat, power or another limit lowered the clock of {name}{where}"
            add("device", span, THROTTLED_COST, text)
    return found


def _long_disturbances(spans: Iterable[Span]) -> Iterator[Span]:
    """Join disturbed spans that follow each other, with the mean of their values.

    Those that are too short are left out, and those of which no span is surely a disturbance.
    """
    for is_disturbed, group in itertools.groupby(spans, key=lambda span: span.disturbed):
        parts = list(group)
        begin_s, end_s = parts[0].begin_s, parts[-1].end_s
        is_certain = any(span.certain for span in parts)
        if is_disturbed and is_certain and len(parts) > 1 and end_s - begin_s >= SHORTEST_S:
            value = statistics.fmean(span.value for span in parts)
            yield Span(begin_s, end_s, value, disturbed=True, certain=True)


def _spans(
    samples: Sequence[NodeSample], resource: str, figure: str, limit: float, *, below: bool = False
) -> Iterator[Span]:
    """Return a span for each sample with the figure; disturbed from the limit on, or below it."""
    for sample in samples:
        value = sample.value(resource, figure)
        if value is not None:
            is_disturbed = value < limit if below else value >= limit
            yield Span(begin_of(sample), sample.at_s, value, is_disturbed, is_disturbed)

"""Charts of what the nodes did: how busy they and their devices were in each step, and what
disturbed the run, in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.interference import Interference
from scaletest.analysis.resources import NodeResource, NodeUse, StepResources, clock_text
from scaletest.analysis.steps import MeasuredStep
from scaletest.model.measurement import CPU, DEVICE, DISK, NETWORK, PRESSURE
from scaletest.render.contents import Charts
from scaletest.render.numbers import percent, plural, quantity, scale
from scaletest.render.svg import Axis, Chart, Point, up_to
from scaletest.render.text import clean
from scaletest.report.validation import words

# Lines of one chart; of more nodes, disks or devices the busiest are drawn.
MOST_LINES = 6
LONGEST_NAME = 24
USE_SIZE = (360.0, 200.0)
USE_NOTE = (
    "How busy the nodes were while each step was measured: means of the samples. Pressure is the"
    " part of the time in which some thread waited for it, of the node that has most."
)
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
PRESSURES = {"CPU": "cpu_some", "memory": "memory_some", "I/O": "io_some"}
Values = Iterator[tuple[str, float | None]]
# Charts whose only line is named too, since the axis does not say whose it is.
NAMED = ("pressure", "disks", "networks", "devices")
LONGEST_DESCRIPTION = 1000
STRIP_WIDTH, NARROW_WIDTH = 760.0, 360.0
STRIP_NOTE = (
    "Above, each measuring of a step with its number of workers. Below, what came from outside; it"
    " is marked in the courses of throughput too."
)
# Height of a strip without rows of disturbances, and of each of them, in px.
STRIP_HEIGHT, ROW_HEIGHT = 92.0, 26.0
# Half of the height of a bar, where rows are 1 apart.
HALF = 0.36


@dataclass(frozen=True, slots=True)
class UseCurves:
    """Use of one kind of resource: points of step number and value, by the name of the resource.

    unit: of the values; "" where they are parts of one.
    """

    name: str
    title: str
    points: Mapping[str, Sequence[Point]]
    unit: str = ""

    @property
    def up(self) -> tuple[float, Axis]:
        """The size of a unit of the axis of values, and that axis."""
        if not self.unit:
            names = [percent(part, 0) for part in PARTS]
            return 1.0, Axis("", 0.0, 1.04, marks=PARTS, names=names)
        highest = max(value for _, value in chain.from_iterable(self.points.values()))
        size, unit = scale(highest, self.unit, 3)
        marks = up_to(highest / size, 5)
        return size, Axis(unit, 0.0, marks[-1], marks=marks)

    def text(self, value: float) -> str:
        """A value with its unit."""
        return quantity(value, self.unit, 3) if self.unit else percent(value, 0)


def use(result: Evaluation) -> Charts:
    """Use of cores, disks, networks and devices, and pressure, by step; none without samples."""
    known = partial(_points, result)
    every = [
        UseCurves("cores", "Cores busy", known(_cores)),
        UseCurves("pressure", "Pressure", known(_pressures)),
        UseCurves("disks", "Disks busy", known(partial(_busy, DISK))),
        UseCurves("networks", "Network, both ways", known(_moved), "B/s"),
        UseCurves("devices", "Devices busy", known(partial(_busy, DEVICE))),
    ]
    return Charts([_chart(result, curves) for curves in every if curves.points], note=USE_NOTE)


def _cores(step: StepResources) -> Values:
    for node in step.nodes:
        cores, busy = node.value(CPU, "cores"), node.cores_busy
        if cores and busy is not None:
            yield node.node, busy / cores


def _pressures(step: StepResources) -> Values:
    for name, figure in PRESSURES.items():
        yield name, step.highest(PRESSURE, figure)


def _busy(kind: str, step: StepResources) -> Values:
    for place in step.places(kind):
        yield _name(place, step.nodes), place.figures.get("busy")


def _moved(step: StepResources) -> Values:
    for place in step.places(NETWORK):
        moved = [place.figures[way] for way in ("received", "sent") if way in place.figures]
        if moved:
            yield _name(place, step.nodes), sum(moved)


def _name(place: NodeResource, nodes: Sequence[NodeUse]) -> str:
    """A disk, network or device, with its node where there are several."""
    name = place.name.rpartition("/")[2]
    return f"{name}, {place.node}" if len(nodes) > 1 else name


def _points(
    result: Evaluation, values_of: Callable[[StepResources], Values]
) -> dict[str, list[Point]]:
    """Points of what is known in the steps, by name; of many names those with the highest."""
    places = {(step.workers, step.per_device): at for at, step in enumerate(result.steps)}
    points: dict[str, list[Point]] = defaultdict(list)
    for step in result.resources:
        at = places[step.workers, step.per_device]
        for name, value in values_of(step):
            if value is not None:
                points[name].append((at, value))
    highest = sorted(points, key=lambda name: max(map(itemgetter(1), points[name])), reverse=True)
    return {name: points[name] for name in points if name in highest[:MOST_LINES]}


def _chart(result: Evaluation, curves: UseCurves) -> Chart:
    levels = [step.level for step in result.steps]
    size, up = curves.up
    described = []
    for name, points in curves.points.items():
        course = ", ".join(f"{curves.text(value)} at {levels[int(at)]}" for at, value in points)
        described.append(f"{name}: {course}")
    chart = Chart(
        f"use-{curves.name}",
        curves.title,
        clean("; ".join(described), LONGEST_DESCRIPTION),
        Axis(
            words.workers_label(result.steps[0].per_device),
            -0.3,
            len(levels) - 0.7,
            marks=range(len(levels)),
            names=list(map(str, levels)),
        ),
        up,
        *USE_SIZE,
    )
    for number, (name, points) in enumerate(curves.points.items()):
        shown = clean(name, LONGEST_NAME)
        if len(curves.points) > 1 or curves.name in NAMED:
            chart.legend(shown, f"c-run c-run-{number}")
        chart.line([(at, value / size) for at, value in points], f"c-run c-run-{number}")
        for at, value in points:
            tip = f"{plural(levels[int(at)], 'worker')}: {shown} {curves.text(value)}"
            chart.dot(at, value / size, f"c-run-dot c-run-dot-{number}", tip, radius=3.5)
    return chart


def disturbances(result: Evaluation) -> Charts:
    """When the run was disturbed, below the time of its measurings; none where nothing did."""
    every = chain.from_iterable(step.samples for step in result.steps)
    samples = [sample for sample in every if sample.began_s]
    if not result.disturbed or not samples:
        return Charts([])
    rows = list(dict.fromkeys(map(partial(_row, result), result.disturbed)))
    height = STRIP_HEIGHT + ROW_HEIGHT * len(rows)
    chart = _strip(result, samples, rows, height)
    return Charts([chart], "one", note=STRIP_NOTE, narrow_size=(NARROW_WIDTH, height))


def _strip(
    result: Evaluation, samples: Sequence[MeasuredStep], rows: Sequence[str], height: float
) -> Chart:
    spells = [(spell.begin_s, spell.end_s) for spell in result.disturbed]
    measured = [
        (sample.began_s, sample.began_s + sample.measurement.measured_s) for sample in samples
    ]
    zero_s = min(begin_s for begin_s, _ in (*spells, *measured))
    last_s = max(end_s for _, end_s in (*spells, *measured))
    top = len(rows)
    chart = Chart(
        "disturbances",
        "What disturbed the run",
        "; ".join(spell.sentence for spell in result.disturbed),
        Axis(f"seconds since {clock_text(zero_s)} UTC", 0.0, last_s - zero_s, most=8),
        Axis("", -0.6, top + 0.6, marks=range(top + 1), names=[*rows[::-1], "workers"]),
        STRIP_WIDTH,
        height,
    )
    for sample, (begin_s, end_s) in zip(samples, measured, strict=True):
        low, high, workers = begin_s - zero_s, end_s - zero_s, sample.measurement.workers
        chart.bar(low, high, top + HALF, "c-box", plural(workers, "worker"), top - HALF)
        chart.note((low + high) / 2, top, str(workers), up=-4.0)
    for spell, (begin_s, end_s) in zip(result.disturbed, spells, strict=True):
        at = top - 1 - rows.index(_row(result, spell))
        low, high = begin_s - zero_s, end_s - zero_s
        chart.bar(low, high, at + HALF, "c-foreign", spell.sentence, at - HALF)
    return chart


def _row(result: Evaluation, spell: Interference) -> str:
    """The row of a disturbance: its kind, and its node where there are several."""
    several = any(len(step.nodes) > 1 for step in result.resources)
    return clean(f"{spell.kind}, {spell.node}" if several else spell.kind, LONGEST_NAME)


def shade(chart: Chart, sample: MeasuredStep, long: float, spells: Sequence[Interference]) -> None:
    """Mark in a chart over the time of a measuring what disturbed it. long: its end in s."""
    shown = False
    for spell in spells:
        low, high = spell.begin_s - sample.began_s, spell.end_s - sample.began_s
        if low < long and high > 0.0:
            low, high = max(0.0, low), min(long, high)
            chart.bar(low, high, chart.y.high, "c-foreign", spell.sentence, chart.y.low)
            shown = True
    if shown:
        chart.legend("disturbed", "c-foreign", "area")

"""How the wait and run times of each step spread: boxes beside each other, and histograms on one
axis.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.analysis.estimate import quantile
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.steps import Rows, Step
from scaletest.model import Record
from scaletest.render import svg
from scaletest.render.contents import Charts
from scaletest.render.histogram import bins, draw, ends
from scaletest.render.numbers import percent, plural, seconds, unit_of
from scaletest.render.svg import Axis, Chart
from scaletest.render.text import clean

LEAST_FOR_BOX, LEAST_FOR_HISTOGRAM = 5, 20
LEAST_BINS, MOST_BINS = 20, 48
MOST_NODES, LONGEST_NODE = 12, 60
# The axis of the histograms is at least this part of the longest median long, and ends at this many
# times the longest 95th percentile, or one value would squeeze all others into one bar.
NARROWEST, FARTHEST = 0.05, 2.0
BOX_SIZE = (430.0, 270.0)
HISTOGRAM_SIZE, NARROW_HISTOGRAM = (760.0, 112.0), (360.0, 104.0)
BOX_NOTE = (
    "Boxes hold the middle half of the successful requests, the line in them is the median,"
    " whiskers reach from p5 to p95, dots are the extremes that fit into the frame. Run times that"
    " grow with the workers mean that they share something; long waits mean that the workers were"
    " not ready to take."
)
HISTOGRAM_NOTE = (
    "All steps have the same axes, so that they compare: bars are parts of the step's requests, and"
    " the upright line is the median. Two peaks instead of one usually mean two kinds of requests,"
    " devices or nodes: compare them below."
)


@dataclass(frozen=True, slots=True)
class Times:
    """Sorted times of the successful requests of one step, in s; with a node, of those there."""

    workers: int
    values: list[float]
    node: str = ""

    @property
    def name(self) -> str:
        """The node's, or the number of workers."""
        return self.node or plural(self.workers, "worker")

    def at(self, p: float) -> float:
        """The p-quantile."""
        return quantile(self.values, p)

    def up_to(self, longest_s: float) -> list[float]:
        """The times that are not longer."""
        return self.values[: bisect_right(self.values, longest_s)]


def times_of(result: Evaluation, records: Rows, kind: str, least: int) -> list[Times]:
    """The times of each step that has so many. kind: wait or run."""
    by_step = []
    for step in result.steps:
        values = sorted(getattr(row.reply, f"{kind}_s") for row in _succeeded(step, records))
        if len(values) >= least:
            by_step.append(Times(step.workers, values))
    return by_step


def _succeeded(step: Step, records: Rows) -> Iterator[Record]:
    rows = chain.from_iterable(records.get(sample.measurement.key, ()) for sample in step.samples)
    return (row for row in rows if row.ok)


def boxes(result: Evaluation, records: Rows, kind: str) -> Chart | None:
    """All steps beside each other; None when none has enough requests. kind: wait or run."""
    steps = times_of(result, records, kind, LEAST_FOR_BOX)
    if not steps:
        return None
    reach = max(step.at(0.95) for step in steps)
    size, unit = unit_of(reach)
    medians = [
        f"{plural(step.workers, 'worker')}: median {seconds(step.at(0.5))}" for step in steps
    ]
    names = [str(step.workers) for step in steps]
    chart = Chart(
        f"box-{kind}",
        f"{kind.capitalize()} of the successful requests by number of workers",
        "; ".join(medians),
        Axis("workers", -0.5, len(steps) - 0.5, marks=range(len(steps)), names=names),
        Axis(f"{kind} in {unit}", 0.0, svg.ceiling(reach / size * 1.1 or 1.0)),
        *BOX_SIZE,
    )
    for index, (step, median) in enumerate(zip(steps, medians, strict=True)):
        _box(chart, index, step, f"{median}, p95 {seconds(step.at(0.95))}", size)
    return chart


def _box(chart: Chart, at: int, step: Times, tip: str, size: float) -> None:
    low, quarter, middle, upper, high = (step.at(p) / size for p in (0.05, 0.25, 0.5, 0.75, 0.95))
    chart.error(at, low, quarter, "c-error")
    chart.error(at, upper, high, "c-error")
    chart.bar(at - 0.22, at + 0.22, upper, "c-box", tip, bottom=quarter)
    chart.stroke(at - 0.22, at + 0.22, middle, "c-median")
    for extreme in (step.values[0] / size, step.values[-1] / size):
        if extreme < low or high < extreme <= chart.y.high:
            chart.dot(at, extreme, "c-faint", seconds(extreme * size), radius=2.6)


def histograms(result: Evaluation, records: Rows) -> Charts:
    """The run times of each step with requests enough, below each other on the same axes."""
    steps = times_of(result, records, "run", LEAST_FOR_HISTOGRAM)
    return Charts(
        _histograms(steps) if steps else [],
        "one",
        title="Run times of each step",
        note=HISTOGRAM_NOTE,
        narrow_size=NARROW_HISTOGRAM,
    )


def histograms_of_nodes(step: Step, records: Rows) -> Charts:
    """The run times of the nodes with requests enough in a step, the slowest first, as above."""
    by_node: dict[str, list[float]] = defaultdict(list)
    for row in _succeeded(step, records):
        by_node[row.reply.node].append(row.reply.run_s)
    nodes = [
        Times(step.workers, sorted(values), clean(name, LONGEST_NODE))
        for name, values in by_node.items()
        if name and len(values) >= LEAST_FOR_HISTOGRAM
    ]
    nodes.sort(key=lambda times: (-times.at(0.5), times.node))
    return Charts(
        _histograms(nodes[:MOST_NODES]) if len(nodes) > 1 else [],
        "one",
        title="Run times on each node",
        note=f"The slowest first, {MOST_NODES} at most, all on the same axes.",
        narrow_size=NARROW_HISTOGRAM,
    )


def _histograms(steps: Sequence[Times]) -> list[Chart]:
    farthest_s = FARTHEST * max(step.at(0.95) for step in steps)
    shown = [step.up_to(farthest_s) for step in steps]
    least_s = NARROWEST * max(step.at(0.5) for step in steps) or 1e-6
    low_s, high_s = ends(list(chain.from_iterable(shown)), least_s)
    if low_s < high_s / 2:
        # from 0 on, doubled times lie twice as far
        low_s = 0.0
    ends_s = low_s, high_s
    most = max(map(len, shown))
    number = min(MOST_BINS, max(LEAST_BINS, round(3 * most**0.5)))
    counted = [bins(values, number, *ends_s) for values in shown]
    parts = [max(counts) / sum(counts) for counts in counted]
    marks = svg.up_to(max(parts), 3)
    up = Axis("requests", 0.0, marks[-1], marks=marks, names=[percent(at, 0) for at in marks])
    charts = []
    for at, (step, counts) in enumerate(zip(steps, counted, strict=True)):
        key = f"node-{at}" if step.node else f"run-{step.workers}"
        chart = _histogram(step, key, sum(counts), ends_s, up, last=step is steps[-1])
        draw(chart, counts, ends_s, "request", sum(counts))
        length_s, _ = unit_of(ends_s[1])
        chart.upright(step.at(0.5) / length_s, "c-mark", f"median {seconds(step.at(0.5))}")
        charts.append(chart)
    return charts


def _histogram(
    step: Times, key: str, count: int, ends_s: tuple[float, float], up: Axis, *, last: bool
) -> Chart:
    """The axes of a step or node. key: names the chart; count: of the requests that are shown;
    last: whether the lowest, which names the axis of all.
    """
    low_s, high_s = ends_s
    length_s, unit = unit_of(high_s)
    slowest = len(step.values) - count
    left_out = f", {slowest} of them beyond {seconds(high_s)}" if slowest else ""
    return Chart(
        f"histogram-{key}",
        f"{step.name}, {plural(len(step.values), 'request')}{left_out}",
        f"run from {seconds(step.values[0])} to {seconds(step.values[-1])}, median"
        f" {seconds(step.at(0.5))}",
        Axis(f"run in {unit}" if last else "", low_s / length_s, high_s / length_s, most=8),
        up,
        *HISTOGRAM_SIZE,
    )

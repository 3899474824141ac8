"""How run times spread, by step and by node: histograms on one axis."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.causes.steps import Rows
from scaletest.model import Record
from scaletest.render.axis import Axis, marks_up_to
from scaletest.render.blocks import Charts
from scaletest.render.chart import Chart
from scaletest.render.histogram import count_bins, draw_bars, histogram_ends
from scaletest.render.numbers import format_percent, format_seconds, plural, unit_of
from scaletest.render.text import clean_text
from scaletest.stats.percentiles import quantile
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step

LEAST_FOR_HISTOGRAM = 20
LEAST_BINS, MOST_BINS = 20, 48
MOST_NODES, LONGEST_NODE = 12, 60
# The axis of the histograms is at least this part of the longest median long, and ends at this many
# times the longest 95th percentile, or one value would squeeze all others into one bar.
NARROWEST, FARTHEST = 0.05, 2.0
HISTOGRAM_SIZE, NARROW_HISTOGRAM = (760.0, 112.0), (360.0, 104.0)
HISTOGRAM_NOTE = (
    "All steps have the same axes, so that they compare: bars are parts of the step's requests, and"
    " the upright line is the median. Two peaks instead of one usually mean two kinds of requests,"
    " devices or nodes."
)


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Sorted run times of the successful requests of one step, or of one node in it, in s."""

    key: str  # of the chart
    name: str
    values: list[float]

    def at(self, p: float) -> float:
        """The p-quantile."""
        return quantile(self.values, p)

    def up_to(self, longest_s: float) -> list[float]:
        """The times that are not longer."""
        return self.values[: bisect_right(self.values, longest_s)]


def histograms(result: Evaluation, records: Rows) -> Charts:
    """The run times of each step with requests enough, below each other on the same axes."""
    steps = []
    for step in result.steps:
        values = sorted(row.reply.run_s for row in _succeeded(step, records))
        if len(values) >= LEAST_FOR_HISTOGRAM:
            name = plural(step.workers, "worker")
            steps.append(RunTimes(f"run-{step.workers}", name, values))
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
        RunTimes(f"node-{number}", clean_text(name, LONGEST_NODE), sorted(values))
        for number, (name, values) in enumerate(sorted(by_node.items()))
        if name and len(values) >= LEAST_FOR_HISTOGRAM
    ]
    nodes.sort(key=lambda times: -times.at(0.5))
    return Charts(
        _histograms(nodes[:MOST_NODES]) if len(nodes) > 1 else [],
        "one",
        title="Run times on each node",
        note=f"The slowest first, {MOST_NODES} at most, all on the same axes.",
        narrow_size=NARROW_HISTOGRAM,
    )


def _succeeded(step: Step, records: Rows) -> Iterator[Record]:
    rows = chain.from_iterable(records.get(sample.measurement.key, ()) for sample in step.samples)
    return (row for row in rows if row.ok)


def _histograms(steps: Sequence[RunTimes]) -> list[Chart]:
    farthest_s = FARTHEST * max(step.at(0.95) for step in steps)
    shown = [step.up_to(farthest_s) for step in steps]
    least_s = NARROWEST * max(step.at(0.5) for step in steps) or 1e-6
    low_s, high_s = histogram_ends(list(chain.from_iterable(shown)), least_s)
    if low_s < high_s / 2:
        # from 0 on, doubled times lie twice as far
        low_s = 0.0
    ends_s = low_s, high_s
    most = max(map(len, shown))
    number = min(MOST_BINS, max(LEAST_BINS, round(3 * most**0.5)))
    counted = [count_bins(values, number, *ends_s) for values in shown]
    parts = [max(counts) / sum(counts) for counts in counted]
    marks = marks_up_to(max(parts), 3)
    up = Axis(
        "requests", 0.0, marks[-1], marks=marks, names=[format_percent(at, 0) for at in marks]
    )
    length_s, unit = unit_of(high_s)
    charts = []
    for step, counts in zip(steps, counted, strict=True):
        slowest = len(step.values) - sum(counts)
        left_out = f", {slowest} of them beyond {format_seconds(high_s)}" if slowest else ""
        # the lowest names the axis of all
        label = f"run in {unit}" if step is steps[-1] else ""
        chart = Chart(
            f"histogram-{step.key}",
            f"{step.name}, {plural(len(step.values), 'request')}{left_out}",
            f"run from {format_seconds(step.values[0])} to {format_seconds(step.values[-1])},"
            " median"
            f" {format_seconds(step.at(0.5))}",
            Axis(label, low_s / length_s, high_s / length_s, max_marks=8),
            up,
            *HISTOGRAM_SIZE,
        )
        draw_bars(chart, counts, ends_s, "request", sum(counts))
        chart.vertical_line(
            step.at(0.5) / length_s, "c-mark", f"median {format_seconds(step.at(0.5))}"
        )
        charts.append(chart)
    return charts

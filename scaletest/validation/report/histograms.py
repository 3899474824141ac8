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


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Sorted run times of the successful requests of one step, or of one node in it, in s."""

    key: str  # of the chart
    name: str
    values: list[float]

    def at(self, p: float) -> float:
        """Return the p-quantile."""
        return quantile(self.values, p)


def step_histograms(result: Evaluation, records: Rows) -> Charts:
    """Return the run times of each step with requests enough, all on the same axes."""
    steps = []
    for step in result.steps:
        values = sorted(record.reply.run_s for record in _succeeded(step, records))
        if len(values) >= LEAST_FOR_HISTOGRAM:
            name = plural(step.workers, "worker")
            steps.append(RunTimes(f"run-{step.workers}", name, values))
    return Charts(
        _draw_histograms(steps) if steps else [],
        "one",
        title="Run times of each step",
        note=(
            "All steps have the same axes, so that they compare: bars are parts of the step's"
            " requests, and the vertical line is the median. Two peaks instead of one usually mean"
            " two kinds of requests, devices or nodes."
        ),
        narrow_size=NARROW_HISTOGRAM,
    )


def node_histograms(step: Step, records: Rows) -> Charts:
    """Return the run times of the nodes with requests enough in a step, the slowest first."""
    by_node: dict[str, list[float]] = defaultdict(list)
    for record in _succeeded(step, records):
        by_node[record.reply.node].append(record.reply.run_s)
    nodes = [
        RunTimes(f"node-{number}", clean_text(name, LONGEST_NODE), sorted(values))
        for number, (name, values) in enumerate(sorted(by_node.items()))
        if name and len(values) >= LEAST_FOR_HISTOGRAM
    ]
    nodes.sort(key=lambda times: -times.at(0.5))
    return Charts(
        _draw_histograms(nodes[:MOST_NODES]) if len(nodes) > 1 else [],
        "one",
        title="Run times on each node",
        note=f"The slowest first, {MOST_NODES} at most, all on the same axes.",
        narrow_size=NARROW_HISTOGRAM,
    )


def _succeeded(step: Step, records: Rows) -> Iterator[Record]:
    rows = chain.from_iterable(records.get(sample.measurement.key, ()) for sample in step.samples)
    return (record for record in rows if record.ok)


def _draw_histograms(all_times: Sequence[RunTimes]) -> list[Chart]:
    """Draw a histogram of each, all with the same axes."""
    # the axis across: times that lie far beyond the others are counted, not drawn
    farthest_s = FARTHEST * max(times.at(0.95) for times in all_times)
    drawn = [times.values[: bisect_right(times.values, farthest_s)] for times in all_times]
    least_s = NARROWEST * max(times.at(0.5) for times in all_times) or 1e-6
    low_s, high_s = histogram_ends(list(chain.from_iterable(drawn)), least_s)
    if low_s < high_s / 2:
        low_s = 0.0  # so that doubled times lie twice as far
    length_s, unit = unit_of(high_s)

    # the axis up: parts of the requests in each bin
    number = min(MOST_BINS, max(LEAST_BINS, round(3 * max(map(len, drawn)) ** 0.5)))
    counts_of_all = [count_bins(values, number, low_s, high_s) for values in drawn]
    marks = marks_up_to(max(max(counts) / sum(counts) for counts in counts_of_all), 3)
    names = [format_percent(mark, 0) for mark in marks]
    up = Axis("requests", 0.0, marks[-1], marks=marks, names=names)

    charts = []
    for times, counts in zip(all_times, counts_of_all, strict=True):
        beyond = len(times.values) - sum(counts)
        left_out = f", {beyond} of them beyond {format_seconds(high_s)}" if beyond else ""
        median = f"median {format_seconds(times.at(0.5))}"
        # the lowest names the axis of all
        label = f"run in {unit}" if times is all_times[-1] else ""
        chart = Chart(
            f"histogram-{times.key}",
            f"{times.name}, {plural(len(times.values), 'request')}{left_out}",
            f"run from {format_seconds(times.values[0])} to {format_seconds(times.values[-1])},"
            f" {median}",
            Axis(label, low_s / length_s, high_s / length_s, max_marks=8),
            up,
            *HISTOGRAM_SIZE,
        )
        draw_bars(chart, counts, (low_s, high_s), "request", sum(counts))
        chart.vertical_line(times.at(0.5) / length_s, "c-mark", median)
        charts.append(chart)
    return charts

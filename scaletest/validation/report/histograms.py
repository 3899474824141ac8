"""How run times spread, by step and by node: histograms on one axis."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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

LEAST_REQUESTS = 20
# Of more nodes the slowest are shown.
MOST_NODES = 12
LONGEST_NAME = 60
LEAST_BINS, MOST_BINS = 20, 48
# The axis is at least this share of the longest median long.
LEAST_LENGTH = 0.05
# The axis ends at this many times the longest 95th percentile, or one value would squeeze all
# others into one bar.
FARTHEST_OF_P95 = 2.0
HISTOGRAM_SIZE, NARROW_HISTOGRAM = (760.0, 112.0), (360.0, 104.0)


def step_histograms(result: Evaluation, records: Rows) -> Charts:
    """Return the run times of each step with requests enough, all on the same axes."""
    by_step = {
        plural(step.workers, "worker"): [record.reply.run_s for record in _succeeded(step, records)]
        for step in result.steps
    }
    return Charts(
        _draw_histograms("run", _with_enough(by_step)),
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
    by_node.pop("", None)
    nodes = sorted(_with_enough(by_node).items(), key=lambda node: -quantile(node[1], 0.5))
    return Charts(
        _draw_histograms("node", dict(nodes[:MOST_NODES])) if len(nodes) > 1 else [],
        "one",
        title="Run times on each node",
        note=f"The slowest first, {MOST_NODES} at most, all on the same axes.",
        narrow_size=NARROW_HISTOGRAM,
    )


def _succeeded(step: Step, records: Rows) -> Iterator[Record]:
    """Return the successful requests of a step."""
    rows = chain.from_iterable(records.get(sample.measurement.key, ()) for sample in step.samples)
    return (record for record in rows if record.ok)


def _with_enough(run_times: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Return those with requests enough for a histogram, each sorted."""
    return {
        name: sorted(times_s)
        for name, times_s in run_times.items()
        if len(times_s) >= LEAST_REQUESTS
    }


def _draw_histograms(kind: str, run_times: Mapping[str, Sequence[float]]) -> list[Chart]:
    """Draw a histogram of each, all with the same axes.

    kind: what they are, for the names of the charts. run_times: sorted, in seconds, of successful
    requests, by the name of a step or node.
    """
    if not run_times:
        return []
    # the axis of times: those that lie far beyond the others are counted, not drawn
    medians_s = {name: quantile(times_s, 0.5) for name, times_s in run_times.items()}
    farthest_s = FARTHEST_OF_P95 * max(quantile(times_s, 0.95) for times_s in run_times.values())
    drawn = {
        name: times_s[: bisect_right(times_s, farthest_s)] for name, times_s in run_times.items()
    }
    least_length_s = LEAST_LENGTH * max(medians_s.values()) or 1e-6
    low_s, high_s = histogram_ends(list(chain.from_iterable(drawn.values())), least_length_s)
    if low_s < high_s / 2:
        low_s = 0.0  # so that doubled times lie twice as far
    unit_s, unit = unit_of(high_s)

    # the upright axis: parts of the requests in each bin
    most_requests = max(map(len, drawn.values()))
    bins = min(MOST_BINS, max(LEAST_BINS, round(3 * most_requests**0.5)))
    counts = {name: count_bins(times_s, bins, low_s, high_s) for name, times_s in drawn.items()}
    highest_share = max(max(numbers) / sum(numbers) for numbers in counts.values())
    marks = marks_up_to(highest_share, 3)
    names = [format_percent(mark, 0) for mark in marks]
    shares = Axis("requests", 0.0, marks[-1], marks=marks, names=names)

    charts = []
    for number, (name, times_s) in enumerate(run_times.items(), start=1):
        not_drawn = len(times_s) - len(drawn[name])
        left_out = f", {not_drawn} of them beyond {format_seconds(high_s)}" if not_drawn else ""
        median = f"median {format_seconds(medians_s[name])}"
        # the lowest names the axis of all
        label = f"run in {unit}" if number == len(run_times) else ""
        chart = Chart(
            f"histogram-{kind}-{number}",
            f"{clean_text(name, LONGEST_NAME)}, {plural(len(times_s), 'request')}{left_out}",
            f"run from {format_seconds(times_s[0])} to {format_seconds(times_s[-1])}, {median}",
            Axis(label, low_s / unit_s, high_s / unit_s, max_marks=8),
            shares,
            *HISTOGRAM_SIZE,
        )
        draw_bars(chart, counts[name], (low_s, high_s), "request", len(drawn[name]))
        chart.vertical_line(medians_s[name] / unit_s, "c-mark", median)
        charts.append(chart)
    return charts

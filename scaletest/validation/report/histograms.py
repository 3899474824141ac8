"""How run times spread in each step: histograms on one axis."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain

from scaletest.causes.steps import Rows
from scaletest.render.axis import Axis, marks_up_to
from scaletest.render.blocks import Charts
from scaletest.render.chart import Chart
from scaletest.render.histogram import count_bins, draw_bars, histogram_ends
from scaletest.render.numbers import format_percent, format_seconds, plural, unit_of
from scaletest.stats.percentiles import quantile
from scaletest.validation.judging.evaluation import Evaluation

LEAST_REQUESTS = 20
LEAST_BINS, MOST_BINS = 20, 48
# The axis is at least this share of the longest median long.
LEAST_LENGTH = 0.05
# The axis ends at this many times the longest 95th percentile, or one value would squeeze all
# others into one bar.
FARTHEST_OF_P95 = 2.0
HISTOGRAM_SIZE, NARROW_HISTOGRAM = (760.0, 112.0), (360.0, 104.0)


def step_histograms(result: Evaluation, records: Rows) -> Charts:
    """Return the run times of each step with requests enough, all on the same axes."""
    run_times: dict[int, list[float]] = {}
    for step in result.steps:
        rows = chain.from_iterable(
            records.get(sample.measurement.key, ()) for sample in step.samples
        )
        values = sorted(record.reply.run_s for record in rows if record.ok)
        if len(values) >= LEAST_REQUESTS:
            run_times[step.workers] = values
    return Charts(
        _draw_histograms(run_times) if run_times else [],
        "one",
        title="Run times of each step",
        note=(
            "All steps have the same axes, so that they compare: bars are parts of the step's"
            " requests, and the vertical line is the median. Two peaks instead of one usually mean"
            " two kinds of requests, devices or nodes."
        ),
        narrow_size=NARROW_HISTOGRAM,
    )


def _draw_histograms(run_times: Mapping[int, Sequence[float]]) -> list[Chart]:
    """Draw a histogram of each step, all with the same axes.

    run_times: sorted, in seconds, of the successful requests of a step, by its workers.
    """
    # the axis of times: those that lie far beyond the others are counted, not drawn
    medians_s = {workers: quantile(times_s, 0.5) for workers, times_s in run_times.items()}
    farthest_s = FARTHEST_OF_P95 * max(quantile(times_s, 0.95) for times_s in run_times.values())
    drawn = {
        workers: times_s[: bisect_right(times_s, farthest_s)]
        for workers, times_s in run_times.items()
    }
    least_length_s = LEAST_LENGTH * max(medians_s.values()) or 1e-6
    low_s, high_s = histogram_ends(list(chain.from_iterable(drawn.values())), least_length_s)
    if low_s < high_s / 2:
        low_s = 0.0  # so that doubled times lie twice as far
    unit_s, unit = unit_of(high_s)

    # the upright axis: parts of the requests in each bin
    most_requests = max(map(len, drawn.values()))
    bins = min(MOST_BINS, max(LEAST_BINS, round(3 * most_requests**0.5)))
    counts = {workers: count_bins(drawn[workers], bins, low_s, high_s) for workers in drawn}
    highest_share = max(max(numbers) / sum(numbers) for numbers in counts.values())
    marks = marks_up_to(highest_share, 3)
    names = [format_percent(mark, 0) for mark in marks]
    shares = Axis("requests", 0.0, marks[-1], marks=marks, names=names)

    charts = []
    for workers, times_s in run_times.items():
        not_drawn = len(times_s) - len(drawn[workers])
        left_out = f", {not_drawn} of them beyond {format_seconds(high_s)}" if not_drawn else ""
        median = f"median {format_seconds(medians_s[workers])}"
        # the lowest names the axis of all
        label = f"run in {unit}" if workers == max(run_times) else ""
        chart = Chart(
            f"histogram-run-{workers}",
            f"{plural(workers, 'worker')}, {plural(len(times_s), 'request')}{left_out}",
            f"run from {format_seconds(times_s[0])} to {format_seconds(times_s[-1])}, {median}",
            Axis(label, low_s / unit_s, high_s / unit_s, max_marks=8),
            shares,
            *HISTOGRAM_SIZE,
        )
        draw_bars(chart, counts[workers], (low_s, high_s), "request", len(drawn[workers]))
        chart.vertical_line(medians_s[workers] / unit_s, "c-mark", median)
        charts.append(chart)
    return charts

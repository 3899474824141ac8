"""Throughput over time in every measurement, a panel each."""

from itertools import chain

from scaletest.render.axis import Axis, axis_end
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_seconds, plural, with_half_width
from scaletest.stats.completions import Completions
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.measured_step import MeasuredStep
from scaletest.validation.judging.schedule import pass_name

# A bin of the time axis has some requests, where that gives neither too few bins nor too many.
LEAST_BINS, MOST_BINS = 4, 80
REQUESTS_PER_BIN = 5
# A page of more panels is hard to read.
MOST_PANELS = 36
PANEL_SIZE = (360.0, 210.0)
PANEL_NOTE = (
    "Each panel is one measurement of a step on a time axis of its own; the line is the throughput,"
    " the band its mean with the 95 % interval, and the grey part is the warm-up, which does not"
    " count. A vertical line is a lasting change, a dot a short dip. A line that keeps rising or"
    " falling means that the step had not settled."
)


def course_panels(result: Evaluation) -> list[Chart]:
    """Return throughput over time in every measurement; in the first of each step if many."""
    samples = list(chain.from_iterable(step.samples for step in result.steps))
    if len(samples) > MOST_PANELS:
        samples = [step.samples[0] for step in result.steps]
    return list(filter(None, (_draw_panel(result, sample) for sample in samples)))


def _draw_panel(result: Evaluation, sample: MeasuredStep) -> Chart | None:
    """Draw one measurement from its first submission on; None where nothing has a rate."""
    by_worker = sample.completions.by_worker.items()
    completions = Completions({worker: [sample.began_s, *times] for worker, times in by_worker})
    first, last = completions.span
    if last <= first or not sample.began_s:
        return None
    end_s = last - first
    done = completions.total - len(completions.by_worker)
    rates = completions.rates(max(LEAST_BINS, min(MOST_BINS, done // REQUESTS_PER_BIN)))
    mean, measurement = sample.throughput, sample.measurement
    chart = Chart(
        f"course-{measurement.workers}-{measurement.repeat}",
        f"{plural(measurement.workers, 'worker')}, {pass_name(measurement.repeat)}",
        f"throughput over {format_seconds(end_s)}:"
        f" {with_half_width(mean.per_s, mean.half_width)} requests/s after"
        f" {format_seconds(sample.warmup_s)} of warm-up",
        Axis("time in s", 0.0, end_s, max_marks=5),
        Axis("requests/s", 0.0, axis_end(max(*rates, mean.per_s) * 1.08, 5), max_marks=5),
        *PANEL_SIZE,
    )
    # what disturbed the measurement, as far as it lies in the chart
    for disturbance in result.disturbed:
        low = max(0.0, disturbance.begin_s - sample.began_s)
        high = min(end_s, disturbance.end_s - sample.began_s)
        if low < end_s and high > 0.0:
            chart.bar(
                low, high, chart.y.high, "c-foreign", disturbance.sentence, bottom=chart.y.low
            )
    if chart.marks:
        chart.legend("disturbed", "c-foreign", "area")
    # the warm-up, the mean, the throughput itself, and where it changed
    warm_s = min(sample.warmup_s, end_s)
    chart.shade(0.0, warm_s, "c-shade")
    if mean.enough:
        half = min(mean.half_width, mean.per_s)
        chart.bar(warm_s, end_s, mean.per_s + half, "c-band", bottom=mean.per_s - half)
        chart.stroke(warm_s, end_s, mean.per_s, "c-mean")
    bin_s = end_s / len(rates)
    steps = [
        (bin_s * edge, rate) for index, rate in enumerate(rates) for edge in (index, index + 1)
    ]
    chart.line(steps, "c-data")
    drift = sample.drift
    if drift.shift:
        chart.vertical_line(warm_s + drift.shift_at_s, "c-mark", f"changed by {drift.shift:+.1%}")
    return chart

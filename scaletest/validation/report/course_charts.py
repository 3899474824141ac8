"""Throughput over time in every measurement, a panel each."""

from itertools import chain

from scaletest.render.axis import Axis, axis_end
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_seconds, plural, with_half_width
from scaletest.stats.completions import Completions
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.measured_step import MeasuredStep
from scaletest.validation.judging.schedule import way_name

PER_BIN = 5
LEAST_BINS, MOST_BINS = 4, 80
MOST_PANELS = 36
PANEL_SIZE = (360.0, 210.0)
PANEL_NOTE = (
    "Each panel is one measurement of a step on a time axis of its own; the line is the throughput,"
    " the band its mean with the 95 % interval, and the grey part is the warm-up, which does not"
    " count. An upright line is a lasting change, a dot a short dip. A line that goes on rising or"
    " falling means that the step had not settled."
)


def course_panels(result: Evaluation) -> list[Chart]:
    """Throughput over time in every measurement with a course; in the first of each step if there
    are many.
    """
    samples = list(chain.from_iterable(step.samples for step in result.steps))
    if len(samples) > MOST_PANELS:
        samples = [step.samples[0] for step in result.steps]
    drawn = [_panel(result, sample) for sample in samples]
    return [chart for chart in drawn if chart]


def _panel(result: Evaluation, sample: MeasuredStep) -> Chart | None:
    began = sample.began_s
    by_worker = sample.completions.by_worker.items()
    completions = Completions({worker: [began, *times] for worker, times in by_worker})
    first, last = completions.span
    if last <= first or not began:
        return None
    done = completions.total - len(completions.by_worker)
    course = completions.rates(max(LEAST_BINS, min(MOST_BINS, done // PER_BIN)))
    rate, at, long = sample.throughput, sample.measurement, last - first
    name = f"{plural(at.workers, 'worker')}, {way_name(at.repeat)}"
    chart = Chart(
        f"course-{at.workers}-{at.repeat}",
        name,
        f"throughput over {format_seconds(long)}:"
        f" {with_half_width(rate.per_s, rate.half_width)} requests/s after"
        f" {format_seconds(sample.warmup_s)} of warm-up",
        Axis("time in s", 0.0, long, most=5),
        Axis("requests/s", 0.0, axis_end(max(*course, rate.per_s) * 1.08, 5), most=5),
        *PANEL_SIZE,
    )
    # what disturbed the measurement, as far as it lies in the chart
    shown = False
    for spell in result.disturbed:
        low, high = spell.begin_s - sample.began_s, spell.end_s - sample.began_s
        if low < long and high > 0.0:
            low, high = max(0.0, low), min(long, high)
            chart.bar(low, high, chart.y.high, "c-foreign", spell.sentence, chart.y.low)
            shown = True
    if shown:
        chart.legend("disturbed", "c-foreign", "area")
    # the warm-up, the mean, the course itself, and where it changed
    drift, warm = sample.drift, min(sample.warmup_s, long)
    chart.shade(0.0, warm, "c-shade")
    if rate.enough:
        half = min(rate.half_width, rate.per_s)
        chart.band([(x, rate.per_s - half, rate.per_s + half) for x in (warm, long)], "c-band")
        chart.stroke(warm, long, rate.per_s, "c-mean")
    edges = [long * index / len(course) for index in range(len(course) + 1)]
    chart.stairs(edges, course, "c-data")
    if drift.shift:
        chart.upright(warm + drift.shift_at_s, "c-mark", f"changed by {drift.shift:+.1%}")
    for at_s, depth in drift.dips:
        chart.dot(warm + at_s, rate.per_s * (1 + depth), "c-dip", f"dipped by {-depth:.0%}")
    return chart

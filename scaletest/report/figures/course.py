"""Throughput over time in each measurement of a step: the warm-up, shifts and dips."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.steps import MeasuredStep, Rows
from scaletest.analysis.throughput import ends_of, rates, span
from scaletest.model import Plan, Record
from scaletest.render import svg
from scaletest.render.numbers import measured, plural, seconds
from scaletest.render.svg import Axis, Chart
from scaletest.report import words

PER_BIN = 5
LEAST_BINS, MOST_BINS = 4, 80
MOST_PANELS = 36
WIDTH, HEIGHT = 360.0, 210.0
CAPTION = (
    "Each panel is one measuring of a step on a time axis of its own; the line is the throughput,"
    " the band its mean with the 95 % interval, and the grey part is the warm-up, which does not"
    " count. An upright line is a lasting change, a dot a short dip. A line that goes on rising or"
    " falling means that the step had not settled."
)


def panels(result: Evaluation, records: Rows) -> list[Chart]:
    """A chart for every measurement with a course; the first of each step if there are many."""
    samples = [sample for step in result.steps for sample in step.samples]
    if len(samples) > MOST_PANELS:
        samples = [step.samples[0] for step in result.steps]
    drawn = [
        _panel(sample, records.get(sample.measurement.key, ()), result.plan) for sample in samples
    ]
    return [chart for chart in drawn if chart]


def _panel(sample: MeasuredStep, rows: Sequence[Record], plan: Plan) -> Chart | None:
    began = sample.began_s
    ends = {worker: [began, *times] for worker, times in ends_of(rows).items()}
    first, last = span(ends)
    done = sum(len(times) - 1 for times in ends.values())
    if last <= first or not began:
        return None
    bins = max(LEAST_BINS, min(MOST_BINS, done // PER_BIN))
    course = rates(ends, first, last, bins)
    long = last - first
    rate, at = sample.throughput, sample.measurement
    name = ", ".join(filter(None, (plural(at.workers, "worker"), words.measuring(plan, at.repeat))))
    chart = Chart(
        f"course-{at.workers}-{at.repeat}",
        name,
        f"throughput over {seconds(long)}: {measured(rate.per_s, rate.half_width)} requests/s after"
        f" {seconds(sample.warmup_s)} of warm-up",
        Axis("time in s", 0.0, long, most=5),
        Axis("requests/s", 0.0, svg.ceiling(max(*course, rate.per_s) * 1.08, 5), most=5),
        WIDTH,
        HEIGHT,
    )
    _draw(chart, sample, course, long)
    return chart


def _draw(chart: Chart, sample: MeasuredStep, course: Sequence[float], long: float) -> None:
    rate, drift, warm = sample.throughput, sample.drift, min(sample.warmup_s, long)
    chart.shade(0.0, warm, "c-shade")
    if rate.enough:
        half = min(rate.half_width, rate.per_s)
        chart.band([(x, rate.per_s - half, rate.per_s + half) for x in (warm, long)], "c-band")
        chart.stroke(warm, long, rate.per_s, "c-mean")
    width = long / len(course)
    stairs = [
        (index * width + side, value) for index, value in enumerate(course) for side in (0.0, width)
    ]
    chart.line(stairs, "c-data")
    if drift.shift:
        chart.upright(warm + drift.shift_at_s, "c-mark", f"changed by {drift.shift:+.1%}")
    for at_s, depth in drift.dips:
        chart.dot(warm + at_s, rate.per_s * (1 + depth), "c-dip", f"dipped by {-depth:.0%}")

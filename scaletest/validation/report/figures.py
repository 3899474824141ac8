"""The charts of a validation, each with the sentence that stands under it.

Throughput and efficiency against the number of workers answer the question of a run. Others show
where the time of a request goes, and how throughput went on in each measurement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from scaletest.causes.causes import StepTime
from scaletest.causes.interference import Interference
from scaletest.causes.request_time import PLACE_TEXTS, PLACES
from scaletest.causes.steps import Rows
from scaletest.model import Record
from scaletest.render import svg
from scaletest.render.contents import Figure
from scaletest.render.numbers import measured, percent, plural, seconds, significant, unit_of
from scaletest.render.svg import Axis, Chart
from scaletest.stats.completions import Completions
from scaletest.stats.law import Law
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.measured_step import MeasuredStep
from scaletest.validation.judging.schedule import way
from scaletest.validation.judging.steps import Step
from scaletest.validation.report import words
from scaletest.validation.run_type import ValidationRun

# Up to here evenly spaced workers are readable; beyond, the first steps would lie on top of each
# other.
MOST_LINEAR = 16
# The law is drawn this far beyond the last step, and as far as its peak if that is not much
# farther.
BEYOND, FARTHEST = 1.5, 2.0
# How far above what was measured the ideal line and the law are drawn.
HEADROOM = 1.2
CURVE_POINTS = 65
WIDTH, HEIGHT = 760.0, 420.0


@dataclass(frozen=True, slots=True)
class Curve:
    """Data of a chart: the steps that have a throughput, the law, and how far the axis goes."""

    steps: list[Step]
    law: Law | None
    peak: float | None
    end: float

    @property
    def first(self) -> int:
        """The level of the first step."""
        return self.steps[0].level

    @property
    def last(self) -> int:
        """The level of the last step."""
        return self.steps[-1].level

    @property
    def log(self) -> bool:
        """Whether every doubling is equally long."""
        return self.last > MOST_LINEAR

    def ideal(self, level: float) -> float:
        """Requests/s if nothing held the workers up, from the first step."""
        return self.steps[0].throughput.per_s / self.first * level

    @property
    def top(self) -> float:
        """The highest throughput that must be seen. The ideal line and the law leave the frame
        where they lie far above, so that what was measured fills it.
        """
        rates_of_steps = [step.throughput for step in self.steps]
        highest = max(rate.per_s + min(rate.half_width, rate.per_s) for rate in rates_of_steps)
        fitted = self.law_between(self.first, self.end)
        drawn = max((per_s for _, per_s in fitted), default=0.0)
        return max(highest, min(max(drawn, self.ideal(self.last)), HEADROOM * highest))

    def law_between(self, low: float, high: float) -> list[svg.Point]:
        """The law from one level to another, both included; nothing without one."""
        if self.law is None:
            return []
        return [(level, self.law.at(level)) for level in self.levels(low, high)]

    def levels(self, low: float, high: float) -> list[float]:
        """Levels from low to high, both included, close enough for a smooth line."""
        parts = [index / (CURVE_POINTS - 1) for index in range(CURVE_POINTS)]
        if self.log:
            return [low * (high / low) ** part for part in parts]
        return [low + (high - low) * part for part in parts]

    def across(self) -> Axis:
        """The axis of workers, with marks at the steps that were measured."""
        levels = [float(step.level) for step in self.steps]
        label = words.workers_label(self.steps[0].per_device)
        names = [f"{level:g}" for level in levels]
        if self.log:
            return Axis(label, levels[0] * 0.9, self.end, "log2", levels, names)
        return Axis(label, 0.0, self.end, "linear", levels, names)

    def up(self) -> Axis:
        """The axis of throughput: from 0, or in doublings where the workers are."""
        if not self.log:
            return Axis("requests/s", 0.0, self.top * 1.05)
        lowest = min(step.throughput.per_s for step in self.steps)
        return Axis("requests/s", lowest * 0.7, self.top * 1.4, "log2")


def curve_of(result: Evaluation) -> Curve | None:
    """None when no step has a throughput."""
    steps = [step for step in result.steps if step.throughput.per_s > 0]
    if not steps:
        return None
    law = result.growth.choice.law if result.growth.choice else None
    last = steps[-1].level
    peak = result.growth.peak.workers
    end = last * (BEYOND if law else 1.06)
    if law and peak and peak <= FARTHEST * last:
        end = max(end, peak * 1.1)
    return Curve(steps, law, peak, end)


def throughput(run: ValidationRun) -> Figure | None:
    """Throughput with intervals, the fitted law and the ideal line; None when there is nothing to
    draw.
    """
    result = run.result
    data = curve_of(result)
    if data is None:
        return None
    first, last = data.steps[0], data.steps[-1]
    times = significant(last.throughput.per_s / first.throughput.per_s)
    many = len(data.steps) > 1
    sound = all(step.sound for step in data.steps)
    parts = {
        f"{plural(last.workers, 'worker')} did {words.rate(last)} requests/s": True,
        f", {times} times as much as {plural(first.workers, 'worker')}": many,
        f". Bars are the {words.interval(data.steps)}; the dashed line is what N workers would do"
        " if nothing held them up": True,
        ", the solid line the fitted law, dotted where no step was"
        " measured: an extrapolation, not a result": data.law,
        "; both axes are logarithmic: every doubling is equally long": data.log,
        "; a hollow point is of a step that may not be judged": not sound,
    }
    caption = "".join(part for part, holds in parts.items() if holds)
    return Figure(_throughput(data), f"{caption}.")


def _throughput(data: Curve) -> Chart:
    tips = [
        f"{plural(step.workers, 'worker')}: {words.rate(step)} requests/s" for step in data.steps
    ]
    chart = Chart(
        "throughput",
        "Throughput against the number of workers",
        "; ".join(tips),
        data.across(),
        data.up(),
        WIDTH,
        HEIGHT,
    )
    chart.legend("measured, 95 % interval", "c-dot", "dot")
    chart.legend("ideal", "c-ideal")
    if data.law:
        chart.legend(f"law: {data.law.name}", "c-law")
        chart.legend("not tested", "c-shade", "area")
        chart.shade(data.last, data.end, "c-shade")
        chart.line(data.law_between(data.first, data.last), "c-law")
        chart.line(data.law_between(data.last, data.end), "c-beyond")
    # beyond the frame a line would lose its slope
    ends = (max(0.0, chart.x.low), min(data.end, chart.y.high / data.ideal(1.0)))
    chart.line([(level, data.ideal(level)) for level in ends], "c-ideal")
    if data.peak:
        chart.legend("peak", "c-wanted")
        chart.upright(data.peak, "c-wanted", f"throughput is highest with {data.peak:.0f} workers")
    for step, tip in zip(data.steps, tips, strict=True):
        _point(chart, step, tip)
    return chart


def _point(chart: Chart, step: Step, tip: str) -> None:
    rate = step.throughput
    if len(step.samples) > 1:
        for sample in step.samples:
            chart.dot(step.level, sample.throughput.per_s, "c-faint", radius=3.0)
    if math.isfinite(rate.half_width):
        low, high = rate.per_s - rate.half_width, rate.per_s + rate.half_width
        chart.error(step.level, low, high, "c-error")
    css = "c-dot" if step.sound else "c-dot c-hollow"
    chart.dot(step.level, rate.per_s, css, tip)


# A place that holds less of every step is joined with others of that kind.
LEAST_SHARE = 0.01
OTHER = "other"
# Half of a bar's width, where neighbouring steps are 1 apart.
HALF = 0.36
TIME_SIZE, NARROW_TIME = (760.0, 290.0), (360.0, 300.0)
TIME_CAPTION = (
    "Mean time from the end of a worker's request to the end of its next one. A part that grows"
    " with the workers holds throughput back by its growth; one that stays does not, however large"
    " it is."
)


def time_spent(result: Evaluation) -> Figure | None:
    """Where the time of a request goes, by state, as stacked bars, one a step; None where no
    request says it.
    """
    times = result.causes.times if result.causes else ()
    known = [time for time in times if any(time.seconds.values())]
    return Figure(_time_spent(known), TIME_CAPTION, NARROW_TIME) if known else None


def _time_spent(times: Sequence[StepTime]) -> Chart:
    highest_s = max(_whole(time) for time in times)
    size, unit = unit_of(highest_s)
    numbers = range(len(times))
    chart = Chart(
        "time-spent",
        "Time of a request by state",
        "; ".join(f"{plural(time.workers, 'worker')}: {_described(time)}" for time in times),
        Axis(
            words.workers_label(times[0].per_device),
            -0.6,
            len(times) - 0.4,
            marks=numbers,
            names=[str(time.level) for time in times],
        ),
        Axis(f"{unit} per request", 0.0, svg.ceiling(highest_s / size * 1.02)),
        *TIME_SIZE,
    )
    shown = _shown(times)
    for place in shown:
        chart.legend(_label(place), f"c-time-{place}", "area")
    for index, time in enumerate(times):
        _stack(chart, index, time, shown, size)
    return chart


def _stack(chart: Chart, index: int, time: StepTime, shown: Sequence[str], size: float) -> None:
    bottom_s, parts = 0.0, {**time.seconds, OTHER: _rest(time, shown)}
    for place in shown:
        part_s = parts.get(place, 0.0)
        if part_s <= 0:
            continue
        tip = (
            f"{plural(time.workers, 'worker')}: {_label(place)} {seconds(part_s)},"
            f" {percent(part_s / _whole(time), 0)}"
        )
        top_s = bottom_s + part_s
        chart.bar(index - HALF, index + HALF, top_s / size, f"c-time-{place}", tip, bottom_s / size)
        bottom_s = top_s


def _shown(times: Sequence[StepTime]) -> list[str]:
    """The places with a bar of their own, the most active at the bottom, and what is left."""
    shown = [str(place) for place in PLACES if any(map(partial(_is_large, place), times))]
    other = any(_rest(time, shown) >= LEAST_SHARE * _whole(time) for time in times)
    return [*shown, OTHER] if other else shown


def _is_large(place: str, time: StepTime) -> bool:
    return time.seconds.get(place, 0.0) >= LEAST_SHARE * _whole(time)


def _whole(time: StepTime) -> float:
    return sum(time.seconds.values())


def _rest(time: StepTime, shown: Sequence[str]) -> float:
    return sum(part_s for place, part_s in time.seconds.items() if place not in shown)


def _label(place: str) -> str:
    return PLACE_TEXTS[place].label if place in PLACE_TEXTS else place


def _described(time: StepTime) -> str:
    return ", ".join(f"{_label(place)} {seconds(part_s)}" for place, part_s in time.seconds.items())


PER_BIN = 5
LEAST_BINS, MOST_BINS = 4, 80
MOST_PANELS = 36
PANEL_SIZE = (360.0, 210.0)
PANEL_NOTE = (
    "Each panel is one measuring of a step on a time axis of its own; the line is the throughput,"
    " the band its mean with the 95 % interval, and the grey part is the warm-up, which does not"
    " count. An upright line is a lasting change, a dot a short dip. A line that goes on rising or"
    " falling means that the step had not settled."
)


def panels(result: Evaluation, records: Rows) -> list[Chart]:
    """Throughput over time in every measurement with a course; in the first of each step if there
    are many.
    """
    samples = list(chain.from_iterable(step.samples for step in result.steps))
    if len(samples) > MOST_PANELS:
        samples = [step.samples[0] for step in result.steps]
    drawn = [_panel(result, sample, records.get(sample.measurement.key, ())) for sample in samples]
    return [chart for chart in drawn if chart]


def _panel(result: Evaluation, sample: MeasuredStep, rows: Sequence[Record]) -> Chart | None:
    began = sample.began_s
    by_worker = sample.completions.by_worker.items()
    completions = Completions({worker: [began, *times] for worker, times in by_worker})
    first, last = completions.span
    if last <= first or not began:
        return None
    done = completions.total - len(completions.by_worker)
    course = completions.rates(max(LEAST_BINS, min(MOST_BINS, done // PER_BIN)))
    rate, at, long = sample.throughput, sample.measurement, last - first
    name = f"{plural(at.workers, 'worker')}, {way(at.repeat)}"
    chart = Chart(
        f"course-{at.workers}-{at.repeat}",
        name,
        f"throughput over {seconds(long)}: {measured(rate.per_s, rate.half_width)} requests/s after"
        f" {seconds(sample.warmup_s)} of warm-up",
        Axis("time in s", 0.0, long, most=5),
        Axis("requests/s", 0.0, svg.ceiling(max(*course, rate.per_s) * 1.08, 5), most=5),
        *PANEL_SIZE,
    )
    _shade(chart, sample, long, result.disturbed)
    _draw_course(chart, sample, course, long)
    return chart


def _draw_course(chart: Chart, sample: MeasuredStep, course: Sequence[float], long: float) -> None:
    rate, drift, warm = sample.throughput, sample.drift, min(sample.warmup_s, long)
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


def _shade(chart: Chart, sample: MeasuredStep, long: float, spells: Sequence[Interference]) -> None:
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

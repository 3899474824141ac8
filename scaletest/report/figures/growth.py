"""Throughput and efficiency against the number of workers: the two charts that answer the question
of a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.law import Law
from scaletest.analysis.steps import Step
from scaletest.render import svg
from scaletest.render.contents import Figure
from scaletest.render.numbers import percent, plural, significant
from scaletest.render.svg import Axis, Chart
from scaletest.report import usage, words
from scaletest.report.validation.rows import Row, rows

# Up to here evenly spaced workers are readable; beyond, the first steps would lie on top of each
# other.
MOST_LINEAR = 16
# The law is drawn this far beyond the last step, and as far as its peak if that is not much
# farther.
BEYOND, FARTHEST = 1.5, 2.0
CURVE_POINTS = 97
SIZES = ((760.0, 420.0), (360.0, 330.0))


@dataclass(frozen=True, slots=True)
class Curve:
    """What is drawn: the steps that have a throughput, the law, and how far the axis goes.

    limits: how many cores and devices there are, as far as the axis reaches, by what the line is
    called.
    """

    steps: list[Step]
    law: Law | None
    peak: float | None
    last: int
    end: float
    log: bool
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def base(self) -> float:
        """Requests/s of one worker, from the first step."""
        return self.steps[0].throughput.per_s / self.steps[0].level

    @property
    def top(self) -> float:
        """The highest throughput that must be seen; the ideal line may leave the frame when it lies
        far above.
        """
        highest = max(_high(step) for step in self.steps)
        drawn = max((self.law.at(n) for n in self.grid()), default=0.0) if self.law else 0.0
        return max(highest, drawn, min(self.base * self.last, 3.0 * highest))

    def grid(self) -> list[float]:
        """Numbers of workers close enough for a smooth line."""
        first = float(self.steps[0].level) if self.log else 0.0
        if self.log:
            factor = math.log(self.end / first) / (CURVE_POINTS - 1)
            return [first * math.exp(factor * index) for index in range(CURVE_POINTS)]
        return [
            first + (self.end - first) * index / (CURVE_POINTS - 1) for index in range(CURVE_POINTS)
        ]

    def tested(self) -> list[float]:
        """The part of the curve between the first step and the last, both included."""
        first = self.steps[0].level
        return [float(first), *(n for n in self.grid() if first < n < self.last), float(self.last)]

    def beyond(self) -> list[float]:
        """The part of the curve where nothing was measured."""
        return [float(self.last), *(n for n in self.grid() if n > self.last)]


def curve_of(result: Evaluation) -> Curve | None:
    """None when no step has a throughput."""
    steps = [step for step in result.steps if step.throughput.per_s > 0]
    if not steps:
        return None
    law = result.growth.choice.law if result.growth.choice else None
    last = steps[-1].level
    end = last * (BEYOND if law else 1.06)
    peak = result.growth.peak.workers
    if law and peak and peak <= FARTHEST * last:
        end = max(end, peak * 1.1)
    first = steps[0].level if last > MOST_LINEAR else 0
    limits = {
        label: count for label, count in usage.limits_of(result).items() if first <= count <= end
    }
    return Curve(steps, law, peak, last, end, last > MOST_LINEAR, limits)


def throughput(result: Evaluation) -> Figure | None:
    """Throughput with intervals, the fitted law and the ideal line; None when there is nothing to
    draw.
    """
    data = curve_of(result)
    if data is None:
        return None
    last = data.steps[-1]
    times = last.throughput.per_s / data.steps[0].throughput.per_s
    caption = f"{plural(last.workers, 'worker')} did {words.rate(last)} requests/s"
    if len(data.steps) > 1:
        caption += (
            f", {significant(times)} times as much as {plural(data.steps[0].workers, 'worker')}"
        )
    caption += f". Bars are the {words.interval(data.steps)}; "
    caption += "the dashed line is what N workers would do if nothing held them up"
    if data.law:
        caption += (
            ", the solid line the fitted law, dotted where no step was measured: an extrapolation,"
            " not a result"
        )
    if data.limits:
        caption += f"; beyond an upright line, workers share the {', and the '.join(data.limits)}"
    if data.log:
        caption += "; both axes are logarithmic: every doubling is equally long"
    if not all(step.sound for step in data.steps):
        caption += "; a hollow point is of a step that may not be judged"
    charts = [_throughput(data, f"throughput-{index}", *size) for index, size in enumerate(SIZES)]
    return Figure(charts[0], charts[1], f"{caption}.")


def _throughput(data: Curve, name: str, width: float, height: float) -> Chart:
    chart = Chart(
        name,
        "Throughput against the number of workers",
        "; ".join(
            f"{plural(step.workers, 'worker')}: {words.rate(step)} requests/s"
            for step in data.steps
        ),
        workers_axis(data, width),
        rate_axis(data),
        width,
        height,
    )
    chart.legend("measured, 95 % interval", "c-dot", "dot")
    chart.legend("ideal", "c-ideal")
    if data.law:
        chart.legend(f"law: {data.law.name}", "c-law")
    if data.peak:
        chart.legend("peak", "c-wanted")
    if data.law:
        chart.legend("not tested", "c-shade", "area")
        chart.shade(data.last, data.end, "c-shade")
    for css, (label, count) in zip(("c-limit", "c-limit-next"), data.limits.items(), strict=False):
        chart.legend(label, css)
        chart.upright(count, css, f"{label}: more workers share them")
    curve = data.grid()
    chart.line([(n, data.base * n) for n in curve], "c-ideal")
    if data.law:
        chart.line([(n, data.law.at(n)) for n in data.tested()], "c-law")
        chart.line([(n, data.law.at(n)) for n in data.beyond()], "c-beyond")
    if data.peak:
        chart.upright(data.peak, "c-wanted", f"throughput is highest with {data.peak:.0f} workers")
    for step in data.steps:
        _point(chart, step)
    return chart


def _point(chart: Chart, step: Step) -> None:
    rate = step.throughput
    if len(step.samples) > 1:
        for sample in step.samples:
            chart.dot(step.level, sample.throughput.per_s, "c-faint", radius=3.0)
    if math.isfinite(rate.half_width):
        chart.error(
            step.level, rate.per_s - rate.half_width, rate.per_s + rate.half_width, "c-error"
        )
    css = "c-dot" if step.sound else "c-dot c-hollow"
    chart.dot(
        step.level,
        rate.per_s,
        css,
        f"{plural(step.workers, 'worker')}: {words.rate(step)} requests/s",
    )


def efficiency(result: Evaluation) -> Figure | None:
    """Efficiency with intervals, beside what the wanted ratio needs; None for less than two
    steps.
    """
    data = curve_of(result)
    if data is None or len(data.steps) < 2 or result.plan.compares:
        return None
    scaled_rows = [row for row in rows(result) if row.scaled]
    if len(scaled_rows) < 2:
        return None
    scaled = scaled_rows[-1].scaled
    assert scaled is not None
    scale = result.plan.scale
    needed = _needed(scale, data.steps[0].workers)
    caption = (
        f"Of what {plural(data.last, 'worker')} could do if nothing held them up, "
        f"{percent(scaled.efficiency.value)} was measured; "
        f"a ratio of {scale:g} in every doubling needs {percent(needed(data.last), 0)}. "
        "Bars are 95 % intervals and hold the uncertainty of the first step too"
    )
    charts = [
        _efficiency(data, scaled_rows, needed, f"efficiency-{index}", *size)
        for index, size in enumerate(SIZES)
    ]
    return Figure(charts[0], charts[1], f"{caption}.")


def _efficiency(
    data: Curve,
    scaled_rows: Sequence[Row],
    needed: Callable[[float], float],
    name: str,
    width: float,
    height: float,
) -> Chart:
    highest = max(min(row.scaled.efficiency.high, 1.5) for row in scaled_rows if row.scaled)
    marks = svg.nice(0.0, max(1.1, highest * 1.02), 8)
    data = Curve(data.steps, None, None, data.last, data.last * 1.06, data.log)
    chart = Chart(
        name,
        "Efficiency against the number of workers",
        "; ".join(
            f"{row.step.workers} workers: {percent(row.scaled.efficiency.value)}"
            for row in scaled_rows
            if row.scaled
        ),
        workers_axis(data, width),
        Axis(
            "efficiency",
            0.0,
            max(1.1, highest * 1.02),
            marks=marks,
            names=[f"{mark:.0%}" for mark in marks],
        ),
        width,
        height * 0.72,
    )
    chart.legend("measured, 95 % interval", "c-dot", "dot")
    chart.legend("ideal", "c-ideal")
    chart.legend("wanted", "c-wanted")
    chart.across(1.0, "c-ideal")
    chart.line([(n, needed(n)) for n in data.grid() if n >= data.steps[0].workers], "c-wanted")
    for row in scaled_rows:
        if row.scaled is None:
            continue
        share, at = row.scaled.efficiency, row.step.workers
        if math.isfinite(share.high):
            chart.error(at, share.low, share.high, "c-error")
        chart.dot(at, share.value, "c-dot", f"{plural(at, 'worker')}: {percent(share.value)}")
    return chart


def _needed(scale: float, base: int) -> Callable[[float], float]:
    """The efficiency that N workers have when every doubling from `base` on reaches `scale`."""
    return lambda workers: (scale / 2.0) ** math.log2(workers / base)


def workers_axis(data: Curve, width: float) -> Axis:
    """Marks at the steps that were measured, fewer where they would touch."""
    counts = [float(step.level) for step in data.steps]
    label = "workers on each device" if data.steps[0].per_device else "workers"
    if data.log:
        every = math.ceil(len(counts) / (width / 55.0))
        marks = counts[::-1][::every][::-1]
        return Axis(
            label, counts[0] * 0.9, data.end, "log2", marks, [f"{mark:g}" for mark in marks]
        )
    marks = [
        count
        for index, count in enumerate(counts)
        if index == len(counts) - 1 or _apart(count, counts[index + 1])
    ]
    return Axis(label, 0.0, data.end, "linear", marks, [f"{mark:g}" for mark in marks])


def _apart(count: float, following: float) -> bool:
    return following - count >= 1.0


def rate_axis(data: Curve) -> Axis:
    """From 0, or in doublings where the workers are."""
    if not data.log:
        return Axis("requests/s", 0.0, svg.ceiling(data.top * 1.02))
    lowest = min(step.throughput.per_s for step in data.steps)
    return Axis("requests/s", lowest * 0.7, data.top * 1.4, "log2")


def _high(step: Step) -> float:
    rate = step.throughput
    return rate.per_s + min(rate.half_width, rate.per_s)

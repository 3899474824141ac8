"""The chart that answers the question of a run: throughput against the number of workers."""

import math
from dataclasses import dataclass

from scaletest.render.axis import Axis
from scaletest.render.blocks import Figure
from scaletest.render.chart import Chart, Point
from scaletest.render.numbers import format_significant, plural
from scaletest.stats.law import Law
from scaletest.validation.judging.steps import Step
from scaletest.validation.report.rows import rate_text
from scaletest.validation.report.words import interval_text, workers_label
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

    def law_between(self, low: float, high: float) -> list[Point]:
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
        label = workers_label(self.steps[0].per_device)
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


def throughput_figure(run: ValidationRun) -> Figure | None:
    """Throughput with intervals, the fitted law and the ideal line; None when there is nothing to
    draw.
    """
    result = run.result
    steps = [step for step in result.steps if step.throughput.per_s > 0]
    if not steps:
        return None
    # the law and its peak, and how far the axis goes
    law = result.growth.choice.law if result.growth.choice else None
    first, last = steps[0], steps[-1]
    peak = result.growth.peak.workers
    end = last.level * (BEYOND if law else 1.06)
    if law and peak and peak <= FARTHEST * last.level:
        end = max(end, peak * 1.1)
    data = Curve(steps, law, peak, end)
    times = format_significant(last.throughput.per_s / first.throughput.per_s)
    many = len(data.steps) > 1
    sound = all(step.sound for step in data.steps)
    parts = {
        f"{plural(last.workers, 'worker')} did {rate_text(last)} requests/s": True,
        f", {times} times as much as {plural(first.workers, 'worker')}": many,
        f". Bars are the {interval_text(data.steps)}; the dashed line is what N workers would do"
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
        f"{plural(step.workers, 'worker')}: {rate_text(step)} requests/s" for step in data.steps
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
        rate = step.throughput
        if len(step.samples) > 1:
            for sample in step.samples:
                chart.dot(step.level, sample.throughput.per_s, "c-faint", radius=3.0)
        if math.isfinite(rate.half_width):
            low, high = rate.per_s - rate.half_width, rate.per_s + rate.half_width
            chart.error(step.level, low, high, "c-error")
        css = "c-dot" if step.sound else "c-dot c-hollow"
        chart.dot(step.level, rate.per_s, css, tip)
    return chart

"""The chart that answers the question of a run: throughput against the number of workers."""

import math
from dataclasses import dataclass

from scaletest.render.axis import Axis
from scaletest.render.blocks import Figure
from scaletest.render.chart import Chart, Point
from scaletest.render.numbers import format_significant, plural
from scaletest.stats.law import Law
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step
from scaletest.validation.report.rows import rate_text
from scaletest.validation.report.words import rate_interval_text, workers_label

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
    end: float  # level at the end of the axis

    @property
    def is_log(self) -> bool:
        """Whether every doubling is equally long."""
        # evenly spaced, the first of more workers would lie on top of each other
        return self.steps[-1].level > 16

    def ideal(self, level: float) -> float:
        """Return requests/s if nothing held the workers up, from the first step."""
        first = self.steps[0]
        return first.throughput.per_s / first.level * level

    def law_between(self, low: float, high: float) -> list[Point]:
        """Return the law from one level to another, both included; nothing without one."""
        if self.law is None:
            return []
        points = []
        for index in range(CURVE_POINTS):
            part = index / (CURVE_POINTS - 1)
            level = low * (high / low) ** part if self.is_log else low + (high - low) * part
            points.append((level, self.law.at(level)))
        return points


def throughput_figure(result: Evaluation) -> Figure | None:
    """Return throughput with intervals, the fitted law and the ideal line.

    None with fewer than two points.
    """
    steps = [step for step in result.steps if step.throughput.per_s > 0]
    if len(steps) < 2:
        return None
    # the law and its peak, and how far the axis goes
    law = result.growth.choice.law if result.growth.choice else None
    first, last = steps[0], steps[-1]
    peak = result.growth.peak.workers
    end = last.level * (BEYOND if law else 1.06)
    if law and peak and peak <= FARTHEST * last.level:
        end = max(end, peak * 1.1)
    curve = Curve(steps, law, peak, end)

    caption = f"{plural(last.workers, 'worker')} did {rate_text(last)} requests/s"
    if len(steps) > 1:
        times = format_significant(last.throughput.per_s / first.throughput.per_s)
        caption += f", {times} times as much as {plural(first.workers, 'worker')}"
    caption += (
        f". Bars are the {rate_interval_text(steps)}; the dashed line is what N workers would do"
        " with nothing in the way"
    )
    if law:
        caption += ", the solid line the fitted law, dotted where it is extrapolated"
    if curve.is_log:
        caption += "; both axes are logarithmic: every doubling is equally long"
    if not all(step.sound for step in steps):
        caption += "; a hollow point is a step that cannot be judged"
    return Figure(_draw_throughput(curve), f"{caption}.")


def _draw_throughput(curve: Curve) -> Chart:
    tips = [
        f"{plural(step.workers, 'worker')}: {rate_text(step)} requests/s" for step in curve.steps
    ]
    steps, levels = curve.steps, [float(step.level) for step in curve.steps]
    # What was measured fills the frame: the ideal line and the law leave it where they lie far
    # above.
    rates = [step.throughput for step in steps]
    measured = max(rate.per_s + min(rate.half_width, rate.per_s) for rate in rates)
    drawn = [per_s for _, per_s in curve.law_between(levels[0], curve.end)]
    top = max(measured, min(max([curve.ideal(levels[-1]), *drawn]), HEADROOM * measured))
    label, names = workers_label(steps[0].per_device), [f"{level:g}" for level in levels]
    across = Axis(label, 0.0, curve.end, "linear", levels, names)
    up = Axis("requests/s", 0.0, top * 1.05)
    if curve.is_log:
        across = Axis(label, levels[0] * 0.9, curve.end, "log2", levels, names)
        up = Axis("requests/s", min(rate.per_s for rate in rates) * 0.7, top * 1.4, "log2")
    chart = Chart(
        "throughput",
        "Throughput against the number of workers",
        "; ".join(tips),
        across,
        up,
        WIDTH,
        HEIGHT,
    )
    # the law, where it was measured and beyond
    chart.legend("measured, 95 % interval", "c-dot", "dot")
    chart.legend("ideal", "c-ideal")
    if curve.law:
        first, last = levels[0], levels[-1]
        chart.legend(f"law: {curve.law.name}", "c-law")
        chart.legend("not tested", "c-shade", "area")
        chart.shade(last, curve.end, "c-shade")
        chart.line(curve.law_between(first, last), "c-law")
        chart.line(curve.law_between(last, curve.end), "c-beyond")
    # the ideal, which beyond the frame would lose its slope
    ends = (max(0.0, chart.x.low), min(curve.end, chart.y.high / curve.ideal(1.0)))
    chart.line([(level, curve.ideal(level)) for level in ends], "c-ideal")
    if curve.peak:
        chart.legend("peak", "c-wanted")
        chart.vertical_line(
            curve.peak, "c-wanted", f"throughput is highest with {curve.peak:.0f} workers"
        )
    # each step with its interval, above its measurements where there are several
    for step, tip in zip(curve.steps, tips, strict=True):
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

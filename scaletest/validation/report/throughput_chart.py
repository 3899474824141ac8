"""The chart that answers the question of a run: throughput against the number of workers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.render.axis import Axis
from scaletest.render.blocks import Figure
from scaletest.render.chart import Chart, Point
from scaletest.render.numbers import format_significant, plural
from scaletest.stats.estimate import Estimate
from scaletest.stats.law import Law
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.report.rows import rate_text
from scaletest.validation.report.words import rate_interval_text, workers_label

# The end of the axis of workers, as a multiple of the last step: the law is drawn beyond it.
END_WITH_LAW = 1.5
END_WITHOUT_LAW = 1.06
# The low ends of logarithmic axes, as parts of the first step and of the lowest throughput.
LOG_START_OF_LEVELS = 0.9
LOG_START_OF_RATES = 0.7
# The end of the axis of throughput, as a multiple of the highest that was measured.
HEADROOM = 1.2
# With more workers both axes are logarithmic, or the first steps would lie on top of each other.
MOST_ON_LINEAR_AXIS = 16
CURVE_POINTS = 65
WIDTH, HEIGHT = 760.0, 420.0


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """One step in the chart."""

    level: int  # where it stands: workers, workers on each device, or replicas
    throughput: Estimate  # per second; its ends are infinite where they are unknown
    measurements: Sequence[float]  # per second, of which the throughput is made
    tip: str
    is_sound: bool = True  # whether it may be judged


def throughput_figure(result: Evaluation) -> Figure | None:
    """Return throughput with intervals, the fitted law and the ideal line.

    None with fewer than two points.
    """
    steps = [step for step in result.steps if step.throughput.per_s > 0]
    if len(steps) < 2:
        return None
    points = [
        MeasuredPoint(
            step.level,
            step.throughput.estimate,
            [sample.throughput.per_s for sample in step.samples],
            f"{plural(step.workers, 'worker')}: {rate_text(step)} requests/s",
            step.sound,
        )
        for step in steps
    ]
    law = result.growth.choice.law if result.growth.choice else None
    label = workers_label(steps[0].per_device)
    chart = draw_scaling(points, law, label, "requests/s", peak=result.growth.peak.workers)
    first, last = steps[0], steps[-1]
    times = format_significant(last.throughput.per_s / first.throughput.per_s)
    return Figure(
        chart,
        f"{plural(last.workers, 'worker')} did {rate_text(last)} requests/s, {times} times as much"
        f" as {plural(first.workers, 'worker')}. Bars are the {rate_interval_text(steps)}."
        f" {explain_scaling(chart)}",
    )


def explain_scaling(chart: Chart) -> str:
    """Return what a reader must know of a chart made by `draw_scaling`."""
    text = "The dashed line is what there would be with nothing in the way."
    if chart.x.kind != "linear":
        text += " Both axes are logarithmic: every doubling is equally long."
    return text


def draw_scaling(
    points: Sequence[MeasuredPoint],
    law: Law | None,
    x_label: str,
    unit: str,
    *,
    peak: float | None = None,
) -> Chart:
    """Draw throughput against what was doubled, with the law and the ideal line.

    points: one at least, ascending. peak: the level at which throughput is highest, if any is.
    """
    first, last = points[0], points[-1]
    ideal_of_one = first.throughput.value / first.level
    # What was measured fills the frame; the ideal line and the law leave it where they lie far
    # above.
    x_end = last.level * (END_WITH_LAW if law else END_WITHOUT_LAW)
    y_end = HEADROOM * max(_upper_end(point) for point in points)
    x_low = y_low = 0.0
    kind = "linear"
    if last.level > MOST_ON_LINEAR_AXIS:
        x_low = first.level * LOG_START_OF_LEVELS
        y_low = min(point.throughput.value for point in points) * LOG_START_OF_RATES
        kind = "log2"
    levels = [float(point.level) for point in points]
    chart = Chart(
        "throughput",
        f"Throughput against the number of {x_label}",
        "; ".join(point.tip for point in points),
        Axis(x_label, x_low, x_end, kind, levels, [f"{level:g}" for level in levels]),
        Axis(unit, y_low, y_end, kind),
        WIDTH,
        HEIGHT,
    )
    # the law, where it was measured and beyond
    chart.legend("measured, 95 % interval", "c-dot", "dot")
    chart.legend("ideal", "c-ideal")
    if law:
        chart.legend(f"law: {law.name}", "c-law")
        chart.legend("not tested", "c-shade", "area")
        chart.shade(last.level, x_end, "c-shade")
        chart.line(_curve(law, first.level, last.level), "c-law")
        chart.line(_curve(law, last.level, x_end), "c-beyond")
    # the ideal, which beyond the frame would lose its slope
    ideal_ends = (x_low, min(x_end, y_end / ideal_of_one))
    chart.line([(level, ideal_of_one * level) for level in ideal_ends], "c-ideal")
    if peak and peak < x_end:
        chart.legend("peak", "c-wanted")
        chart.vertical_line(peak, "c-wanted", f"throughput is highest at {peak:.0f}")
    # each step with its interval, above its measurements where there are several
    if not all(point.is_sound for point in points):
        chart.legend("cannot be judged", "c-dot c-hollow", "dot")
    for point in points:
        throughput = point.throughput
        if len(point.measurements) > 1:
            for per_s in point.measurements:
                chart.dot(point.level, per_s, "c-faint", radius=3.0)
        if math.isfinite(throughput.high):
            chart.error(point.level, throughput.low, throughput.high, "c-error")
        css = "c-dot" if point.is_sound else "c-dot c-hollow"
        chart.dot(point.level, throughput.value, css, point.tip)
    return chart


def _upper_end(point: MeasuredPoint) -> float:
    """Return the upper end of an interval, but at most twice its value, which it may exceed far."""
    return min(point.throughput.high, 2 * point.throughput.value)


def _curve(law: Law, low: float, high: float) -> list[Point]:
    """Return the law from one level to another, both included."""
    parts = [index / (CURVE_POINTS - 1) for index in range(CURVE_POINTS)]
    levels = [low * (high / low) ** part for part in parts]
    return [(level, law.at(level)) for level in levels]

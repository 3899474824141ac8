"""The curves of compared runs over each other, a chart for each number of several places."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from scaletest.render.axis import Axis, axis_end, round_marks
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_quantity, plural, unit_scale
from scaletest.render.text import clean_text
from scaletest.report.words import AXES
from scaletest.stats.comparison import Side
from scaletest.stats.estimate import Estimate
from scaletest.stats.measure import Measure

WIDTH, HEIGHT = 420.0, 280.0
# So many runs are told apart by colour and dashes, and so many charts are drawn.
MOST_RUNS, MOST_CHARTS = 6, 24
# Ends of intervals that lie farther above the highest value, as its multiple, are cut.
FARTHEST_END = 1.6
# Numbers farther apart, as 1 to 32 workers, have an axis on which doublings are equally long.
MOST_ON_LINEAR_AXIS = 16


@dataclass
class Curves:
    """One number in all runs, such as the throughput at 1, 2 and 4 workers."""

    measure: Measure  # of one place
    axis: str  # what the places count, such as workers
    # estimates by place, for each run that has the number, by its position among the runs
    of_runs: dict[int, dict[float, Estimate]] = field(default_factory=dict)


def curve_charts(runs: Sequence[Side]) -> list[Chart]:
    """Draw a chart for every number with several places on one axis, the curves of all runs in it.

    runs: the base and its candidates.
    """
    names = [clean_text(run.name, limit=40) for run in runs[:MOST_RUNS]]
    all_curves: dict[tuple[str, str], Curves] = {}
    for number in range(len(names)):
        for measure in runs[number].measures:
            if len(measure.where) != 1:
                continue
            ((axis, place),) = measure.where.items()
            if not isinstance(place, str):
                curves = all_curves.setdefault((measure.name, axis), Curves(measure, axis))
                curves.of_runs.setdefault(number, {})[place] = measure.estimate
    # those that decide come first
    ordered = sorted(all_curves.values(), key=lambda curves: not curves.measure.decides)
    charts = [_draw_curves(curves, names) for curves in ordered]
    return [chart for chart in charts if chart][:MOST_CHARTS]


def _draw_curves(curves: Curves, names: Sequence[str]) -> Chart | None:
    """Draw the curves of one number; None where there is nothing to lay over each other.

    names: of the runs.
    """
    places = sorted(set(chain.from_iterable(curves.of_runs.values())))
    estimates = list(chain.from_iterable(curve.values() for curve in curves.of_runs.values()))
    highest = max(estimate.value for estimate in estimates)
    if len(places) < 2 or highest <= 0:
        return None
    ends = [estimate.high for estimate in estimates if estimate.high < FARTHEST_END * highest]
    name, unit_of_measure = curves.measure.name, curves.measure.unit
    size, unit = unit_scale(highest, unit_of_measure)
    chart = Chart(
        re.sub(r"[^A-Za-z0-9]+", "-", f"compare-{name}-{curves.axis}"),
        name,
        "; ".join(
            f"{names[number]}: {plural(len(curve), 'point')}"
            for number, curve in curves.of_runs.items()
        ),
        _axis_of_places(curves.axis.replace("_", " "), places),
        Axis(
            AXES.get(unit, unit or name),
            low=0.0,
            high=axis_end(max([highest, *ends]) / size * 1.02),
        ),
        width=WIDTH,
        height=HEIGHT,
    )
    for number, curve in curves.of_runs.items():
        css = f"c-run-{number}"
        chart.legend(names[number], f"c-run {css}")
        points = [(place, estimate.value / size) for place, estimate in sorted(curve.items())]
        chart.line(points, f"c-run {css}")
        for place, estimate in curve.items():
            value = format_quantity(estimate.value, unit_of_measure)
            point = estimate.scaled(1 / size)
            if math.isfinite(point.high) and point.high > point.low:
                chart.error(place, point.low, point.high, f"c-run-error {css}")
            tip = f"{names[number]}, {place:g}: {value}"
            chart.dot(place, point.value, f"c-run-dot c-run-dot-{number}", tip)
    return chart


def _axis_of_places(label: str, places: Sequence[float]) -> Axis:
    """Return the axis of places, which are ascending."""
    lowest, highest = places[0], places[-1]
    if lowest > 0 and highest > MOST_ON_LINEAR_AXIS * lowest:
        return Axis(label, low=lowest * 0.9, high=highest * 1.1, kind="log2")
    marks = round_marks(0.0, highest * 1.05)
    if all(isinstance(place, int) for place in places):
        marks = [mark for mark in marks if mark == round(mark)]
    return Axis(label, low=0.0, high=highest * 1.05, marks=marks)

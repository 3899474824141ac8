"""The curves of compared runs over each other, a chart for every number that has several places."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain

from scaletest.render.axis import Axis, axis_end, round_marks
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_quantity, plural, unit_scale
from scaletest.render.text import clean_text
from scaletest.report.words import AXES
from scaletest.stats.comparison import Side
from scaletest.stats.estimate import Estimate
from scaletest.stats.measure import Measure, place_text

WIDTH, HEIGHT = 420.0, 280.0
# So many runs are told apart by colour and dashes, and so many charts are drawn.
MOST_RUNS, MOST_CHARTS = 6, 24
Mark = str | int | float
# The estimates of a run in one chart, by their marks on the axis across.
Curve = dict[Mark, Estimate]


def curve_charts(runs: Sequence[Side]) -> list[Chart]:
    """Draw a chart for every number that has several places, the curves of all runs in each.

    runs: the base and its candidates.
    """
    runs = runs[:MOST_RUNS]
    names = [clean_text(run.name, limit=40) for run in runs]
    measures: dict[tuple[str, str], Measure] = {}
    curves: dict[tuple[str, str], dict[int, Curve]] = {}
    for number, run in enumerate(runs):
        for measure in run.measures:
            title, label, mark = _chart_place(measure)
            measures.setdefault((title, label), measure)
            curves.setdefault((title, label), {}).setdefault(number, {})[mark] = measure.estimate
    # those that decide come first
    charts = [
        _draw_curves(*title, measures[title], names, curves[title])
        for title in sorted(curves, key=lambda title: not measures[title].decides)
    ]
    return [chart for chart in charts if chart][:MOST_CHARTS]


def _chart_place(measure: Measure) -> tuple[str, str, Mark]:
    """Return the title of a measure's chart, the label of the axis across, and its mark there.

    The mark is the place of the measure, or its name where it has no place.
    """
    if len(measure.where) == 1:
        ((label, mark),) = measure.where.items()
        return measure.name, label.replace("_", " "), mark
    if measure.where:
        return measure.name, ", ".join(measure.where), place_text(measure.where)
    name, _, statistic = measure.name.rpartition(".")
    return statistic if name else measure.unit or "others", "", name or measure.name


def _draw_curves(
    title: str, label: str, measure: Measure, names: Sequence[str], curves: Mapping[int, Curve]
) -> Chart | None:
    """Draw the curves of one number; None where there is nothing to lay over each other.

    names, curves: by the number of the run.
    """
    marks = list(dict.fromkeys(chain.from_iterable(curves.values())))
    points = list(chain.from_iterable(curve.values() for curve in curves.values()))
    top = max(point.value for point in points)
    if len(marks) < 2 or top <= 0:
        return None
    # intervals that reach higher are cut, so that curves can be seen
    high = max(top, *(point.high for point in points if point.high < 1.6 * top), 0.0)
    size, unit = unit_scale(top, measure.unit)
    chart = Chart(
        re.sub(r"[^A-Za-z0-9]+", "-", f"compare-{title}-{label}"),
        title,
        "; ".join(
            [f"{names[run]}: {plural(len(curve), 'point')}" for run, curve in curves.items()]
        ),
        _axis_across(label, marks),
        Axis(AXES.get(unit, unit or title), low=0.0, high=axis_end(high / size * 1.02)),
        width=WIDTH,
        height=HEIGHT,
    )
    for run, curve in curves.items():
        chart.legend(names[run], f"c-run c-run-{run}")
        if not chart.x.names:
            chart.line(
                sorted((float(mark), curve[mark].value / size) for mark in curve),
                f"c-run c-run-{run}",
            )
        for mark, estimate in curve.items():
            tip = clean_text(
                f"{names[run]}, {mark}: {format_quantity(estimate.value, measure.unit)}", limit=200
            )
            if any(isinstance(name, str) for name in marks):
                # of texts, which are 1 apart, runs stand beside each other
                place = marks.index(mark) + 0.1 * (run - MOST_RUNS / 2)
            else:
                place = float(mark)
            point = estimate.scaled(1 / size)
            if math.isfinite(point.high) and point.high > point.low:
                chart.error(place, point.low, point.high, f"c-run-error c-run-{run}")
            chart.dot(place, point.value, f"c-run-dot c-run-dot-{run}", tip)
    return chart


def _axis_across(label: str, marks: Sequence[Mark]) -> Axis:
    """Return the axis across: texts side by side, numbers where they stand.

    Numbers that are far apart, as 1 to 32 workers, get an axis on which doublings are as long.
    """
    numbers = [mark for mark in marks if not isinstance(mark, str)]
    if len(numbers) < len(marks):
        names = [clean_text(mark, limit=24) for mark in marks]
        return Axis(label, low=-0.5, high=len(marks) - 0.5, marks=range(len(marks)), names=names)
    low, high = min(numbers), max(numbers)
    if low > 0 and high > 16 * low:
        return Axis(label, low=low * 0.9, high=high * 1.1, kind="log2")
    round_numbers = round_marks(0.0, high * 1.05)
    if all(isinstance(number, int) for number in numbers):
        round_numbers = [mark for mark in round_numbers if mark == round(mark)]
    return Axis(label, low=0.0, high=high * 1.05, marks=round_numbers)

"""The charts of a client's load, second by second over its last minutes."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from scaletest.load.snapshot import LoadSnapshot, SeriesPoint
from scaletest.load.statistics import MOST_POINTS
from scaletest.model.histogram import NEEDED
from scaletest.render import numbers
from scaletest.render.axis import Axis, axis_end, round_marks
from scaletest.render.chart import Chart

# Small, so that a chart which fills half of a page has large labels.
WIDTH, HEIGHT = 460.0, 190.0
# What the marks of a time axis may be apart, in seconds.
CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
DAY_S = 86400
MOST_MARKS = 5
TIMES = {
    "wait": ("Wait in the queue", "From enqueue to start, by the clock of Redis."),
    "run": ("Run", "Around the workload, in the worker."),
    "overhead": ("Overhead of scaletest", "Total, less wait and run."),
    "total": (
        "Total",
        "At the client, from the start to the reply; in open load, from the intended start.",
    ),
}
SPARSE = f"The 95th percentile is drawn where a second has {NEEDED['p95']} requests or more."


class PlotLine(NamedTuple):
    """One line of a chart."""

    name: str
    css: str  # its class
    values: Sequence[float | None]  # second by second


class LoadChart(NamedTuple):
    """A chart with its lines, which the chart itself does not explain."""

    key: str  # the script's name for it
    lines: Sequence[PlotLine]
    chart: Chart


def draw_load(snapshot: LoadSnapshot) -> list[LoadChart]:
    """Draw all charts of a load: its rate, the requests in flight, and their times."""
    points = snapshot.points
    span = f"The last {MOST_POINTS // 60} minutes." if points else "No full second yet."
    # what was asked for is drawn beside the rate or the requests in flight, whichever is steered
    rates = [
        PlotLine("succeeded", "c-data", [point.succeeded for point in points]),
        PlotLine("failed", "c-fail", [point.failed for point in points]),
    ]
    in_flight = [PlotLine("highest", "c-data", [point.in_flight for point in points])]
    wanted = PlotLine("asked for", "c-wanted", [point.asked for point in points])
    if snapshot.rate is not None:
        rates.append(wanted)
    elif snapshot.resume_with is not None:
        in_flight.append(wanted)
    charts = [
        _draw_lines(points, "rate", "Requests per second", span, rates),
        _draw_lines(
            points, "in_flight", "Requests in flight", "Submitted and not answered yet.", in_flight
        ),
    ]
    # the times of the requests of each second
    for name, (title, caption) in TIMES.items():
        spreads = [getattr(point, name) for point in points]
        lines = [
            PlotLine("median", "c-data", [spread.p50_s for spread in spreads]),
            PlotLine("95th percentile", "c-law", [spread.p95_s for spread in spreads]),
            PlotLine("longest", "c-ideal", [spread.high_s for spread in spreads]),
        ]
        charts.append(_draw_lines(points, name, title, caption, lines))
    return charts


def _draw_lines(
    points: Sequence[SeriesPoint], key: str, title: str, caption: str, lines: Sequence[PlotLine]
) -> LoadChart:
    """Draw lines over the time of the points."""
    began_s = points[0].at_s if points else 0.0
    last_s = points[-1].at_s + 1.0 - began_s if points else 1.0
    moments = [point.at_s + 0.5 - began_s for point in points]
    marks = clock_marks(last_s)
    highest = max(filter(None, chain.from_iterable(line.values for line in lines)), default=0.0)
    chart = Chart(
        f"chart-{key}",
        title,
        caption,
        Axis("", low=0.0, high=last_s, marks=marks, names=list(map(elapsed_text, marks))),
        amount_axis(key, highest),
        width=WIDTH,
        height=HEIGHT,
    )
    for line in lines:
        # a line breaks where a value is unknown
        heights = [math.nan if value is None else value for value in line.values]
        chart.line(list(zip(moments, heights, strict=True)), line.css)
    return LoadChart(key, lines, chart)


def amount_axis(key: str, top: float) -> Axis:
    """Return the upright axis of a chart, with room above its highest value `top`."""
    most_marks = 5
    if key == "in_flight":  # requests are whole, and so are the marks
        top = float(max(1, math.ceil(top * 1.05)))
        high = axis_end(top, min(most_marks, int(top) + 1))
        most_marks = min(most_marks, int(high) + 1)
    else:
        high = axis_end(top * 1.05 or 1.0, most_marks)
    marks = round_marks(0.0, high, most_marks)
    names = list(map(numbers.format_seconds, marks)) if key in TIMES else None
    return Axis("", low=0.0, high=high, marks=marks, names=names)


def clock_marks(last_s: float) -> list[float]:
    """Return round times from 0 to `last_s`, at most MOST_MARKS of them and 0."""
    fitting = (step for step in CLOCK_STEPS if last_s / step <= MOST_MARKS)
    step = next(fitting, DAY_S * math.ceil(last_s / DAY_S / MOST_MARKS))
    return [float(step * number) for number in range(int(last_s // step) + 1)]


def elapsed_text(duration_s: float) -> str:
    """Format a time on the axis of a chart: 2:05, or 1:20 h."""
    total_s = round(duration_s)
    if total_s < 3600:
        return f"{total_s // 60}:{total_s % 60:02}"
    return f"{total_s // 3600}:{total_s % 3600 // 60:02} h"

"""The page for people: rendered on the server, useful without script; a script updates it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from flask import Response, make_response, render_template

from scaletest.load.bounded_counts import PlaceCount, SeriesPoint
from scaletest.load.statistics import LoadSnapshot
from scaletest.pages.site import READ
from scaletest.render import numbers
from scaletest.render.svg import Axis, Chart, ceiling, nice
from scaletest.web.legacy_api import counts, steering
from scaletest.web.text import device_name

MOST_ROWS = 50
WIDTH, HEIGHT = 640.0, 200.0
TIMES = {
    "wait": ("Wait in the queue", "From enqueue to start, by the clock of Redis."),
    "run": ("Run", "Around the workload, in the worker."),
    "overhead": ("Overhead of the tester", "Total, less wait and run."),
    "total": (
        "Total",
        "At the client, from the start to the reply; in open load, from the intended start.",
    ),
}


class PlaceTotals(NamedTuple):
    """Totals of one node, pod or device, a row of a table."""

    name: str
    succeeded: int
    failed: int
    run_mean_s: float | None
    run_high_s: float | None


class PlotLine(NamedTuple):
    """One line of a chart; `style` is a class of the style sheet."""

    name: str
    style: str
    figures: Sequence[float | None]


class PageChart(NamedTuple):
    """A chart with its lines. key: the script's name for it."""

    key: str
    lines: Sequence[PlotLine]
    chart: Chart


def index() -> Response:
    """The whole page."""
    return _render("page.html")


def live() -> Response:
    """The parts of the page that change."""
    return _render("live.html")


def _render(template: str) -> Response:
    snapshot = steering().snapshot()
    context = {
        "snapshot": snapshot,
        "steering": steering(),
        "http": counts(),
        "figures": figures(snapshot),
        "places": places(snapshot),
        "most_rows": MOST_ROWS,
    }
    return make_response(render_template(template, **context))


def places(snapshot: LoadSnapshot) -> dict[str, list[PlaceTotals]]:
    """Totals by node, pod and device, the busiest first."""
    return {
        "Node": _rows(snapshot, lambda counted: counted.place.node),
        "Pod": _rows(snapshot, lambda counted: counted.place.pod),
        "Device": _rows(
            snapshot,
            lambda counted: (
                f"{device_name(counted.place.device) or 'no device'} of {counted.place.node}"
            ),
        ),
    }


def figures(snapshot: LoadSnapshot) -> list[PageChart]:
    """The charts."""
    points = [load_bin.point(snapshot.began_s) for load_bin in snapshot.bins]
    xs = [point.at_s + point.span_s / 2 for point in points]
    span = f"One point is {points[-1].span_s} s." if points else "No full second yet."
    caption = f"{span} The band reaches from the lowest to the highest second of a point."
    band = [(at, point.rate_low, point.rate_high) for at, point in zip(xs, points, strict=True)]
    rates = [
        PlotLine("succeeded", "c1", [point.rate_per_s for point in points]),
        PlotLine("failed", "bad", [point.failed / point.span_s for point in points]),
    ]
    highest = [PlotLine("highest", "c2", [point.in_flight_high for point in points])]
    answered = "Submitted and not answered yet."
    return [
        _figure("rate", "Requests per second", caption, rates, xs, band),
        _figure("in_flight", "Requests in flight", answered, highest, xs),
        *(_figure(name, *TIMES[name], _times(name, points), xs) for name in TIMES),
    ]


def _times(name: str, points: Sequence[SeriesPoint]) -> list[PlotLine]:
    spreads = [getattr(point, name) for point in points]
    return [
        PlotLine("median", "c1", [spread.p50_s for spread in spreads]),
        PlotLine("95th percentile", "c2", [spread.p95_s for spread in spreads]),
        PlotLine("longest", "c3", [spread.high_s for spread in spreads]),
    ]


def _figure(
    key: str,
    title: str,
    caption: str,
    lines: Sequence[PlotLine],
    xs: Sequence[float],
    band: Sequence[tuple[float, float, float]] = (),
) -> PageChart:
    """Lines over elapsed seconds `xs`, drawn for browsers without script and builds without uPlot.
    Colours and fonts come from the style sheet, because the page's policy forbids inline styles.
    """
    known = filter(None, chain.from_iterable(line.figures for line in lines))
    highest = max((*known, *(above for _, _, above in band)), default=0.0)
    high = ceiling(highest or 1.0, 5)
    first = xs[0] if xs else 0.0
    last = max(xs[-1], first + 1) if xs else 1.0
    times = [first + (last - first) * part / 4 for part in range(5)]
    marks = nice(0.0, high, 5)
    show = numbers.seconds if key in TIMES else numbers.significant
    chart = Chart(
        f"chart-{key}",
        title,
        caption,
        Axis("", first, last, marks=times, names=[elapsed(at - first) for at in times]),
        Axis("", 0.0, high, marks=marks, names=[show(mark) for mark in marks]),
        WIDTH,
        HEIGHT,
    )
    if band:
        chart.band(band, "band")
    for line in lines:
        _draw(chart, line, xs)
    return PageChart(key, lines, chart)


def _draw(chart: Chart, line: PlotLine, xs: Sequence[float]) -> None:
    """A line that breaks where a figure is unknown; a dot where it has a single point."""
    known = list(map(_drawn, line.figures))
    chart.line(list(zip(xs, known, strict=True)), f"line {line.style}")
    neighbours = zip([math.nan, *known], [*known[1:], math.nan], strict=False)
    for at, figure, (before, after) in zip(xs, known, neighbours, strict=False):
        if math.isnan(before) and math.isnan(after) and not math.isnan(figure):
            chart.dot(at, figure, f"dot {line.style}", radius=2.0)


def _drawn(figure: float | None) -> float:
    """The figure as charts take it: unknown ones are no number."""
    return math.nan if figure is None else figure


def elapsed(duration_s: float) -> str:
    """Time since the first point, short."""
    whole = round(duration_s)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def _rows(snapshot: LoadSnapshot, name: Callable[[PlaceCount], str]) -> list[PlaceTotals]:
    counts: dict[str, list[PlaceCount]] = {}
    for counted in snapshot.places:
        counts.setdefault(name(counted), []).append(counted)
    totals = [_sum(key, parts) for key, parts in counts.items()]
    return sorted(totals, key=lambda counted: (-counted.succeeded - counted.failed, counted.name))


def _sum(name: str, parts: list[PlaceCount]) -> PlaceTotals:
    succeeded = sum(part.succeeded for part in parts)
    total_s = sum((part.run_mean_s or 0.0) * part.succeeded for part in parts)
    return PlaceTotals(
        name,
        succeeded,
        sum(part.failed for part in parts),
        total_s / succeeded if succeeded else None,
        max((part.run_high_s for part in parts if part.run_high_s is not None), default=None),
    )


ROUTES = (("/", READ, index), ("/live", READ, live))

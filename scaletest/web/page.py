"""The page for people: rendered on the server, useful without script; a script updates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from flask import Response, current_app, g, make_response, render_template
from markupsafe import Markup

from scaletest import __version__
from scaletest.load.series import SeriesPoint
from scaletest.load.snapshot import LoadSnapshot
from scaletest.load.tally import PlaceCount
from scaletest.web import numbers, svg
from scaletest.web.legacy_api import READ, counts, steering
from scaletest.web.text import device_name

UPLOT = Path(__file__).parent / "static" / "vendor" / "uPlot.iife.min.js"
MOST_ROWS = 50
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


class PageChart(NamedTuple):
    """A chart with its caption. key: the script's name for it."""

    key: str
    title: str
    caption: str
    lines: tuple[tuple[str, str], ...]
    drawing: Markup


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
        "root": g.root,
        "version": __version__,
        "numbers": numbers,
        "figures": figures(snapshot),
        "places": places(snapshot),
        "most_rows": MOST_ROWS,
        "uplot": UPLOT.exists(),
        "debug": current_app.debug,
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
    return [
        _rate(points, xs, span),
        _in_flight(points, xs),
        *(_times(name, points, xs) for name in TIMES),
    ]


def _rate(points: Sequence[SeriesPoint], xs: list[float], span: str) -> PageChart:
    lines = [
        svg.PlotLine("succeeded", "c1", [point.rate_per_s for point in points]),
        svg.PlotLine("failed", "bad", [point.failed / point.span_s for point in points]),
    ]
    band = [[point.rate_low for point in points], [point.rate_high for point in points]]
    title = "Requests per second"
    caption = f"{span} The band reaches from the lowest to the highest second of a point."
    drawing = svg.chart(f"{title} over time", xs, lines, numbers.rate, band)
    return PageChart("rate", title, caption, _legend(lines), drawing)


def _in_flight(points: Sequence[SeriesPoint], xs: list[float]) -> PageChart:
    lines = [svg.PlotLine("highest", "c2", [point.in_flight_high for point in points])]
    title = "Requests in flight"
    drawing = svg.chart(f"{title} over time", xs, lines, numbers.rate)
    return PageChart("in_flight", title, "Submitted and not answered yet.", _legend(lines), drawing)


def _times(name: str, points: Sequence[SeriesPoint], xs: list[float]) -> PageChart:
    spreads = [getattr(point, name) for point in points]
    lines = [
        svg.PlotLine("median", "c1", [spread.p50_s for spread in spreads]),
        svg.PlotLine("95th percentile", "c2", [spread.p95_s for spread in spreads]),
        svg.PlotLine("longest", "c3", [spread.high_s for spread in spreads]),
    ]
    title, caption = TIMES[name]
    return PageChart(
        name,
        title,
        caption,
        _legend(lines),
        svg.chart(f"{title} over time", xs, lines, numbers.seconds),
    )


def _legend(lines: Sequence[svg.PlotLine]) -> tuple[tuple[str, str], ...]:
    return tuple((line.name, line.style) for line in lines)


def _rows(snapshot: LoadSnapshot, name: Callable[[PlaceCount], str]) -> list[PlaceTotals]:
    counts: dict[str, list[PlaceCount]] = {}
    for counted in snapshot.places:
        counts.setdefault(name(counted), []).append(counted)
    totals = [_sum(key, parts) for key, parts in counts.items()]
    return sorted(totals, key=lambda counted: (-counted.succeeded - counted.failed, counted.name))


def _sum(name: str, parts: list[PlaceCount]) -> PlaceTotals:
    succeeded = sum(part.succeeded for part in parts)
    total = sum(part.run_mean_s * part.succeeded for part in parts if part.run_mean_s is not None)
    highs = [part.run_high_s for part in parts if part.run_high_s is not None]
    mean = total / succeeded if succeeded else None
    return PlaceTotals(
        name, succeeded, sum(part.failed for part in parts), mean, max(highs, default=None)
    )


ROUTES = (("/", READ, index), ("/live", READ, live))

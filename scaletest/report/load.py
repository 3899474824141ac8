"""A client's load as charts and tables, for its page, and as one HTML file.

A load has no verdict: it is whatever somebody asked for, and may still go on.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from scaletest.load.places import PlaceCount, highest
from scaletest.load.statistics import MOST_POINTS, LoadSnapshot, SeriesPoint
from scaletest.model.checks import cut
from scaletest.model.histogram import NEEDED, DurationSummary
from scaletest.render import contents, numbers
from scaletest.render.axis import Axis, ceiling, nice
from scaletest.render.blocks import Cell, Charts, Facts, Pairs, Share, Table, Text
from scaletest.render.chart import Chart
from scaletest.render.style import STYLE
from scaletest.render.text import Markup, device_name
from scaletest.report import failures
from scaletest.report.formats import html

# Small, so that a chart which fills half of a page has large labels.
WIDTH, HEIGHT = 460.0, 190.0
# What the marks of a time axis may be apart, in seconds.
CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
DAY_S = 86400
MOST_MARKS = 5
MOST_ROWS = 50
# Of a foreign name in a table.
LONGEST_NAME = 100
TIMES = {
    "wait": ("Wait in the queue", "From enqueue to start, by the clock of Redis."),
    "run": ("Run", "Around the workload, in the worker."),
    "overhead": ("Overhead of the tester", "Total, less wait and run."),
    "total": (
        "Total",
        "At the client, from the start to the reply; in open load, from the intended start.",
    ),
}
SPARSE = f"The 95th percentile is drawn where a second has {NEEDED['p95']} requests or more."


class PlotLine(NamedTuple):
    """One line of a chart; `css` is its class."""

    name: str
    css: str
    figures: Sequence[float | None]


class LoadChart(NamedTuple):
    """A chart with its lines. key: the script's name for it."""

    key: str
    lines: Sequence[PlotLine]
    chart: Chart

    @property
    def with_legend(self) -> Chart:
        """The chart for a page that explains no lines beside it."""
        for line in self.lines:
            self.chart.legend(line.name, line.css)
        return self.chart


def page(snapshot: LoadSnapshot) -> str:
    """The whole file."""
    sections = contents.page(
        {
            "Over time": (
                Charts([figure.with_legend for figure in figures(snapshot)], "two"),
                Text([SPARSE], "soft"),
            ),
            "Times of requests that succeeded": (times(snapshot),),
            "Outcomes": (outcomes(snapshot),),
            "Failures": (failures.table(snapshot.failures, MOST_ROWS),),
            **{f"By {name}": (table,) for name, table in places(snapshot).items()},
            "The client itself": (itself(snapshot),),
        }
    )
    template = html.environment().get_template("load.html")
    return template.render(
        title=f"Load of queue {snapshot.queue}",
        load=described(snapshot),
        now=numbers.instant(snapshot.now_s),
        facts=facts(snapshot),
        sections=sections,
        style=Markup(STYLE),
    )


def described(snapshot: LoadSnapshot) -> str:
    """The load in words, as it is now."""
    if 0 in (snapshot.parallel, snapshot.rate):
        return "paused"
    if snapshot.load == "closed":
        return f"{numbers.plural(snapshot.parallel, 'request')} kept in flight"
    return snapshot.load


def per_s(rate: float) -> str:
    """A rate with four digits, or all that are left of the point."""
    if rate >= 1000 or not rate:
        return numbers.grouped(round(rate))
    return numbers.significant(rate, 4)


def facts(snapshot: LoadSnapshot) -> Pairs:
    """The few numbers that everybody looks for."""
    ended = snapshot.succeeded + snapshot.failed
    return (
        ("requests per second", per_s(snapshot.per_s)),
        ("succeeded", numbers.grouped(snapshot.succeeded)),
        ("failed", numbers.grouped(snapshot.failed)),
        ("share that succeeded", numbers.share(snapshot.succeeded, ended)),
        ("measured for", numbers.duration(snapshot.elapsed_s)),
    )


def figures(snapshot: LoadSnapshot) -> list[LoadChart]:
    """The charts of a load, second by second over its last minutes."""
    points = snapshot.points
    span = f"The last {MOST_POINTS // 60} minutes." if points else "No full second yet."
    rates = [
        PlotLine("succeeded", "c-data", [point.succeeded for point in points]),
        PlotLine("failed", "c-fail", [point.failed for point in points]),
    ]
    in_flight = [PlotLine("highest", "c-data", [point.in_flight for point in points])]
    asked = PlotLine("asked for", "c-wanted", [point.asked for point in points])
    if snapshot.rate is not None:
        rates.append(asked)
    elif snapshot.resume_with is not None:
        in_flight.append(asked)
    drawn = _Drawn(snapshot, points)
    return [
        drawn.figure(
            "rate",
            "Requests per second",
            span,
            rates,
        ),
        drawn.figure(
            "in_flight", "Requests in flight", "Submitted and not answered yet.", in_flight
        ),
        *(drawn.figure(name, *TIMES[name], _times(name, points)) for name in TIMES),
    ]


def _times(name: str, points: Sequence[SeriesPoint]) -> list[PlotLine]:
    spreads = [getattr(point, name) for point in points]
    return [
        PlotLine("median", "c-data", [spread.p50_s for spread in spreads]),
        PlotLine("95th percentile", "c-law", [spread.p95_s for spread in spreads]),
        PlotLine("longest", "c-ideal", [spread.high_s for spread in spreads]),
    ]


class _Drawn:
    """What all charts of a load have in common: the time."""

    def __init__(self, snapshot: LoadSnapshot, points: Sequence[SeriesPoint]) -> None:
        began_s, self._last = snapshot.now_s, 1.0
        if points:
            began_s = points[0].at_s
            self._last = points[-1].at_s + 1.0 - began_s
        self._xs = [point.at_s + 0.5 - began_s for point in points]

    def figure(
        self,
        key: str,
        title: str,
        caption: str,
        lines: Sequence[PlotLine],
    ) -> LoadChart:
        """Lines over the time. Colours come from the style sheet."""
        known = list(filter(None, chain.from_iterable(line.figures for line in lines)))
        top = max(known, default=0.0)
        marks = clock_marks(self._last)
        chart = Chart(
            f"chart-{key}",
            title,
            caption,
            Axis("", 0.0, self._last, marks=marks, names=list(map(elapsed, marks))),
            amounts(key, top),
            WIDTH,
            HEIGHT,
        )
        for line in lines:
            self._draw(chart, line)
        return LoadChart(key, lines, chart)

    def _draw(self, chart: Chart, line: PlotLine) -> None:
        """A line that breaks where a figure is unknown; a stroke where it has a single point."""
        known = list(map(_drawn, line.figures))
        chart.line(list(zip(self._xs, known, strict=True)), line.css)
        neighbours = zip([math.nan, *known], [*known[1:], math.nan], strict=False)
        rows = zip(self._xs, known, neighbours, strict=False)
        for at, figure, (before, after) in rows:
            if math.isnan(before) and math.isnan(after) and not math.isnan(figure):
                chart.stroke(at - 0.5, at + 0.5, figure, line.css)


def _drawn(figure: float | None) -> float:
    """The figure as charts take it: unknown ones are no number."""
    return math.nan if figure is None else figure


def amounts(key: str, top: float) -> Axis:
    """The upright axis of a chart, with room above its highest figure `top`."""
    if key == "in_flight":  # requests are whole
        high = float(max(1, math.ceil(top * 1.05)))
        high = ceiling(high, min(5, int(high) + 1))
        marks = nice(0.0, high, min(5, int(high) + 1))
    else:
        high = ceiling(top * 1.05 or 1.0, 5)
        marks = nice(0.0, high, 5)
    if key not in TIMES:
        return Axis("", 0.0, high, marks=marks)
    return Axis("", 0.0, high, marks=marks, names=list(map(numbers.seconds, marks)))


def clock_marks(last_s: float) -> list[float]:
    """Round times from 0 to `last_s`, at most MOST_MARKS of them and 0."""
    fitting = (step for step in CLOCK_STEPS if last_s / step <= MOST_MARKS)
    step = next(fitting, DAY_S * math.ceil(last_s / DAY_S / MOST_MARKS))
    return [float(step * number) for number in range(int(last_s // step) + 1)]


def elapsed(duration_s: float) -> str:
    """A time on the axis of a chart, short."""
    whole = round(duration_s)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def times(snapshot: LoadSnapshot) -> Table:
    """The times of requests that succeeded."""
    names = {"median": "p50", "90 %": "p90", "95 %": "p95", "99 %": "p99"}

    def row(title: str, summary: DurationSummary) -> dict[str, Cell]:
        seconds = {
            "shortest": summary.low_s,
            "mean": summary.mean_s,
            **{name: summary.quantiles_s[key] for name, key in names.items()},
            "longest": summary.high_s,
        }
        return {"Time": title, **{name: numbers.seconds(at) for name, at in seconds.items()}}

    rows = [row(TIMES[name][0], snapshot.times[name]) for name in TIMES]
    return Table.of_rows(rows, texts=("Time",))


def outcomes(snapshot: LoadSnapshot) -> Facts:
    """How many requests ended how."""
    counts = snapshot.outcomes.items()
    return Facts([(name.replace("_", " "), numbers.grouped(count)) for name, count in counts])


def itself(snapshot: LoadSnapshot) -> Facts:
    """How well the client kept up."""

    def worst(summary: DurationSummary) -> str:
        late_s, high_s = summary.quantiles_s["p99"], summary.high_s
        return f"p99 {numbers.seconds(late_s)}, longest {numbers.seconds(high_s)}"

    return Facts(
        [
            ("Event-loop delay", worst(snapshot.times["turn"])),
            ("Late submissions", worst(snapshot.times["late"])),
            ("Refused by a full queue", numbers.grouped(snapshot.refused)),
            ("Submitted again after a crash of Redis", numbers.grouped(snapshot.resubmitted)),
        ]
    )


def places(snapshot: LoadSnapshot) -> dict[str, Table]:
    """Tables of requests by worker, node and device, the busiest first. A table or a column that
    tells nothing, as that of the only node, is empty or left out.
    """
    counts = [row.place for row in snapshot.places]
    has_nodes = len({place.node for place in counts}) > 1
    has_pods = any(place.pod not in (place.node, place.worker) for place in counts)
    has_devices = any(place.device for place in counts)

    def worker(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        place = parts[0].place
        devices = sorted({device_name(part.place.device) for part in parts} - {""})
        return {
            "Worker": _name(place.worker or place.pod),
            "Pod": _explained(place.pod, has_pods),
            "Node": _explained(place.node, has_nodes),
            "Devices": cut(" ".join(devices), LONGEST_NAME),
        }

    def node(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        return {"Node": _name(parts[0].place.node)}

    def device(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        place = parts[0].place
        name = _name(device_name(place.device) or "no device")
        return {"Device": name, "Node": _explained(place.node, has_nodes)}

    tables = dict.fromkeys(("worker", "node", "device"), Table((), ()))
    tables["worker"] = _spread(snapshot, lambda row: row.place._replace(device=""), worker)
    if has_nodes:
        tables["node"] = _spread(snapshot, lambda row: row.place.node, node)
    if has_devices:
        key = operator.attrgetter("place.node", "place.device")
        tables["device"] = _spread(snapshot, key, device)
    return tables


_Naming = Callable[[Sequence[PlaceCount]], dict[str, Cell]]


def _spread(snapshot: LoadSnapshot, key: Callable[[PlaceCount], object], naming: _Naming) -> Table:
    groups: dict[object, list[PlaceCount]] = {}
    for row in snapshot.places:
        groups.setdefault(key(row), []).append(row)
    ordered = sorted(groups.values(), key=lambda parts: -sum(map(_ended, parts)))
    rows = [
        {**naming(parts), **_totals(parts, snapshot.succeeded)} for parts in ordered[:MOST_ROWS]
    ]
    note = ""
    if left := len(ordered) - len(rows):
        note = f"{numbers.plural(left, 'more row')} in the statistics as JSON."
    names = ("Worker", "Pod", "Node", "Device", "Devices")
    return Table.of_rows(rows, texts=(*names, "Share"), foreign=names, note=note)


def _ended(row: PlaceCount) -> int:
    return row.succeeded + row.failed


def _totals(parts: Sequence[PlaceCount], whole: int) -> dict[str, Cell]:
    # the totals of all parts, as if they were one place
    succeeded = sum(part.succeeded for part in parts)
    merged = PlaceCount(
        parts[0].place,
        succeeded,
        sum(part.failed for part in parts),
        sum(part.run_total_s for part in parts),
        highest(part.run_high_s for part in parts),
    )
    return {
        "Succeeded": numbers.grouped(succeeded),
        "Share": Share(succeeded / max(1, whole), numbers.share(succeeded, whole)),
        "Failed": numbers.grouped(merged.failed),
        "Mean run": numbers.seconds(merged.run_mean_s),
        "Longest run": numbers.seconds(merged.run_high_s),
    }


def _name(text: str) -> str:
    return cut(" ".join(text.splitlines()), LONGEST_NAME) or numbers.NOTHING


def _explained(text: str, is_telling: bool) -> str:
    """A name where it tells something; "" elsewhere."""
    return _name(text) if is_telling else ""

"""Simulated autoscaling rules as one HTML page: the figures side by side, and each rule's course
over time.

One file without scripts or anything from elsewhere; the charts are on one scale so that rules can
be compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from scaletest.analysis.autoscale.rule import SimulationPoint, SimulationResult
from scaletest.render.contents import Table
from scaletest.render.numbers import significant
from scaletest.render.style import STYLE
from scaletest.render.svg import Axis, Chart, Point, ceiling
from scaletest.render.text import Markup
from scaletest.report.formats import html

WIDTH, HEIGHT = 900.0, 230.0
# What a chart shows, with the class of its line.
LINES = {"waiting": "c-wanted", "running": "c-law", "replicas": "c-data"}
COLUMNS = (
    "rule",
    "replica changes",
    "flips",
    "killed",
    "mean wait, s",
    "p95 wait, s",
    "makespan, s",
    "pod-seconds",
    "peak",
)


def page(title: str, results: Sequence[SimulationResult], notes: dict[str, str]) -> str:
    """The whole page. notes: a line for each rule."""
    until_s, top = scales(results)
    template = html.environment().get_template("simulation.html")
    return template.render(
        title=title,
        style=Markup(STYLE),
        rules=Table(COLUMNS, list(map(row, results)), texts=(0,)),
        courses=[
            (each.rule, notes.get(each.rule, ""), chart(each, until_s, top)) for each in results
        ],
    )


def row(result: SimulationResult) -> list[str]:
    """The figures of one rule as text, in the order of COLUMNS."""
    return [
        result.rule,
        str(result.changes),
        str(result.flips),
        str(result.killed),
        _number(result.mean_wait_s, "unknown"),
        _number(result.wait_s(0.95), "unknown"),
        _number(result.makespan_s, "not finished"),
        f"{result.pod_s:.0f}",
        str(result.peak),
    ]


def scales(results: Sequence[SimulationResult]) -> tuple[float, int]:
    """The scale of all charts: the latest end in seconds, and the largest number."""
    until_s, most = 0.0, 1
    for result in results:
        for point in result.course:
            until_s = max(until_s, point.at_s)
            most = max(most, point.replicas, point.pods, point.waiting, point.running)
    return until_s or 1.0, most


def chart(result: SimulationResult, until_s: float, top: int) -> Chart:
    """One rule's course: what waits and runs, and the wanted replicas, as steps."""
    killed = f", {result.killed} killed" if result.killed else ""
    title = f"{result.rule}: {result.changes} replica changes, {result.flips} flips{killed}"
    drawn = Chart(
        re.sub(r"[^A-Za-z0-9]+", "-", f"course-{result.rule}"),
        title,
        "requests that wait and run, and wanted replicas",
        Axis("time, min", 0.0, until_s / 60),
        Axis("", 0.0, ceiling(top)),
        WIDTH,
        HEIGHT,
    )
    for name, css in LINES.items():
        drawn.legend(name, css)
        drawn.line(_steps(result.course, name), css)
    return drawn


def _steps(course: Sequence[SimulationPoint], name: str) -> list[Point]:
    """A line that holds each value until the next; points that change nothing are left out."""
    points: list[Point] = []
    for point in course:
        at, value = point.at_s / 60, float(getattr(point, name))
        if not points:
            points.append((at, value))
        elif value != points[-1][1] or point is course[-1]:
            points += [(at, points[-1][1]), (at, value)]
    return points


def _number(value: float | None, unknown: str) -> str:
    if value is None:
        return unknown
    return f"{value:.0f}" if value >= 100 else significant(value)

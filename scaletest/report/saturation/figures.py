"""Two charts of a saturation run: what succeeded against what was asked for, and latency against
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scaletest.analysis.saturation.evaluation import SaturationResult
from scaletest.analysis.saturation.step import Assessed
from scaletest.model.saturation import Phase
from scaletest.render import ticks
from scaletest.render.contents import Figure
from scaletest.render.numbers import significant, unit_of
from scaletest.render.svg import Axis, Chart
from scaletest.report.saturation import words

SIZES = ((760.0, 420.0), (360.0, 330.0))


def throughput(result: SaturationResult) -> Figure | None:
    """Successes a second at every level; None with fewer than two levels."""
    rows = _rows(result)
    if len(rows) < 2:
        return None
    charts = [
        _throughput(result, rows, f"goodput-{index}", *size) for index, size in enumerate(SIZES)
    ]
    return Figure(
        charts[0], charts[1], f"{words.point(result) or 'No saturation point was found'}."
    )


def _throughput(
    result: SaturationResult, rows: Sequence[Assessed], name: str, width: float, height: float
) -> Chart:
    top = max(min(one.goodput.high, 1.5 * one.goodput.value) for one in rows)
    description = "; ".join(
        f"{one.step.level:g}: {significant(one.goodput.value)}/s" for one in rows
    )
    chart = Chart(
        name,
        "What succeeded",
        description,
        _levels(result, rows),
        _up("requests/s", top),
        width,
        height,
    )
    chart.legend("succeeded, 95 % interval", "c-dot", "dot")
    chart.legend("saturated", "c-dot c-hollow", "dot")
    if result.plan.open:
        chart.legend("all that was offered", "c-ideal")
        end = max(one.step.level for one in rows)
        chart.line([(0.0, 0.0), (end, end)], "c-ideal")
    if result.point:
        chart.legend("saturation point", "c-wanted")
        chart.across(result.point.value, "c-wanted")
    for one in rows:
        if math.isfinite(one.goodput.high):
            chart.error(one.step.level, one.goodput.low, one.goodput.high, "c-error")
        css = "c-dot" if words.state(one) == "held" else "c-dot c-hollow"
        chart.dot(
            one.step.level, one.goodput.value, css, f"{one.step.level:g}: {words.rate(one)}/s"
        )
    return chart


def latency(result: SaturationResult) -> Figure | None:
    """Median and 95th percentile at every level that held; None with fewer than two."""
    rows = [one for one in _rows(result) if one.latency.p50 and words.state(one) == "held"]
    # of a level that was measured again the last counts, so that the line goes one way
    rows = list({one.step.level: one for one in rows}.values())
    if len(rows) < 2:
        return None
    charts = [_latency(result, rows, f"latency-{index}", *size) for index, size in enumerate(SIZES)]
    counted = "from the intended start" if result.plan.open else "from when it was sent"
    return Figure(charts[0], charts[1], f"Latency {counted}, of steps that held.")


def _latency(
    result: SaturationResult, rows: Sequence[Assessed], name: str, width: float, height: float
) -> Chart:
    highest = max((one.latency.p95 or one.latency.p50).value for one in rows if one.latency.p50)
    size, unit = unit_of(highest)
    chart = Chart(
        name,
        "Latency",
        "median and 95th percentile at every level",
        _levels(result, rows),
        _up(f"latency, {unit}", highest / size),
        width,
        height,
    )
    chart.legend("median", "c-data")
    chart.legend("95 %", "c-wanted")
    for quantile, css in (("p50", "c-data"), ("p95", "c-wanted")):
        points = [(one.step.level, getattr(one.latency, quantile)) for one in rows]
        chart.line([(level, value.value / size) for level, value in points if value], css)
    for one in rows:
        if one.latency.p50:
            chart.dot(one.step.level, one.latency.p50.value / size, "c-dot", f"{one.step.level:g}")
    return chart


def _rows(result: SaturationResult) -> list[Assessed]:
    found = [one for one in result.steps if one.step.phase not in (Phase.WARM, Phase.OPERATE)]
    return sorted(found, key=lambda one: one.step.level)


def _levels(result: SaturationResult, rows: Sequence[Assessed]) -> Axis:
    label = "requests/s offered" if result.plan.open else "requests in flight"
    return Axis(label, 0.0, 1.05 * max(one.step.level for one in rows))


def _up(label: str, top: float) -> Axis:
    return Axis(label, 0.0, ticks.ceiling(top * 1.05))

"""The steps of a saturation run as CSV, one row a step. Base units; unknown is empty; new columns
come at the end.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from scaletest.analysis.estimate import finite
from scaletest.analysis.saturation.step import Assessed
from scaletest.render.text import cell
from scaletest.report.saturation import words
from scaletest.report.saturation.run import SaturationRun

Value = float | int | str | None


def _quantile(times: str, name: str) -> Callable[[Assessed], Value]:
    def get(found: Assessed) -> Value:
        value = getattr(getattr(found, times), name)
        return value.value if value else None

    return get


COLUMNS: dict[str, Callable[[Assessed], Value]] = {
    "number": lambda one: one.step.number,
    "phase": lambda one: one.step.phase,
    "load": lambda one: one.step.load,
    "level": lambda one: one.step.level,
    "seconds": lambda one: one.step.seconds,
    "requests": lambda one: one.step.requests,
    "attempts": lambda one: one.attempts,
    "offered_per_s": lambda one: one.offered,
    "goodput_per_s": lambda one: one.goodput.value,
    "goodput_low_per_s": lambda one: finite(one.goodput.low),
    "goodput_high_per_s": lambda one: finite(one.goodput.high),
    "backlog_growth_per_s": lambda one: one.growth.value if one.growth else None,
    "backlog_growth_low_per_s": lambda one: one.growth.low if one.growth else None,
    "backlog_growth_high_per_s": lambda one: one.growth.high if one.growth else None,
    "success": lambda one: one.success,
    "latency_mean_s": lambda one: one.latency.mean,
    **{f"latency_{name}_s": _quantile("latency", name) for name in ("p50", "p90", "p95", "p99")},
    "latency_max_s": lambda one: one.latency.max,
    "server_mean_s": lambda one: one.server.mean,
    "queueing_share": lambda one: one.queueing,
    "errors": words.errors,
    "lag_p99_s": lambda one: one.lag_s,
    "cpu_cores": lambda one: one.step.cpu,
    "saturated": lambda one: one.saturated,
    "tester_bottleneck": lambda one: one.tester,
    "undecided": lambda one: one.undecided,
}


def table(run: SaturationRun) -> str:
    """Titles and one row a step, lines ended as RFC 4180 wants."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for one in run.result.steps:
        writer.writerow(_written(get(one)) for get in COLUMNS.values())
    return out.getvalue()


def _written(value: Value) -> Value:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return cell(value) if isinstance(value, str) else value

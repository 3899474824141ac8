"""The steps of a saturation run for programs, one row a step; new columns come at the end."""

from __future__ import annotations

from collections.abc import Callable

from scaletest.analysis.estimate import finite
from scaletest.analysis.saturation.evaluation import SaturationResult
from scaletest.analysis.saturation.step import Assessed
from scaletest.render.contents import Sheet
from scaletest.report.saturation import words

Value = float | int | str | None


def _quantile(times: str, name: str) -> Callable[[Assessed], Value]:
    def get(found: Assessed) -> Value:
        value = getattr(getattr(found, times), name)
        return value.value if value else None

    return get


COLUMNS: dict[str, Callable[[Assessed], Value]] = {
    "number": lambda assessed: assessed.step.number,
    "phase": lambda assessed: assessed.step.phase,
    "load": lambda assessed: assessed.step.load,
    "level": lambda assessed: assessed.step.level,
    "seconds": lambda assessed: assessed.step.seconds,
    "requests": lambda assessed: assessed.step.requests,
    "attempts": lambda assessed: assessed.attempts,
    "offered_per_s": lambda assessed: assessed.offered,
    "goodput_per_s": lambda assessed: assessed.goodput.value,
    "goodput_low_per_s": lambda assessed: finite(assessed.goodput.low),
    "goodput_high_per_s": lambda assessed: finite(assessed.goodput.high),
    "backlog_growth_per_s": lambda assessed: assessed.growth.value if assessed.growth else None,
    "backlog_growth_low_per_s": lambda assessed: assessed.growth.low if assessed.growth else None,
    "backlog_growth_high_per_s": lambda assessed: assessed.growth.high if assessed.growth else None,
    "success": lambda assessed: assessed.success,
    "latency_mean_s": lambda assessed: assessed.latency.mean,
    **{f"latency_{name}_s": _quantile("latency", name) for name in ("p50", "p90", "p95", "p99")},
    "latency_max_s": lambda assessed: assessed.latency.max,
    "server_mean_s": lambda assessed: assessed.server.mean,
    "queueing_share": lambda assessed: assessed.queueing,
    "errors": words.errors,
    "lag_p99_s": lambda assessed: assessed.lag_s,
    "cpu_cores": lambda assessed: assessed.step.cpu,
    "saturated": lambda assessed: assessed.saturated,
    "tester_bottleneck": lambda assessed: assessed.tester,
    "undecided": lambda assessed: assessed.undecided,
}


def sheet(result: SaturationResult) -> Sheet:
    """Titles and one row a step."""
    rows = [[get(assessed) for get in COLUMNS.values()] for assessed in result.steps]
    return Sheet(list(COLUMNS), rows)

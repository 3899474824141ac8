"""The steps of a validation for programs, one row a step.

The columns are part of the interface: docs/reference/reports.md describes them; new ones come at
the end.
"""

from __future__ import annotations

from collections.abc import Callable

from scaletest.analysis.estimate import Estimate, finite
from scaletest.analysis.work_rate import FIGURES
from scaletest.model.node_sample import DEVICE, DISK, PRESSURE
from scaletest.render.contents import Sheet
from scaletest.report import words
from scaletest.report.run import Run
from scaletest.report.validation.rows import Row, rows

Value = float | int | str | None


def _scaled(name: str, part: str) -> Callable[[Row], Value]:
    def get(row: Row) -> Value:
        found: Estimate | None = getattr(row.scaled, name) if row.scaled else None
        return finite(getattr(found, part)) if found else None

    return get


def _ratio(part: str) -> Callable[[Row], Value]:
    return lambda row: finite(getattr(row.step.ratio, part)) if row.step.ratio else None


def _quantile(kind: str, name: str) -> Callable[[Row], Value]:
    def get(row: Row) -> Value:
        found = words.quantile(getattr(row.step, kind), name)
        return found.value if found else None

    return get


def _work(name: str, part: str) -> Callable[[Row], Value]:
    return lambda row: finite(getattr(row.step.work[name], part)) if name in row.step.work else None


def _fair(group: str) -> Callable[[Row], Value]:
    return lambda row: (
        finite(row.step.fairness[group].ratio) if group in row.step.fairness else None
    )


def _highest(resource: str, figure: str) -> Callable[[Row], Value]:
    return lambda row: row.resources.highest(resource, figure) if row.resources else None


def _busiest(kind: str) -> Callable[[Row], Value]:
    def get(row: Row) -> Value:
        place = row.resources.busiest(kind) if row.resources else None
        return place.figures["busy"] if place else None

    return get


COLUMNS: dict[str, Callable[[Row], Value]] = {
    "workers": lambda row: row.step.workers,
    "throughput_per_s": lambda row: finite(row.step.throughput.per_s),
    "half_width_per_s": lambda row: finite(row.step.throughput.half_width),
    "interval": lambda row: "between" if row.step.between else "within",
    "repeats": lambda row: len(row.step.samples),
    "completions": lambda row: row.step.throughput.completions,
    "failures": lambda row: row.step.failures,
    "ratio": _ratio("value"),
    "ratio_low": _ratio("low"),
    "ratio_high": _ratio("high"),
    "ratio_wanted": _ratio("wanted"),
    "ratio_verdict": lambda row: str(row.step.ratio.kind) if row.step.ratio else None,
    "speedup": _scaled("speedup", "value"),
    "efficiency": _scaled("efficiency", "value"),
    "efficiency_low": _scaled("efficiency", "low"),
    "efficiency_high": _scaled("efficiency", "high"),
    "serial_fraction": _scaled("serial_fraction", "value"),
    "wait_mean_s": lambda row: row.step.wait.mean,
    "wait_p50_s": _quantile("wait", "p50"),
    "wait_p95_s": _quantile("wait", "p95"),
    "wait_p99_s": _quantile("wait", "p99"),
    "run_mean_s": lambda row: row.step.run.mean,
    "run_p50_s": _quantile("run", "p50"),
    "run_p95_s": _quantile("run", "p95"),
    "run_p99_s": _quantile("run", "p99"),
    "overhead_s": lambda row: row.step.overhead_s,
    "measured_s": lambda row: words.measured_s(row.step),
    "warmup_s": lambda row: max((one.warmup_s for one in row.step.samples), default=0.0),
    "stop": lambda row: words.stops(row.step),
    "per_device": lambda row: row.step.per_device or None,
    **{f"{name}_per_s": _work(name, "per_s") for name in FIGURES},
    **{f"{name}_half_width_per_s": _work(name, "half_width") for name in FIGURES},
    "fairness_workers": _fair("worker"),
    "fairness_devices": _fair("device"),
    "memory_limit_hits": lambda row: row.step.memory_hits,
    "cores": lambda row: row.resources.cores if row.resources else None,
    "cores_busy": lambda row: row.resources.cores_busy if row.resources else None,
    "cpu_pressure": _highest(PRESSURE, "cpu_some"),
    "memory_pressure": _highest(PRESSURE, "memory_some"),
    "io_pressure": _highest(PRESSURE, "io_some"),
    "disk_busy": _busiest(DISK),
    "device_busy": _busiest(DEVICE),
    "joules_per_request": lambda row: row.resources.joules_per_request if row.resources else None,
}


def sheet(run: Run) -> Sheet:
    """Titles and one row a step."""
    steps = rows(run.result)
    return Sheet(list(COLUMNS), [[get(step) for get in COLUMNS.values()] for step in steps])

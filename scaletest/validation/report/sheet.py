"""The steps of a validation for programs, a row each.

The columns are part of the interface: docs/reference/reports.md describes them; new ones come at
the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from scaletest.model.measurement import DEVICE, DISK
from scaletest.render.contents import CLOCK_DIGITS, Sheet, Value, at
from scaletest.validation.judging.work import FIGURES
from scaletest.validation.report.rows import Row

COLUMNS: dict[str, Callable[[Row], Value]] = {
    "workers": at("step.workers"),
    "throughput_per_s": at("step.throughput.per_s"),
    "half_width_per_s": at("step.throughput.half_width"),
    "interval": lambda row: "between" if row.step.between else "within",
    "repeats": lambda row: len(row.step.samples),
    "completions": at("step.throughput.completions"),
    "failures": at("step.failures"),
    "ratio": at("step.ratio.value"),
    "ratio_low": at("step.ratio.low"),
    "ratio_high": at("step.ratio.high"),
    "ratio_wanted": at("step.ratio.wanted"),
    "ratio_verdict": at("step.ratio.kind"),
    "speedup": at("scaled.speedup.value"),
    "efficiency": at("scaled.efficiency.value"),
    "efficiency_low": at("scaled.efficiency.low"),
    "efficiency_high": at("scaled.efficiency.high"),
    "wait_mean_s": at("step.wait.mean"),
    "wait_p50_s": at("step.wait.p50.value"),
    "wait_p95_s": at("step.wait.p95.value"),
    "wait_p99_s": at("step.wait.p99.value"),
    "run_mean_s": at("step.run.mean"),
    "run_p50_s": at("step.run.p50.value"),
    "run_p95_s": at("step.run.p95.value"),
    "run_p99_s": at("step.run.p99.value"),
    "overhead_s": at("step.overhead_s"),
    "measured_s": lambda row: row.step.measured_s,
    "warmup_s": lambda row: max((sample.warmup_s for sample in row.step.samples), default=0.0),
    "stop": lambda row: row.step.stops,
    "per_device": lambda row: row.step.per_device or None,
    **{f"{name}_per_s": at(f"step.work.{name}.per_s") for name in FIGURES},
    **{f"{name}_half_width_per_s": at(f"step.work.{name}.half_width") for name in FIGURES},
    "fairness_workers": at("step.fairness.worker.ratio"),
    "fairness_devices": at("step.fairness.device.ratio"),
    "memory_limit_hits": at("step.memory_hits"),
    "cores": at("resources.cores"),
    "cores_busy": at("resources.cores_busy"),
    "cpu_pressure": lambda row: row.highest("cpu_some"),
    "memory_pressure": lambda row: row.highest("memory_some"),
    "io_pressure": lambda row: row.highest("io_some"),
    "disk_busy": lambda row: row.busiest(DISK),
    "device_busy": lambda row: row.busiest(DEVICE),
    "joules_per_request": at("resources.joules_per_request"),
    "nodes": lambda row: _counted(row.step.nodes),
    "devices": lambda row: _counted(row.step.devices),
}


def _counted(counts: Mapping[str, int]) -> str | None:
    return "; ".join(f"{name}={count}" for name, count in counts.items()) or None


def sheet(rows: Sequence[Row]) -> Sheet:
    """Return one row a step."""
    return Sheet.of_columns(COLUMNS, rows, digits=CLOCK_DIGITS)

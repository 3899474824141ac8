"""The steps of a validation as rows, for every form of its report and for programs.

The columns of the sheet are part of the interface: docs/reference/reports.md describes them; new
ones come at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.causes.resources import StepResources
from scaletest.model.node_sample import DEVICE, DISK, PRESSURE
from scaletest.render.contents import CLOCK_DIGITS, Sheet, Value, column_at
from scaletest.render.numbers import NOTHING, format_percent, format_significant, with_half_width
from scaletest.report.words import format_percentile
from scaletest.stats.scaling import Scaled
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import FIGURES, Step

COLUMNS: dict[str, Callable[[Row], Value]] = {
    "workers": column_at("step.workers"),
    "throughput_per_s": column_at("step.throughput.per_s"),
    "half_width_per_s": column_at("step.throughput.half_width"),
    "interval": lambda row: "between" if row.step.between else "within",
    "repeats": lambda row: len(row.step.samples),
    "completions": column_at("step.throughput.completions"),
    "failures": column_at("step.failures"),
    "ratio": column_at("step.ratio.value"),
    "ratio_low": column_at("step.ratio.low"),
    "ratio_high": column_at("step.ratio.high"),
    "ratio_wanted": column_at("step.ratio.wanted"),
    "ratio_verdict": column_at("step.ratio.kind"),
    "speedup": column_at("scaled.speedup.value"),
    "efficiency": column_at("scaled.efficiency.value"),
    "efficiency_low": column_at("scaled.efficiency.low"),
    "efficiency_high": column_at("scaled.efficiency.high"),
    "wait_mean_s": column_at("step.wait.mean"),
    "wait_p50_s": column_at("step.wait.p50.value"),
    "wait_p95_s": column_at("step.wait.p95.value"),
    "wait_p99_s": column_at("step.wait.p99.value"),
    "run_mean_s": column_at("step.run.mean"),
    "run_p50_s": column_at("step.run.p50.value"),
    "run_p95_s": column_at("step.run.p95.value"),
    "run_p99_s": column_at("step.run.p99.value"),
    "overhead_s": column_at("step.overhead_s"),
    "measured_s": lambda row: row.step.measured_s,
    "warmup_s": lambda row: max((sample.warmup_s for sample in row.step.samples), default=0.0),
    "stop": lambda row: row.step.stops,
    "per_device": lambda row: row.step.per_device or None,
    **{f"{name}_per_s": column_at(f"step.work.{name}.per_s") for name in FIGURES},
    **{f"{name}_half_width_per_s": column_at(f"step.work.{name}.half_width") for name in FIGURES},
    "fairness_workers": column_at("step.fairness.worker.ratio"),
    "fairness_devices": column_at("step.fairness.device.ratio"),
    "memory_limit_hits": column_at("step.memory_hits"),
    "cores": column_at("resources.cores"),
    "cores_busy": column_at("resources.cores_busy"),
    "cpu_pressure": lambda row: row.highest("cpu_some"),
    "memory_pressure": lambda row: row.highest("memory_some"),
    "io_pressure": lambda row: row.highest("io_some"),
    "disk_busy": lambda row: row.busiest(DISK),
    "device_busy": lambda row: row.busiest(DEVICE),
    "joules_per_request": column_at("resources.joules_per_request"),
    "nodes": lambda row: _count_texts(row.step.nodes),
    "devices": lambda row: _count_texts(row.step.devices),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A step with all that tables show of it."""

    step: Step
    scaled: Scaled | None  # None without enough throughput
    resources: StepResources | None  # None without samples of its nodes
    rates: Mapping[str, str]  # requests a second, and the work that any step reports, by title
    cells: Mapping[str, str]  # of short tables, by title

    def highest(self, figure: str) -> float | None:
        """Return a figure of pressure, of the node that has most of it."""
        return self.resources.highest(PRESSURE, figure) if self.resources else None

    def busiest(self, kind: str) -> float | None:
        """Return the part of the time in which the busiest disk or device was busy."""
        resource = self.resources.busiest(kind) if self.resources else None
        return resource.figures["busy"] if resource else None


def rows_of(result: Evaluation, quantile: str) -> list[Row]:
    """Return one row for every step, in order. quantile: of wait and run times."""
    scaled_by_level = {scaled.workers: scaled for scaled in result.growth.scaling}
    resources = {step.workers: step for step in result.resources}
    figures = dict.fromkeys(chain.from_iterable(step.work for step in result.steps))
    rows = []
    for step in result.steps:
        scaled = scaled_by_level.get(step.level)
        # how much more the busiest worker did than the idlest, and the same of devices
        groups = [step.fairness.get(group) for group in ("worker", "device")]
        fairness = [format_significant(group.ratio) for group in groups if group]
        # a ratio with its 90 % interval as ±: the wider side of it
        ratio_text = ""
        if step.ratio:
            ratio = step.ratio
            half_width = max(ratio.high - ratio.value, ratio.value - ratio.low)
            ratio_text = with_half_width(ratio.value, half_width)
        work = {f"{figure}/s": rate_text(step, figure) for figure in figures}
        rates = {"requests/s": rate_text(step), **work}
        cells = {
            "per device": str(step.per_device),
            "workers": str(step.workers),
            **rates,
            "ratio": ratio_text,
            "speed-up": format_significant(scaled.speedup.value) if scaled else NOTHING,
            "efficiency": format_percent(scaled.efficiency.value if scaled else None, 0),
            f"wait {quantile}": format_percentile(step.wait, quantile),
            f"run {quantile}": format_percentile(step.run, quantile),
            "fair workers/devices": "/".join(fairness) or NOTHING,
            "memory limit": str(step.memory_hits),
            "failed": str(step.failures),
        }
        rows.append(Row(step, scaled, resources.get(step.workers), rates, cells))
    return rows


def common_quantile(steps: Sequence[Step]) -> str:
    """Return the highest percentile up to p95 that every step can report, so that rows compare."""
    distributions = [step.run for step in steps if step.run.count]
    for name in ("p95", "p90"):
        if all(getattr(times, name) for times in distributions):
            return name
    return "p50"


def rate_text(step: Step, figure: str = "") -> str:
    """Return throughput with its interval; of a figure of work, as frames/s, where one is named."""
    rate = step.work.get(figure) if figure else step.throughput
    return with_half_width(rate.per_s, rate.half_width) if rate and rate.per_s > 0 else NOTHING


def _count_texts(counts: Mapping[str, int]) -> str | None:
    return "; ".join(f"{name}={count}" for name, count in counts.items()) or None


def sheet_of_rows(rows: Sequence[Row]) -> Sheet:
    """Return one row a step."""
    return Sheet.of_columns(COLUMNS, rows, digits=CLOCK_DIGITS)

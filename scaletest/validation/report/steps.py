"""The steps of a validation as rows: for every form, and for programs (the sheet).

The sheet's columns are part of the interface: docs/reference/reports.md describes them; new ones
come at the end.

Beside them stands who did how much in a step: its requests by worker, node, pod and device.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.causes.resources import StepResources
from scaletest.causes.steps import Rows
from scaletest.model import Record
from scaletest.model.measurement import DEVICE, DISK, PRESSURE
from scaletest.render.contents import CLOCK_DIGITS, Cell, Share, Sheet, Table, Value, at
from scaletest.render.numbers import NOTHING, between, percent, seconds, significant
from scaletest.report.words import percentile
from scaletest.stats.scaling import Scaled
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.failed_requests import failed
from scaletest.validation.judging.steps import Step
from scaletest.validation.judging.work import FIGURES
from scaletest.validation.report import words

# What only a run tells that doubles its workers, and what only one that compares numbers of workers
# on each device.
DOUBLING = ("ratio",)
SHARING = ("per device", "fair", "fair workers", "fair devices", "memory limit")


@dataclass(frozen=True, slots=True)
class Row:
    """A step, its state, and its nodes' work; None without enough throughput or samples."""

    step: Step
    scaled: Scaled | None
    resources: StepResources | None = None

    @property
    def speedup(self) -> str:
        """How many times the throughput of the first step it has."""
        return significant(self.scaled.speedup.value) if self.scaled else NOTHING

    def highest(self, figure: str) -> float | None:
        """A figure of pressure, of the node that has most of it."""
        return self.resources.highest(PRESSURE, figure) if self.resources else None

    def busiest(self, kind: str) -> float | None:
        """The part of the time in which the busiest disk or device was busy."""
        place = self.resources.busiest(kind) if self.resources else None
        return place.figures["busy"] if place else None


def rows_of(result: Evaluation) -> list[Row]:
    """One row for every step, in order."""
    scaled = {state.workers: state for state in result.growth.scaling}
    resources = {state.workers: state for state in result.resources}
    return [Row(step, scaled.get(step.level), resources.get(step.workers)) for step in result.steps]


def _rates(result: Evaluation, step: Step) -> dict[str, str]:
    """Requests a second, and the work that any step reports a second, by title."""
    figures = dict.fromkeys(chain.from_iterable(each.work for each in result.steps))
    work = {f"{figure}/s": words.rate(step, figure) for figure in figures}
    return {"requests/s": words.rate(step), **work}


def table(
    result: Evaluation, left_out: Collection[str], short: Mapping[str, str] | None = None
) -> Table:
    """A row for each step, in short. left_out: titles. short: shorter titles for some."""
    quantile = words.common_quantile(result.steps)
    unshown = {*left_out, *(DOUBLING if result.plan.compares else SHARING)}
    names, rows = short or {}, []
    for row in rows_of(result):
        cells = _cells(result, row, quantile)
        rows.append(
            {names.get(title, title): cells[title] for title in cells if title not in unshown}
        )
    spare = ("speed-up", names.get("efficiency", "efficiency"), f"wait {quantile}")
    return Table.of_rows(rows, spare=spare)


def _cells(result: Evaluation, row: Row, quantile: str) -> dict[str, str]:
    """All cells of a step, by title."""
    step, scaled = row.step, row.scaled
    workers, devices = (words.fair(step, group) for group in ("worker", "device"))
    return {
        "per device": str(step.per_device),
        "workers": str(step.workers),
        **_rates(result, step),
        "ratio": words.ratio(step.ratio),
        "speed-up": row.speedup,
        "efficiency": percent(scaled.efficiency.value if scaled else None, 0),
        f"wait {quantile}": percentile(step.wait, quantile),
        f"run {quantile}": percentile(step.run, quantile),
        "fair": "/".join(filter(None, (workers, devices))) or NOTHING,
        "fair workers": workers or NOTHING,
        "fair devices": devices or NOTHING,
        "memory limit": str(step.memory_hits),
        "failed": str(step.failures),
    }


def whole_table(result: Evaluation) -> Table:
    """A row for each step, with the intervals of its ratios, for a page."""
    rows = [_whole_cells(result, row) for row in rows_of(result)]
    meaning = (
        f"Throughput ± {words.interval(result.steps)}; ratio: to the"
        " step before, with the 90 % interval on which the verdict rests; other brackets are 95 %"
        " intervals. Tester: the share of a request's time that scaletest itself cost."
    )
    return Table.of_rows(rows, {"ended"}, layout="steps", note=meaning)


def _whole_cells(result: Evaluation, row: Row) -> dict[str, str]:
    step, scaled, ratio = row.step, row.scaled, row.step.ratio
    efficiency = NOTHING
    if scaled:
        # the first step is compared with itself
        is_base = scaled.efficiency.low == scaled.efficiency.high
        efficiency = "100%" if is_base else words.share(scaled.efficiency)
    return {
        "workers": str(step.workers),
        **_rates(result, step),
        "ratio": between(ratio.value, ratio.low, ratio.high) if ratio else "",
        "speed-up": row.speedup,
        "efficiency": efficiency,
        "failed": str(step.failures),
        "tester": percent(step.overhead_share),
        "ended": words.stops(step),
        "measured": seconds(words.measured_s(step)),
    }


KINDS = ("worker", "node", "pod", "device")
# Each repeat has others of these, and it may be longer than the next: only those of one repeat
# compare.
RESTARTED = ("worker", "pod")
# More members than this are shown from both ends: the busiest and the idlest.
MOST_MEMBERS = 24


def members(step: Step, records: Rows) -> list[Table]:
    """Who did how much, for the kinds of which a step had more than one; a pod that is its node
    says nothing.

    Of several repeats workers and pods are those of the first, since every repeat starts its own.
    """
    repeats = [records.get(sample.measurement.key, ()) for sample in step.samples]
    tables = []
    earlier: list[set[str]] = []
    for kind in KINDS:
        by_name: dict[str, list[Record]] = defaultdict(list)
        for row in chain.from_iterable(repeats[:1] if kind in RESTARTED else repeats):
            by_name[getattr(row.reply, kind)].append(row)
        by_name.pop("", None)
        if len(by_name) > 1 and set(by_name) not in earlier:
            earlier.append(set(by_name))
            tables.append(_members(kind, by_name))
    return tables


def _members(kind: str, by_name: Mapping[str, Sequence[Record]]) -> Table:
    """The members of a kind, the busiest first, with their shares of the successful requests."""
    times = {
        name: [row.reply.run_s for row in rows if row.ok]  # of the successful requests
        for name, rows in by_name.items()
    }
    names = sorted(times, key=lambda name: (-len(times[name]), name))
    most = len(times[names[0]]) or 1
    total = sum(map(len, times.values())) or 1
    left_out = max(0, len(names) - MOST_MEMBERS)
    if left_out:
        half = MOST_MEMBERS // 2
        names = [*names[:half], *names[-half:]]
    cells: list[dict[str, Cell]] = []
    for name in names:
        done = len(times[name])
        mean = statistics.fmean(times[name]) if done else None
        cells.append(
            {
                kind: name,
                "requests": str(done),
                "share": Share(done / most, percent(done / total)),
                "mean run": seconds(mean),
                "failed": str(sum(map(failed, by_name[name]))),
            }
        )
    rest = f"{left_out} of the middle are left out." if left_out else ""
    return Table.of_rows(cells, {kind, "share"}, note=rest)


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
    "measured_s": lambda row: words.measured_s(row.step),
    "warmup_s": lambda row: max((sample.warmup_s for sample in row.step.samples), default=0.0),
    "stop": lambda row: words.stops(row.step),
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


def sheet(result: Evaluation) -> Sheet:
    """One row a step."""
    return Sheet.of_columns(COLUMNS, rows_of(result), digits=CLOCK_DIGITS)

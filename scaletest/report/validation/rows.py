"""The steps of a validation as rows: for every form, and for programs (the sheet).

The sheet's columns are part of the interface: docs/reference/reports.md describes them; new ones
come at the end.

Beside them stands who did how much in a step: its requests by worker, node, pod and device.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.analysis.estimate import Estimate, finite
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.resources import StepResources
from scaletest.analysis.scaling import Scaled
from scaletest.analysis.steps import Rows, Step, failed
from scaletest.analysis.throughput import FIGURES
from scaletest.model import Record
from scaletest.model.measurement import DEVICE, DISK, PRESSURE
from scaletest.render.contents import CLOCK_DIGITS, Sheet
from scaletest.report import words
from scaletest.validation.run_type import ValidationRun


@dataclass(frozen=True, slots=True)
class Row:
    """A step, its state, and its nodes' work; None without enough throughput or samples."""

    step: Step
    scaled: Scaled | None
    resources: StepResources | None = None


def rows(result: Evaluation) -> list[Row]:
    """One row for every step, in order."""
    scaled = {state.workers: state for state in result.growth.scaling}
    resources = {state.workers: state for state in result.resources}
    return [Row(step, scaled.get(step.level), resources.get(step.workers)) for step in result.steps]


def works(steps: Sequence[Row]) -> list[str]:
    """The figures of work that a step reports, each a column of its own."""
    return list(dict.fromkeys(name for row in steps for name in row.step.work))


KINDS = ("worker", "node", "pod", "device")
# Each repeat has others of these, and it may be longer than the next: only those of one repeat
# compare.
RESTARTED = ("worker", "pod")
# More members than this are shown from both ends: the busiest and the idlest.
MOST_MEMBERS = 24


@dataclass(frozen=True, slots=True)
class Member:
    """One worker, node, pod or device. share: of the successful requests; run_s: their mean."""

    name: str
    done: int
    share: float
    run_s: float | None
    failed: int


@dataclass(frozen=True, slots=True)
class Group:
    """All members of a kind, the busiest first; left_out: how many of the middle are missing."""

    kind: str
    members: list[Member]
    left_out: int


def groups(step: Step, records: Rows) -> list[Group]:
    """The kinds in which a step had more than one member; a pod that is its node says nothing.

    Of several repeats workers and pods are those of the first, since every repeat starts its own.
    """
    repeats = [records.get(sample.measurement.key, ()) for sample in step.samples]
    compared = []
    earlier: list[set[str]] = []
    for kind in KINDS:
        by: dict[str, list[Record]] = defaultdict(list)
        for row in chain.from_iterable(repeats[:1] if kind in RESTARTED else repeats):
            by[getattr(row.reply, kind)].append(row)
        by.pop("", None)
        if len(by) > 1 and set(by) not in earlier:
            earlier.append(set(by))
            compared.append(_group(kind, by))
    return compared


def _group(kind: str, by: dict[str, list[Record]]) -> Group:
    total = sum(row.ok for rows in by.values() for row in rows)
    members = sorted(
        (_member(name, rows, total) for name, rows in by.items()),
        key=lambda member: (-member.done, member.name),
    )
    left_out = max(0, len(members) - MOST_MEMBERS)
    if left_out:
        half = MOST_MEMBERS // 2
        members = [*members[:half], *members[-half:]]
    return Group(kind, members, left_out)


def _member(name: str, rows: Sequence[Record], total: int) -> Member:
    good = [row.reply.run_s for row in rows if row.ok]
    mean = statistics.fmean(good) if good else None
    return Member(
        name, len(good), len(good) / total if total else 0.0, mean, sum(map(failed, rows))
    )


Value = float | int | str | None


def _scaled(name: str, part: str) -> Callable[[Row], Value]:
    def get(row: Row) -> Value:
        estimate: Estimate | None = getattr(row.scaled, name) if row.scaled else None
        return finite(getattr(estimate, part)) if estimate else None

    return get


def _ratio(part: str) -> Callable[[Row], Value]:
    return lambda row: finite(getattr(row.step.ratio, part)) if row.step.ratio else None


def _quantile(kind: str, name: str) -> Callable[[Row], Value]:
    def get(row: Row) -> Value:
        estimate = words.quantile(getattr(row.step, kind), name)
        return estimate.value if estimate else None

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
    "warmup_s": lambda row: max((sample.warmup_s for sample in row.step.samples), default=0.0),
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


def sheet(run: ValidationRun) -> Sheet:
    """Titles and one row a step."""
    steps = rows(run.result)
    return Sheet(
        list(COLUMNS),
        [[get(step) for get in COLUMNS.values()] for step in steps],
        digits=CLOCK_DIGITS,
    )

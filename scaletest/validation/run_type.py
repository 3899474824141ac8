"""Validations as a run type: a stored run, judged anew, and its measures."""

from __future__ import annotations

import itertools
import math
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from scaletest.analysis.comparison import NOWHERE, Contrast, Measure, differences, percentiles
from scaletest.analysis.doubling import Ratio
from scaletest.analysis.estimate import Estimate, exactly
from scaletest.analysis.evaluation import Evaluation, evaluate
from scaletest.analysis.growth import SEED
from scaletest.analysis.steps import Rows, Step
from scaletest.analysis.throughput import Throughput
from scaletest.model import Plan, Verdict, wire
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.runs.folder import COMMON, VALIDATION, RunFolder
from scaletest.runs.places import default_root, reference
from scaletest.validation.folder import ValidationFolder

# Queue names are made up for each run, and requirements do not change what was measured.
NO_MATTER = {"queue", "scale", "limit", "thresholds", "tolerate_failures", "seed"}
DEVICES = {"devices", "per_device"}
# From the ends of a normal 90 % interval to those of the 95 % interval.
WIDER = 1.1915


@dataclass(frozen=True, slots=True)
class ValidationRun:
    """A stored validation, judged anew.

    name: by which commands find the run. folder: where it is. environment: whatever
    environment.json holds.
    """

    name: str
    folder: str
    result: Evaluation
    environment: dict[str, Any] = field(default_factory=dict)
    records: Rows = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return self.result.verdict

    def while_running(self) -> Self:
        """A copy without a verdict, since more is still coming."""
        return replace(
            self, result=replace(self.result, verdict=self.result.verdict.while_running())
        )


class ValidationType:
    """What the rest of the product asks about them."""

    name = VALIDATION
    layout = COMMON

    def plan(self, document: dict[str, Any]) -> Plan:
        """Read and check a plan; InvalidValue names the field."""
        return Plan.from_dict(document)

    def check(self, folder: RunFolder) -> None:
        """UsageError or InvalidValue unless the whole run can be read."""
        ValidationFolder(folder).check()

    def judge(self, folder: RunFolder) -> ValidationRun:
        """The run in a folder; UsageError when it cannot be read."""
        return read(ValidationFolder(folder), default_root(os.environ))

    def measures(self, judged: ValidationRun) -> Sequence[Measure]:
        """The numbers of each step, and the coefficients of the law."""
        result = judged.result
        law = [
            Measure(name, NOWHERE, estimate, "", False)
            for name, estimate in result.growth.coefficients.items()
        ]
        efficiencies = {row.workers: row.efficiency for row in result.growth.scaling}
        steps = [of_step(step, efficiencies.get(step.level)) for step in result.steps]
        return [*itertools.chain.from_iterable(steps), *law]

    def contrast(self, base: ValidationRun, candidate: ValidationRun) -> Contrast:
        """What the plans of two runs have to do with each other.

        The workload is the command, or the length of the sleep, and what runs beside it. With a
        command `seconds` is only an estimate. So are, where numbers of workers per device are
        compared, the devices: on others, as many workers share them otherwise.
        """
        plans = base.result.plan, candidate.result.plan
        workload = {"command", "background"}
        if not any(plan.command for plan in plans):
            workload.add("seconds")
        compares = [plan.compares for plan in plans]
        if any(compares):
            workload |= {"devices"} if all(compares) else DEVICES
        planned = set(plans[0].steps) & set(plans[1].steps)
        measured = _measured(base) & _measured(candidate)
        return Contrast(
            differences(plans[0].to_dict(), plans[1].to_dict(), workload, NO_MATTER),
            [f"{workers} workers" for workers in sorted(planned - measured)],
        )


RUN_TYPE = ValidationType()


def read(folder: ValidationFolder, root: Path) -> ValidationRun:
    """The run in a folder; UsageError when it cannot be read. root: where runs are found by
    name.
    """
    try:
        stored = folder.load()
        result = evaluate(
            stored.plan,
            stored.measurements,
            stored.records,
            random.Random(SEED),
            stored.background,
            interrupted=_text(stored.result.get("interrupted")),
            elapsed_s=_seconds(stored.result.get("elapsed_s")),
            samples=stored.samples,
            noticed=wire.texts(stored.result.get("noticed")),
            damaged=stored.damaged,
        )
    except InvalidValue as error:
        raise UsageError(
            f"run {folder.name} cannot be read: {error.message}", hint=f"look into {folder.path}"
        ) from error
    return ValidationRun(
        reference(folder.path, root), str(folder.path), result, stored.environment, stored.records
    )


def _measured(run: ValidationRun) -> set[int]:
    return {step.workers for step in run.result.steps}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float:
    return (
        float(value) if isinstance(value, int | float) and 0 <= value <= sys.float_info.max else 0.0
    )


def of_step(step: Step, efficiency: Estimate | None) -> Iterator[Measure]:
    """The numbers of one step; rates that are not sound have no interval."""
    where = {"workers": step.workers}
    repeats = [sample.throughput.per_s for sample in step.samples]
    reason = "" if step.sound else "not steady, or too few requests"
    rates = {"throughput": step.throughput}
    rates |= {f"work.{name}": amount for name, amount in step.work.items()}
    for name, rate in rates.items():
        is_throughput = name == "throughput"
        yield Measure(
            name,
            where,
            _rate(rate, step.sound),
            "1/s",
            True,
            repeats=repeats if step.between and is_throughput else (),
            freedom=rate.freedom,
            reason=reason,
            decides=is_throughput,
        )
    if step.ratio is not None:
        yield Measure("ratio", where, _wider(step.ratio), "x", True)
    if efficiency is not None:
        yield Measure("efficiency", where, efficiency, "", True)
    counted = list(itertools.chain.from_iterable(sample.counted for sample in step.samples))
    yield from percentiles("run", where, step.run, [record.reply.run_s for record in counted])
    yield from percentiles("wait", where, step.wait, [record.reply.wait_s for record in counted])
    yield Measure("failures", where, exactly(step.failures), "requests", False)


def _rate(rate: Throughput, sound: bool) -> Estimate:
    return rate.estimate if sound else Estimate(rate.per_s, 0.0, math.inf)


def _wider(ratio: Ratio) -> Estimate:
    """A ratio with its 95 % interval; steps are judged by the 90 % one."""
    if ratio.low <= 0 or not math.isfinite(ratio.high):
        return Estimate(ratio.value, 0.0, math.inf)
    low, high = (ratio.value * (end / ratio.value) ** WIDER for end in (ratio.low, ratio.high))
    return Estimate(ratio.value, low, high)

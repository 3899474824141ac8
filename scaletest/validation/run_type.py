"""The run type of validations: how a stored one is judged anew, measured and compared."""

import itertools
import math
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from scaletest.causes.statement import short_cause
from scaletest.causes.steps import Rows
from scaletest.model import wire
from scaletest.runs.folder import RunFolder, elapsed_s
from scaletest.runs.places import default_root, run_reference
from scaletest.runs.run_type import ResultOfRun, RunType
from scaletest.stats.comparison import Contrast, plan_differences
from scaletest.stats.estimate import Estimate, exact_estimate
from scaletest.stats.measure import Measure, known_percentiles
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.judging.evaluation import Evaluation, evaluate
from scaletest.validation.judging.growth import SEED
from scaletest.validation.judging.step_parts import group_by_pair, throughput_of_parts
from scaletest.validation.judging.steps import Step
from scaletest.validation.options import OWN_QUEUE
from scaletest.validation.plan import Plan

# Queue names are made up for each run, and requirements do not change what was measured.
IRRELEVANT_FIELDS = {"queue", "scale", "limit", "thresholds", "tolerate_failures", "price", "seed"}
DEVICES = {"devices", "per_device"}
# How much wider a normal 95 % interval is than the 90 % interval.
FROM_90_TO_95 = 1.1915


@dataclass(frozen=True, slots=True)
class ValidationRun(ResultOfRun):
    """A stored validation, judged anew."""

    result: Evaluation
    records: Rows = field(default_factory=dict)


class ValidationType(RunType):
    """The RunType of validations."""

    folder = ValidationFolder
    curve_title = "requests per second at each number of workers"
    curve_path = ("throughput_per_s",)

    def is_local(self, plan: Plan) -> bool:
        """Return whether its workers were local; those of a Deployment have a queue of its name."""
        return plan.queue.startswith(OWN_QUEUE)

    def judge(self, folder: RunFolder) -> ValidationRun:
        """Return the run in a folder; UsageError when it cannot be read."""
        with folder.readable():
            stored = ValidationFolder(folder.path).load()
            result = evaluate(
                stored.plan,
                stored.measurements,
                stored.records,
                random.Random(SEED),
                stored.background,
                interrupted=str(stored.result.get("interrupted") or ""),
                elapsed_s=elapsed_s(stored.result),
                samples=stored.samples,
                noticed=wire.texts(stored.result.get("noticed")),
            )
        return ValidationRun(
            run_reference(folder.path, default_root(os.environ)),
            str(folder.path),
            result,
            stored.environment,
            stored.records,
        )

    def measures(self, judged: ValidationRun) -> Sequence[Measure]:
        """Return the numbers of each step."""
        efficiencies = {row.workers: row.efficiency for row in judged.result.growth.scaling}
        measures: list[Measure] = []
        for step in judged.result.steps:
            measures += measures_of_step(step, efficiencies.get(step.level))
        return measures

    def cause(self, judged: ValidationRun) -> str:
        """Return the main cause; "" where nothing limits the run."""
        return short_cause(judged.result.limits)

    def contrast(self, base: ValidationRun, candidate: ValidationRun) -> Contrast:
        """Return how the plans of two runs differ, and what only one of them measured."""
        before, after = base.result.plan, candidate.result.plan
        # What must be the same: the command, or the length of the sleep, and what runs beside it.
        # With a command `seconds` is only an estimate.
        workload = {"command", "background"}
        if not before.command and not after.command:
            workload.add("seconds")
        # where numbers of workers per device are compared, on others as many share them otherwise
        if before.compares and after.compares:
            workload.add("devices")
        elif before.compares or after.compares:
            workload |= DEVICES
        planned = set(before.steps) & set(after.steps)
        measured = [{step.workers for step in run.result.steps} for run in (base, candidate)]
        return Contrast(
            plan_differences(before.to_dict(), after.to_dict(), workload, IRRELEVANT_FIELDS),
            [f"{workers} workers" for workers in sorted(planned - (measured[0] & measured[1]))],
        )


RUN_TYPE = ValidationType()


def measures_of_step(step: Step, efficiency: Estimate | None) -> Iterator[Measure]:
    """Yield the numbers of one step; rates that are not sound have no interval."""
    where = {"workers": step.workers}
    repeats = [throughput_of_parts(pair).per_s for pair in group_by_pair(step.judged_parts)]
    reason = "" if step.sound else "not steady, or too few requests"
    rates = {"throughput": step.throughput}
    rates |= {f"work.{name}": rate for name, rate in step.work.items()}
    for name, rate in rates.items():
        is_throughput = name == "throughput"
        yield Measure(
            name,
            where,
            rate.estimate if step.sound else Estimate(rate.per_s, 0.0, math.inf),
            "1/s",
            True,
            repeats=repeats if step.between and is_throughput else (),
            freedom=rate.freedom,
            reason=reason,
            decides=is_throughput,
        )
    if step.ratio is not None:
        # with its 95 % interval; steps are judged by the 90 % one
        value, low, high = step.ratio.value, 0.0, math.inf
        if step.ratio.low > 0 and math.isfinite(step.ratio.high):
            low = value * (step.ratio.low / value) ** FROM_90_TO_95
            high = value * (step.ratio.high / value) ** FROM_90_TO_95
        yield Measure("ratio", where, Estimate(value, low, high), "x", True)
    if efficiency is not None:
        yield Measure("efficiency", where, efficiency, "", True)
    counted = list(itertools.chain.from_iterable(sample.counted for sample in step.samples))
    yield from known_percentiles("run", where, step.run, [row.reply.run_s for row in counted])
    yield from known_percentiles("wait", where, step.wait, [row.reply.wait_s for row in counted])
    yield Measure("failures", where, exact_estimate(step.failures), "requests", False)

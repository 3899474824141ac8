"""The RunType of validations that load tools measured."""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from scaletest.runs.folder import ENVIRONMENT, RESULT, STEPS, RunFolder, TypedFolder
from scaletest.runs.places import default_root, run_reference
from scaletest.runs.run_type import ResultOfRun, RunType
from scaletest.stats.comparison import Contrast, plan_differences
from scaletest.stats.estimate import Estimate
from scaletest.stats.measure import Measure
from scaletest.stats.repetitions import mean_estimate
from scaletest.validation.imported.judging import (
    ImportedEvaluation,
    evaluate_results,
    throughput_of,
)
from scaletest.validation.imported.plan import KIND, ImportedPlan
from scaletest.validation.imported.result import ToolResult
from scaletest.validation.judging.growth import SEED

IRRELEVANT_FIELDS = {"scale", "thresholds", "tolerate_failures", "price"}
WORKLOAD_FIELDS = {"source", "axis", "measure"}


class ImportedFolder(TypedFolder[ImportedPlan]):
    """The results as they were read, so that the run is judged again without the tools' files."""

    run_type = KIND
    plan_type = ImportedPlan
    readers: ClassVar[dict[str, Any]] = {STEPS: ToolResult.from_json}


@dataclass(frozen=True, slots=True)
class ImportedRun(ResultOfRun):
    """A stored run, judged again."""

    result: ImportedEvaluation


class ImportedType(RunType):
    """Validations that load tools measured."""

    folder: type[TypedFolder[Any]] = ImportedFolder
    curve_title = "throughput at each number of replicas"
    curve_path = ("throughput", "value")
    workload_fields: ClassVar = WORKLOAD_FIELDS

    def judge(self, folder: RunFolder) -> ImportedRun:
        """Judge the run in a folder; UsageError when it cannot be read."""
        stored = self.folder(folder.path)
        with folder.readable():
            plan, results = stored.plan(), list(stored.rows(STEPS))
            environment, ended = stored.read(ENVIRONMENT), stored.read(RESULT)
        interrupted = ended.get("interrupted")
        return ImportedRun(
            run_reference(folder.path, default_root(os.environ)),
            str(folder.path),
            self.evaluate(plan, results, interrupted if isinstance(interrupted, str) else ""),
            environment,
        )

    def evaluate(self, plan: Any, results: Sequence[Any], interrupted: str) -> ImportedEvaluation:
        """Judge what was measured. interrupted: what ended the run early."""
        return evaluate_results(plan, results, random.Random(SEED))

    def measures(self, judged: ImportedRun) -> Sequence[Measure]:
        """Return throughput and ratios, and latencies under their tool's name for them."""
        measures = []
        measure, axis = judged.result.plan.measure, judged.result.plan.axis
        for step in judged.result.steps:
            where = {axis: step.workers}
            values = [throughput_of(result, measure) for result in step.results]
            measures.append(
                Measure(
                    "throughput",
                    where,
                    step.throughput,
                    "1/s",
                    True,
                    repeats=values,
                    decides=True,
                    freedom=step.freedom,
                )
            )
            if step.ratio is not None:
                ratio = Estimate(step.ratio.value, step.ratio.low, step.ratio.high)
                measures.append(Measure("ratio", where, ratio, "x", True))
            for name in step.results[0].latencies:
                known = [row.latencies[name] for row in step.results if name in row.latencies]
                measures.append(
                    Measure(
                        f"{step.results[0].tool}.{name}", where, mean_estimate(known), "s", False
                    )
                )
        return measures

    def contrast(self, base: ImportedRun, candidate: ImportedRun) -> Contrast:
        """Return in what the plans of two runs differ, and what one of them has not measured."""
        before, after = base.result.plan, candidate.result.plan
        in_one_run = set(before.steps) ^ set(after.steps)
        return Contrast(
            plan_differences(
                before.to_dict(), after.to_dict(), self.workload_fields, IRRELEVANT_FIELDS
            ),
            [f"{count} {before.axis}" for count in sorted(in_one_run)],
        )


RUN_TYPE = ImportedType()

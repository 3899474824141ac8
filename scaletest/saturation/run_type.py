"""The search for saturation as a run type: a stored run, judged anew, and its measures."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scaletest.model import wire
from scaletest.model.attempt import Attempt
from scaletest.runs.folder import ENVIRONMENT, RESULT, RunFolder, elapsed_s
from scaletest.runs.places import default_root, run_reference
from scaletest.runs.run_type import ResultOfRun, RunType
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.judging.evaluation import SaturationResult, evaluate
from scaletest.saturation.judging.step import AssessedStep
from scaletest.saturation.judging.step_sequence import OUTSIDE
from scaletest.saturation.plan import LoadKind
from scaletest.stats.comparison import Contrast, plan_differences
from scaletest.stats.estimate import exact_estimate
from scaletest.stats.measure import NOWHERE, Measure, Place, known_percentiles

# Parts of a plan that say what was measured, and those that do not change it.
WORKLOAD = {"target", "load", "limit", "success"}
NO_MATTER = {"wanted"}


@dataclass(frozen=True, slots=True)
class SaturationRun(ResultOfRun):
    """A stored saturation run, judged anew."""

    result: SaturationResult
    samples: Mapping[int, Sequence[Attempt]] = field(default_factory=dict)
    # what was on record beside the steps (tuning, agents, service)
    extra: dict[str, Any] = field(default_factory=dict)


class SaturationType(RunType):
    """The RunType of saturation runs."""

    folder = SaturationFolder
    curve_title = "successes a second in each step"
    curve_path = ("goodput_per_s", "value")

    def judge(self, folder: RunFolder) -> SaturationRun:
        """Judge the run in a folder; UsageError when it cannot be read."""
        stored = SaturationFolder(folder.path)
        with stored.readable():
            plan, steps = stored.plan(), stored.steps()
            samples = stored.samples(steps)
            environment, recorded = stored.read(ENVIRONMENT), stored.read(RESULT)
        result = evaluate(
            plan,
            steps,
            samples,
            interrupted=str(recorded.get("interrupted") or ""),
            lost=str(recorded.get("lost") or ""),
            elapsed_s=elapsed_s(recorded),
        )
        extra, noticed = recorded.get("extra"), wire.texts(recorded.get("noticed"))
        return SaturationRun(
            run_reference(folder.path, default_root(os.environ)),
            str(folder.path),
            # the warnings from before the run come first
            replace(result, warnings=(*noticed, *result.warnings)),
            environment,
            samples,
            extra if isinstance(extra, dict) else {},
        )

    def measures(self, judged: SaturationRun) -> Sequence[Measure]:
        """Return the capacity, and the numbers of each level by its last step."""
        result = judged.result
        measures = []
        if result.point is not None:
            measures.append(Measure("capacity", NOWHERE, result.point, "1/s", True, decides=True))
        if result.parallel is not None:
            measures.append(
                Measure("in_flight", NOWHERE, exact_estimate(result.parallel), "requests", None)
            )
        levels = {
            (step.step.load, step.step.level): step
            for step in result.steps
            if step.step.phase not in OUTSIDE and not step.tester
        }
        names = {LoadKind.OPEN: "rate", LoadKind.CLOSED: "in_flight"}
        places: list[tuple[Place, AssessedStep]] = [
            ({names[LoadKind(load)]: level}, step) for (load, level), step in sorted(levels.items())
        ]
        if result.operating is not None:
            places.append(({"phase": "operating"}, result.operating))
        for where, step in places:
            measures.append(Measure("goodput", where, step.goodput, "1/s", True))
            measures += known_percentiles("latency", where, step.latency)
            measures.append(
                Measure("failures", where, exact_estimate(1.0 - step.success), "", False)
            )
        return measures

    def contrast(self, base: SaturationRun, candidate: SaturationRun) -> Contrast:
        """Return how the plans of two runs differ, and whether both found a limit."""
        plans = [run.result.plan.to_dict() for run in (base, candidate)]
        limits = [run.result.point for run in (base, candidate)]
        return Contrast(
            plan_differences(plans[0], plans[1], WORKLOAD, NO_MATTER),
            [] if all(limits) else ["the saturation point"],
        )


RUN_TYPE = SaturationType()

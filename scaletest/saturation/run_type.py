"""The search for saturation as a run type: a stored run, judged again, and its measures."""

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
from scaletest.saturation.judging.step_sequence import PHASES_BESIDE_SEARCH
from scaletest.saturation.plan import LoadKind
from scaletest.stats.comparison import Contrast, plan_differences
from scaletest.stats.estimate import exact_estimate
from scaletest.stats.measure import WHOLE_RUN, Measure, Place, known_percentiles

# Fields of a plan by which two runs measured different things.
WORKLOAD_FIELDS = {"target", "load", "limit", "success"}
# Fields that may differ without a word: what the verdict wants changes nothing that was measured.
IRRELEVANT_FIELDS = {"wanted"}


@dataclass(frozen=True, slots=True)
class SaturationRun(ResultOfRun):
    """A stored saturation run, judged again."""

    result: SaturationResult
    # the attempts on record, by the number of their step
    samples: Mapping[int, Sequence[Attempt]] = field(default_factory=dict)
    # what was on record beside the steps (tuning, agents, service)
    extra: dict[str, Any] = field(default_factory=dict)


class SaturationType(RunType):
    """How other commands read, judge and compare the runs of `scaletest saturate`."""

    folder = SaturationFolder
    curve_title = "successes per second in each step"
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
            name=run_reference(folder.path, default_root(os.environ)),
            folder=str(folder.path),
            # the warnings from before the run come first
            result=replace(result, warnings=(*noticed, *result.warnings)),
            environment=environment,
            samples=samples,
            extra=extra if isinstance(extra, dict) else {},
        )

    def measures(self, judged: SaturationRun) -> Sequence[Measure]:
        """Return the capacity in requests/s, and goodput, latency and failures of each level.

        What cannot be known, such as the capacity where none was found, is left out.
        """
        result = judged.result
        measures = []
        if result.point is not None:
            measures.append(
                Measure(
                    "capacity", WHOLE_RUN, result.point, "1/s", more_is_better=True, decides=True
                )
            )
        if result.parallel is not None:
            measures.append(
                Measure(
                    "in_flight",
                    WHOLE_RUN,
                    exact_estimate(result.parallel),
                    "requests",
                    more_is_better=None,
                )
            )
        # a level has one number of each kind, by which two runs are compared; where it was measured
        # several times, its last step counts, after which the search decided about the level
        last_steps = {
            (assessed.step.load, assessed.step.level): assessed
            for assessed in result.steps
            if assessed.step.phase not in PHASES_BESIDE_SEARCH and not assessed.tester
        }
        names = {LoadKind.OPEN: "rate", LoadKind.CLOSED: "in_flight"}
        places: list[tuple[Place, AssessedStep]] = [
            ({names[LoadKind(load)]: level}, assessed)
            for (load, level), assessed in sorted(last_steps.items())
        ]
        if result.operating is not None:
            places.append(({"phase": "operating"}, result.operating))
        for where, assessed in places:
            measures.append(Measure("goodput", where, assessed.goodput, "1/s", more_is_better=True))
            measures += known_percentiles("latency", where, assessed.latency)
            measures.append(
                Measure(
                    "failures",
                    where,
                    exact_estimate(1.0 - assessed.success),
                    unit="",
                    more_is_better=False,
                )
            )
        return measures

    def contrast(self, base: SaturationRun, candidate: SaturationRun) -> Contrast:
        """Return how the plans of two runs differ, and whether both found a limit."""
        plans = [run.result.plan.to_dict() for run in (base, candidate)]
        limits = [run.result.point for run in (base, candidate)]
        return Contrast(
            plan_differences(plans[0], plans[1], WORKLOAD_FIELDS, IRRELEVANT_FIELDS),
            [] if all(limits) else ["the saturation point"],
        )


RUN_TYPE = SaturationType()

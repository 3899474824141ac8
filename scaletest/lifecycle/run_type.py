"""Lifecycles as a run type: a stored run, judged anew, and its measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.judging.result import (
    COUNTS,
    EXAMPLE,
    MEASURES,
    LifecycleResult,
    WorkloadSelection,
    result,
)
from scaletest.lifecycle.stamps import LifecyclePlan, Stamp
from scaletest.model.errors import UsageError
from scaletest.model.verdict import parse
from scaletest.runs.folder import ENVIRONMENT, RunFolder
from scaletest.runs.run_type import ResultOfRun, RunType
from scaletest.stats.comparison import Contrast, differences
from scaletest.stats.estimate import exactly
from scaletest.stats.measure import NOWHERE, Measure, percentiles

WHOLE = WorkloadSelection()
# What clocks can tell apart, in s: the arrival of events here, and the fields of the API.
WATCHED_S, WHOLE_S = 0.02, 1.0
# What the phases are those of, and what has nothing to do with them.
WORKLOAD = {
    "object_kind",
    "workers",
    "gpus",
    "resource",
    "image",
    "seconds",
    "pvc",
    "template",
}
NO_MATTER = {"run", "namespace", "project", "template_file", "context"}


@dataclass(frozen=True, slots=True)
class Conditions:
    """What must hold of a run; InvalidValue for a threshold that cannot be read."""

    thresholds: tuple[str, ...] = ()
    tolerate_failures: int = 0

    def __post_init__(self) -> None:
        for text in self.thresholds:
            parse(text, MEASURES, EXAMPLE)


@dataclass(frozen=True, slots=True)
class LifecycleRun(ResultOfRun):
    """A stored lifecycle run, judged anew.

    project: of Run:ai; "" for the one that the namespace names.
    """

    result: LifecycleResult
    title: str = ""
    project: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)


class LifecycleType(RunType):
    """What the rest of the product asks about them."""

    folder = LifecycleFolder
    curve_title = "median time of each phase"
    curve_path = ("seconds", "p50", "value")

    def judge(self, folder: RunFolder) -> LifecycleRun:
        """The run in a folder; UsageError when it cannot be read."""
        return read(LifecycleFolder(folder.path))

    def measures(self, judged: LifecycleRun) -> Sequence[Measure]:
        """The durations of each phase, the throughput of scheduling, and what went wrong."""
        lifecycle = judged.result
        phases: list[Measure] = []
        # what is counted from the submission on holds all the others
        whole = [each.step.name for each in lifecycle.steps if each.step.name.startswith("total_")]
        for phase in lifecycle.steps:
            samples = [seconds for seconds in phase.values if seconds is not None]
            resolution_s = WATCHED_S if set(phase.sources) <= {"watch"} else WHOLE_S
            phases += [
                replace(measure, decides=measure.is_median and phase.step.name in whole)
                for measure in percentiles(
                    phase.step.name, NOWHERE, phase.spread, samples, resolution_s
                )
            ]
        if not whole:
            phases = [replace(measure, decides=measure.is_median) for measure in phases]
        per_s = lifecycle.throughput.per_s
        if per_s is not None:
            phases.append(Measure("throughput", NOWHERE, exactly(per_s), "1/s", True))
        counts = [
            Measure(name, NOWHERE, exactly(getattr(lifecycle.books, name)), "workloads", False)
            for name in COUNTS
        ]
        return [*phases, *counts]

    def contrast(self, base: LifecycleRun, candidate: LifecycleRun) -> Contrast:
        """What the plans of two runs have to do with each other, where both have one, and whether
        one of them has lost workloads, or has not measured them yet.
        """
        known = base.plan and candidate.plan
        books = base.result.books, candidate.result.books
        most = max(own.measured for own in books)
        incomplete = any(own.measured < most and own.pending + own.lost for own in books)
        return Contrast(
            differences(base.plan, candidate.plan, WORKLOAD, NO_MATTER) if known else (),
            [f"{most} workloads"] if incomplete else [],
        )


RUN_TYPE = LifecycleType()


def read(
    store: LifecycleFolder,
    view: WorkloadSelection = WHOLE,
    interrupted: str = "",
) -> LifecycleRun:
    """Everything in the folder's files; without a plan they are those of the original tool."""
    # first: of another type of run it says so
    plan = store.plan() if store.exists else None
    workloads, submissions = store.workloads(), store.submissions()
    if plan is None and not workloads:
        raise UsageError(
            f"{store.path} holds no lifecycle run",
            hint="give the <output_dir> of submit and sample",
        )
    until, count, project, conditions = "decided", 0, "", Conditions()
    if plan is not None:
        until, count, project = plan.until, plan.count, plan.project
        conditions = Conditions(plan.thresholds, plan.tolerate_failures)
    for submission in submissions:
        submitted_s = submission.submitted_s
        if submission.accepted and submission.name in workloads and submitted_s is not None:
            workloads[submission.name].mark("submitted", Stamp(watch_s=submitted_s))
    judged = result(
        workloads.values(),
        submissions,
        until,
        view,
        planned=count,
        thresholds=conditions.thresholds,
        tolerate_failures=conditions.tolerate_failures,
        interrupted=interrupted,
    )
    return LifecycleRun(
        "",
        str(store.path),
        judged,
        title=heading(store.path, plan),
        project=project,
        plan=plan.to_dict() if plan else {},
        environment=store.read(ENVIRONMENT),
    )


def heading(path: Path, plan: LifecyclePlan | None) -> str:
    """What was run, in one line."""
    if plan is None:
        return f"lifecycle of {path}, from files of the Run:ai scale test tool"
    pace = f"bursts of {plan.processes} {plan.delay_s:g} s apart"
    return f"{plan.workload} · {pace} · run {plan.run}"

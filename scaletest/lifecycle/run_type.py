"""Lifecycles as a run type: a stored run, judged anew, and its measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.judging.result import LifecycleResult, judge_run
from scaletest.lifecycle.judging.verdict import COUNTS
from scaletest.lifecycle.options import Conditions, WorkloadSelection
from scaletest.lifecycle.records import Stamp
from scaletest.model.errors import UsageError
from scaletest.runs.folder import ENVIRONMENT, RunFolder
from scaletest.runs.run_type import ResultOfRun, RunType
from scaletest.stats.comparison import Contrast, plan_differences
from scaletest.stats.estimate import exact_estimate
from scaletest.stats.measure import NOWHERE, Measure, known_percentiles

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
        """Judge the run in a folder; UsageError when it cannot be read."""
        return read_run(LifecycleFolder(folder.path))

    def measures(self, judged: LifecycleRun) -> Sequence[Measure]:
        """Return the durations of each phase, the throughput of scheduling, and what went wrong."""
        lifecycle = judged.result
        phases: list[Measure] = []
        # what is counted from the submission on holds all the others
        totals = [
            phase.step.name for phase in lifecycle.steps if phase.step.name.startswith("total_")
        ]
        for phase in lifecycle.steps:
            samples = [seconds for seconds in phase.values if seconds is not None]
            resolution_s = WATCHED_S if set(phase.sources) <= {"watch"} else WHOLE_S
            phases += [
                replace(measure, decides=measure.is_median and phase.step.name in totals)
                for measure in known_percentiles(
                    phase.step.name, NOWHERE, phase.spread, samples, resolution_s
                )
            ]
        if not totals:
            phases = [replace(measure, decides=measure.is_median) for measure in phases]
        per_s = lifecycle.throughput.per_s
        if per_s is not None:
            phases.append(Measure("throughput", NOWHERE, exact_estimate(per_s), "1/s", True))
        return phases + [
            Measure(
                name, NOWHERE, exact_estimate(getattr(lifecycle.books, name)), "workloads", False
            )
            for name in COUNTS
        ]

    def contrast(self, base: LifecycleRun, candidate: LifecycleRun) -> Contrast:
        """Compare the plans of two runs, where both have one, and say whether one of them has lost
        workloads, or has not measured them yet.
        """
        known = base.plan and candidate.plan
        books = base.result.books, candidate.result.books
        largest = max(counts.measured for counts in books)
        incomplete = any(
            counts.measured < largest and counts.pending + counts.lost for counts in books
        )
        return Contrast(
            plan_differences(base.plan, candidate.plan, WORKLOAD, NO_MATTER) if known else (),
            [f"{largest} workloads"] if incomplete else [],
        )


RUN_TYPE = LifecycleType()


def read_run(
    store: LifecycleFolder,
    view: WorkloadSelection = WHOLE,
    interrupted: str = "",
) -> LifecycleRun:
    """Read everything in the folder's files; without a plan they are those of the original tool."""
    # first: of another type of run it says so
    plan = store.plan() if store.exists else None
    workloads, submissions = store.workloads(), store.submissions()
    if plan is None and not workloads:
        raise UsageError(
            f"{store.path} contains no lifecycle run",
            hint="give the <output_dir> of submit and sample",
        )
    until, count, project, conditions = "decided", 0, "", Conditions()
    title = f"lifecycle of {store.path}, from files of the Run:ai scale test tool"
    if plan is not None:
        title = (
            f"{plan.workload} · bursts of {plan.processes} {plan.delay_s:g} s apart · run"
            f" {plan.run}"
        )
        until, count, project = plan.until, plan.count, plan.project
        conditions = Conditions(plan.thresholds, plan.tolerate_failures)
    for submission in submissions:
        submitted_s = submission.submitted_s
        if submission.accepted and submission.name in workloads and submitted_s is not None:
            workloads[submission.name].mark("submitted", Stamp(watch_s=submitted_s))
    return LifecycleRun(
        "",
        str(store.path),
        judge_run(
            workloads.values(),
            submissions,
            until,
            view,
            planned=count,
            thresholds=conditions.thresholds,
            tolerate_failures=conditions.tolerate_failures,
            interrupted=interrupted,
        ),
        title=title,
        project=project,
        plan=plan.to_dict() if plan else {},
        environment=store.read(ENVIRONMENT),
    )

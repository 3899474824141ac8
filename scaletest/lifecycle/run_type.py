"""Lifecycles as a run type: a stored run, judged again, and its measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.judging.result import LifecycleResult, judge_run
from scaletest.lifecycle.judging.verdict import COUNTS
from scaletest.lifecycle.options import Conditions, WorkloadSelection
from scaletest.lifecycle.records import Stamp
from scaletest.model.errors import UsageError
from scaletest.render.numbers import format_seconds
from scaletest.runs.folder import ENVIRONMENT, RunFolder
from scaletest.runs.run_type import ResultOfRun, RunType
from scaletest.stats.comparison import Contrast, Difference, plan_differences
from scaletest.stats.estimate import exact_estimate
from scaletest.stats.measure import WHOLE_RUN, Measure, known_percentiles

ALL_WORKLOADS = WorkloadSelection()


@dataclass(frozen=True, slots=True)
class LifecycleRun(ResultOfRun):
    """A stored lifecycle run, judged again."""

    result: LifecycleResult
    title: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)


class LifecycleType(RunType):
    """The RunType of lifecycles."""

    folder = LifecycleFolder
    curve_title = "median time of each phase"
    curve_path = ("seconds", "p50", "value")

    def judge(self, folder: RunFolder) -> LifecycleRun:
        """Judge the run in a folder; UsageError when it cannot be read."""
        return read_run(LifecycleFolder(folder.path))

    def measures(self, judged: LifecycleRun) -> Sequence[Measure]:
        """Return the durations of each phase, the throughput of scheduling, and what went wrong."""
        lifecycle = judged.result
        measures: list[Measure] = []
        # the phases from the submission on hold all the others, so these decide where there are any
        has_total = any(durations.phase.total for durations in lifecycle.phases)
        for durations in lifecycle.phases:
            phase = durations.phase
            samples = [seconds for seconds in durations.values if seconds is not None]
            # what clocks can show: 20 ms in the arrival of events here, 1 s in the API's fields
            resolution_s = 0.02 if set(durations.sources) <= {"watch"} else 1.0
            for measure in known_percentiles(
                phase.name, WHOLE_RUN, durations.spread, samples, resolution_s
            ):
                decides = measure.is_median and (phase.total or not has_total)
                measures.append(replace(measure, decides=decides))
        per_s = lifecycle.throughput.per_s
        if per_s is not None:
            measures.append(
                Measure("throughput", WHOLE_RUN, exact_estimate(per_s), "1/s", more_is_better=True)
            )
        for name in COUNTS:
            measures.append(
                Measure(
                    name,
                    WHOLE_RUN,
                    exact_estimate(getattr(lifecycle.books, name)),
                    "workloads",
                    more_is_better=False,
                )
            )
        return measures

    def contrast(self, base: LifecycleRun, candidate: LifecycleRun) -> Contrast:
        """Compare the plans of two runs, and say what only one of them has measured."""
        differences: Sequence[Difference] = ()
        if base.plan and candidate.plan:  # files of the Run:ai scale test tool have none
            differences = plan_differences(
                base.plan,
                candidate.plan,
                # fields that say what is measured, and fields that change nothing in it
                {
                    "object_kind",
                    "workers",
                    "gpus",
                    "resource",
                    "image",
                    "seconds",
                    "pvc",
                    "template",
                },
                {"run", "namespace", "project", "template_file", "context"},
            )
        # a run that has lost workloads, or not measured them yet, has measured fewer
        books = base.result.books, candidate.result.books
        most = max(counts.measured for counts in books)
        is_incomplete = any(
            counts.measured < most and counts.pending + counts.lost for counts in books
        )
        return Contrast(differences, [f"{most} workloads"] if is_incomplete else [])


RUN_TYPE = LifecycleType()


def read_run(
    store: LifecycleFolder,
    view: WorkloadSelection = ALL_WORKLOADS,
    interrupted: str = "",
) -> LifecycleRun:
    """Read and judge the run in a folder.

    Without a plan its files are those of the Run:ai scale test tool.
    """
    # the plan first, since it is refused when the run is of another type
    plan = store.plan() if store.exists else None
    workloads, submissions = store.workloads(), store.submissions()
    if plan is None and not workloads:
        raise UsageError(
            f"{store.path} contains no lifecycle run",
            hint="give the <output_dir> of submit and sample",
        )
    until = "decided"
    planned = 0
    conditions = Conditions()
    title = f"lifecycle of {store.path}, from files of the Run:ai scale test tool"
    if plan is not None:
        pauses = f", {format_seconds(plan.delay_s)} apart" if plan.delay_s else ""
        title = f"{plan.workload} · {plan.processes} at a time{pauses} · run {plan.run}"
        until, planned = plan.until, plan.count
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
            planned=planned,
            thresholds=conditions.thresholds,
            tolerate_failures=conditions.tolerate_failures,
            interrupted=interrupted,
        ),
        title=title,
        plan=plan.to_dict() if plan else {},
        environment=store.read(ENVIRONMENT),
    )

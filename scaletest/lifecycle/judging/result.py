"""Judge a lifecycle run. The same records always give the same result."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scaletest.lifecycle.judging.books import Books, count_workloads
from scaletest.lifecycle.judging.figures import (
    PhaseDurations,
    PodThroughput,
    count_scheduled,
    summarize_phase,
)
from scaletest.lifecycle.judging.timeline import (
    PHASES,
    WorkloadTimeline,
    find_error,
    start_time,
    timeline_of,
)
from scaletest.lifecycle.judging.verdict import decide_verdict, judge_thresholds
from scaletest.lifecycle.options import WorkloadSelection
from scaletest.lifecycle.plan import UNTIL
from scaletest.lifecycle.records import LifecycleObject, Submission
from scaletest.model.declared import INNER, VERSIONED, choice
from scaletest.model.verdict import Verdict
from scaletest.model.writing import Written
from scaletest.stats.thresholds import ThresholdResult


@dataclass(frozen=True, slots=True)
class LifecycleResult(Written):
    """The result of a run: what became of its workloads, how long each phase took, the verdict."""

    constants: ClassVar = {**VERSIONED, "kind": "lifecycle"}

    until: Annotated[str, choice(UNTIL), "the milestone that ends a workload"]
    books: Books
    timelines: Annotated[tuple[WorkloadTimeline, ...], INNER, "timelines of those that are shown."]
    steps: Annotated[
        tuple[PhaseDurations, ...], "one for every phase of which something was measured"
    ]
    throughput: Annotated[PodThroughput, "throughput of scheduling"]
    skipped: Annotated[dict[str, int], "workloads left out as erroneous, by reason"]
    thresholds: Annotated[tuple[ThresholdResult, ...], "conditions of a PASS, as they were given"]
    verdict: Verdict
    uncut_timelines: Annotated[
        tuple[WorkloadTimeline, ...], INNER, "timelines before the first and last ones were cut."
    ] = ()

    def step(self, name: str) -> PhaseDurations | None:
        """Return the durations of a phase by its name; None when none was measured."""
        return next((phase for phase in self.steps if phase.step.name == name), None)


def judge_run(
    workloads: Iterable[LifecycleObject],
    submissions: Sequence[Submission],
    until: str,
    view: WorkloadSelection,
    *,
    planned: int = 0,
    thresholds: Sequence[str] = (),
    tolerate_failures: int = 0,
    interrupted: str = "",
) -> LifecycleResult:
    """Judge a run. Only the phases are those of the workloads in view; all else is of the run."""
    # by submission, else by creation, then by name, so that series have one order
    timelines = sorted(
        map(timeline_of, workloads),
        key=lambda timeline: (start_time(timeline) or 0.0, timeline.workload.name),
    )
    # choose those that are in view
    uncut = []
    skipped: Counter[str] = Counter()
    for timeline in timelines:
        error = find_error(timeline)
        if error:
            skipped[error] += 1
        if not (error and view.skip_errors):
            uncut.append(timeline)
    shown = uncut[: view.head]
    if view.tail is not None:
        shown = shown[max(0, len(shown) - view.tail) :]
    # summarize, and judge
    phases = [summarize_phase(phase, shown) for phase in PHASES]
    steps = tuple(phase for phase in phases if phase.spread.count)
    books = count_workloads(timelines, submissions, until, planned)
    throughput = count_scheduled(timelines)
    results = judge_thresholds(thresholds, steps, books, throughput.per_s)
    return LifecycleResult(
        until=until,
        books=books,
        timelines=tuple(shown),
        steps=steps,
        throughput=throughput,
        skipped=dict(skipped),
        thresholds=results,
        verdict=decide_verdict(books, results, tolerate_failures, until, interrupted),
        uncut_timelines=tuple(uncut),
    )

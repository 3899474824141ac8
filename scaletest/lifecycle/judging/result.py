"""Judge a lifecycle run by its records alone, so that the same records give the same result."""

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
from scaletest.model.declared import INNER, VERSIONED, choice, named_in_documents
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
    phases: Annotated[
        tuple[PhaseDurations, ...],
        named_in_documents("steps"),
        "one for every phase of which something was measured",
    ]
    throughput: Annotated[PodThroughput, "throughput of scheduling"]
    skipped: Annotated[dict[str, int], "workloads left out as erroneous, by reason"]
    thresholds: Annotated[tuple[ThresholdResult, ...], "conditions of a PASS, as they were given"]
    verdict: Verdict
    uncut_timelines: Annotated[
        tuple[WorkloadTimeline, ...], INNER, "timelines before the first and last ones were cut."
    ] = ()

    def find_phase(self, name: str) -> PhaseDurations | None:
        """Return the durations of a phase by its name; None when none was measured."""
        return next((found for found in self.phases if found.phase.name == name), None)


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
    """Judge a run by its records: its workloads, and what was submitted.

    until: the milestone that ends a workload, one of UNTIL. view: the workloads whose durations the
    phases show, and thresholds about phases judge; books and throughput count all workloads.
    planned: how many workloads the run was to submit. thresholds: conditions of a PASS.
    tolerate_failures: how many workloads may fail or be rejected. interrupted: why the run ended
    early, "" if it did not.
    """
    # sort by submission, else by creation, then by name, so that the same records give one order
    timelines = sorted(
        map(timeline_of, workloads),
        key=lambda timeline: (start_time(timeline) or 0.0, timeline.workload.name),
    )
    # apply the view: leave out erroneous timelines, then keep the first ones, of these the last
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
    # phases in view that were measured at least once
    summaries = [summarize_phase(phase, shown) for phase in PHASES]
    phases = tuple(summary for summary in summaries if summary.spread.count)
    # books and throughput of the whole run, and the verdict by all of it
    books = count_workloads(timelines, submissions, until, planned)
    throughput = count_scheduled(timelines)
    threshold_results = judge_thresholds(thresholds, phases, books, throughput.per_s)
    return LifecycleResult(
        until=until,
        books=books,
        timelines=tuple(shown),
        phases=phases,
        throughput=throughput,
        skipped=dict(skipped),
        thresholds=threshold_results,
        verdict=decide_verdict(books, threshold_results, tolerate_failures, until, interrupted),
        uncut_timelines=tuple(uncut),
    )

"""The result of a lifecycle run, and all that goes into it; a stored run always gives the same."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scaletest.lifecycle.judging.books import Books, count_workloads
from scaletest.lifecycle.judging.figures import (
    PhaseDurations,
    PodThroughput,
    summarize_phase,
    throughput,
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
    """The result of a run."""

    constants: ClassVar = {**VERSIONED, "kind": "lifecycle"}

    until: Annotated[str, choice(UNTIL), "the milestone that ends a workload"]
    books: Books
    courses: Annotated[tuple[WorkloadTimeline, ...], INNER, "timelines of those that are shown."]
    steps: Annotated[
        tuple[PhaseDurations, ...], "one for every phase of which something was measured"
    ]
    throughput: Annotated[PodThroughput, "throughput of scheduling"]
    skipped: Annotated[dict[str, int], "workloads left out as erroneous, by reason"]
    thresholds: Annotated[tuple[ThresholdResult, ...], "conditions of a PASS, as they were given"]
    verdict: Verdict
    uncut: Annotated[
        tuple[WorkloadTimeline, ...], INNER, "timelines before the first and last ones were cut."
    ] = ()

    def step(self, name: str) -> PhaseDurations | None:
        """Return a step by its name; None when nothing was measured of it."""
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
    """Judge a run. The books are of the whole run, whatever is shown."""
    # by submission, else by creation, then by name, so that series have one order
    everything = sorted(
        map(timeline_of, workloads),
        key=lambda timeline: (start_time(timeline) or 0.0, timeline.workload.name),
    )
    counts = count_workloads(everything, submissions, until, planned)
    uncut = []
    skipped: Counter[str] = Counter()
    for workload in everything:
        error = find_error(workload)
        if error:
            skipped[error] += 1
        if not (error and view.skip_errors):
            uncut.append(workload)
    shown = uncut[: view.head]
    if view.tail is not None:
        shown = shown[max(0, len(shown) - view.tail) :]
    measured = [summarize_phase(phase, shown) for phase in PHASES]
    steps = tuple(phase for phase in measured if phase.spread.count)
    rate = throughput(everything)
    outcomes = judge_thresholds(thresholds, steps, counts, rate.per_s)
    return LifecycleResult(
        until,
        counts,
        tuple(shown),
        steps,
        rate,
        dict(skipped),
        outcomes,
        decide_verdict(counts, outcomes, tolerate_failures, until, interrupted),
        tuple(uncut),
    )

"""The figures of a lifecycle run from its stamps, its thresholds and its verdict.

A stored run always gives the same figures. Thresholds have one line each:

    ready.p99<30s   total_scheduled.p95<=2s   finished.mean<90s   throughput>=50/s
    failed<=0   rejected<1%   lost<=0

A percentile's 95 % interval decides: PASS when all of it holds, FAIL when none of it does, else
INVALID. Means, counts and the throughput are as they were counted. Failed, rejected, pending and
lost in % are parts of what was submitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Annotated, ClassVar

from scaletest.lifecycle.judging.phases import (
    BY_NAME,
    PHASES,
    Books,
    Fate,
    LifecyclePhase,
    WorkloadTimeline,
    at,
    books,
    durations,
    erroneous,
    fate,
    order,
    phase_text,
    reference,
    timeline,
)
from scaletest.lifecycle.stamps import UNTIL, LifecycleObject, Submission, TimeSource
from scaletest.model.checks import cut
from scaletest.model.declared import INNER, VERSIONED, Count, Written, called, choice, flat
from scaletest.model.verdict import (
    PERCENTILES,
    Measurable,
    MeasureTable,
    Threshold,
    Verdict,
    parse,
)
from scaletest.render.numbers import plural
from scaletest.stats.estimate import exactly
from scaletest.stats.percentiles import Distribution, interval_of, samples_needed, summary
from scaletest.stats.thresholds import Measured, ThresholdResult, ground_of, judge
from scaletest.stats.verdict_order import Ground, Rank, decide

# Remedy for pods that run and do not end.
ENDLESS = "give the pods an end (<run_seconds>, or one in the template), or ask for <until> ready"
COUNTS = ("failed", "rejected", "pending", "lost")
EXAMPLE = "'ready.p99<30s', 'failed<=0' or 'throughput>=50/s'"
STATISTICS = (*PERCENTILES, "mean", "max")
MEASURES: MeasureTable = {
    **dict.fromkeys(map(".".join, product(BY_NAME, STATISTICS)), Measurable("s")),
    **dict.fromkeys(COUNTS, Measurable("workloads")),
    "throughput": Measurable("1/s"),
}


def judge_thresholds(
    texts: Sequence[str], steps: Sequence[PhaseDurations], books: Books, per_s: float | None
) -> tuple[ThresholdResult, ...]:
    """One result for each threshold, in their order."""
    by_name = {phase.step.name: phase for phase in steps}
    thresholds = [parse(text, MEASURES, EXAMPLE) for text in texts]
    return tuple(judge(each, [_measured(each, by_name, books, per_s)]) for each in thresholds)


def _measured(
    threshold: Threshold, steps: Mapping[str, PhaseDurations], books: Books, per_s: float | None
) -> Measured:
    name, _, statistic = threshold.measure.partition(".")
    if name in COUNTS:
        return _of(_count(threshold, books), "nothing was submitted")
    if name == "throughput":
        return _of(per_s, "pods were scheduled for less than a second")
    phase = steps.get(name)
    if phase is None:
        return _of(None, f"no workload has both ends of {name}")
    figure = getattr(phase.spread, statistic.replace(".", "_"))
    if statistic not in PERCENTILES:
        return _of(figure, "")
    if figure is None:
        needed = samples_needed(PERCENTILES[statistic])
        return _of(None, f"{statistic} needs {needed} values, and there are {phase.spread.count}")
    return replace(_of(figure.value, ""), estimate=interval_of(figure))


def _count(threshold: Threshold, books: Books) -> float | None:
    """A count of workloads, or its part of all; None where there are none."""
    count = float(getattr(books, threshold.measure))
    if not threshold.share:
        return count
    whole = books.submitted + books.rejected
    return count / whole if whole else None


def _of(figure: float | None, missing: str) -> Measured:
    """A figure that has no interval. missing: why there is none where it is None."""
    if figure is None:
        return Measured(None, missing, "submit more workloads, or wait longer")
    return Measured(
        exactly(figure),
        remedy="submit more workloads: the interval holds the bound",
        refuted="look at the step's course over time in the report",
    )


def judged(
    books: Books,
    thresholds: Sequence[ThresholdResult],
    tolerate: int,
    until: str,
    interrupted: str = "",
) -> Verdict:
    """The verdict of a run."""
    met = f"{books.measured} of {books.submitted} workloads reached {until}"
    if thresholds:
        met += f", {plural(len(thresholds), 'threshold')} met"
    stopped = None
    if interrupted:
        stopped = Ground(
            Rank.OPEN, f"interrupted: {interrupted}", "go on: run the same command again"
        )
    return decide(
        [
            _unbalanced(books),
            ground_of(thresholds, Rank.REFUTED),
            _failed(books, tolerate),
            stopped,
            _incomplete(books, until),
            ground_of(thresholds, Rank.OPEN),
            Ground(Rank.MET, met),
        ]
    )


def _unbalanced(books: Books) -> Ground | None:
    """Not the subject where workloads are missing from the books."""
    if books.balanced:
        return None
    counted = books.measured + books.pending + books.failed + books.lost
    return Ground(
        Rank.NOT_THE_SUBJECT,
        f"{books.submitted} workloads were submitted, and {counted} are on record",
        "look into the output folder, or measure it again",
    )


def _failed(books: Books, tolerate: int) -> Ground | None:
    """Refuted where more workloads failed or were rejected than are tolerated."""
    if books.failed + books.rejected <= tolerate:
        return None
    why = next(iter([*books.rejections, *books.failures]), "")
    return Ground(
        Rank.REFUTED,
        f"{books.failed} failed and {books.rejected} rejected, {tolerate} tolerated:"
        f" {cut(why, 160)}",
        "fix the cause that the reason names, or allow more with <tolerate_failures>",
    )


def _incomplete(books: Books, until: str) -> Ground | None:
    """Open where workloads were not submitted, or have not come so far."""
    if not books.submitted:
        return Ground(
            Rank.OPEN,
            "no workload was submitted",
            "look into the output folder, or submit again",
        )
    if books.not_tried:
        return Ground(
            Rank.OPEN,
            f"{books.not_tried} of {books.planned} were not submitted yet",
            "submit again: it goes on",
        )
    if not (books.pending or books.lost):
        return None
    run, remedy = "", "ask for an earlier milestone with <until>"
    if books.running:
        run, remedy = f" (the pods of {books.running} run)", ENDLESS
    return Ground(
        Rank.OPEN,
        f"{books.pending} of {books.submitted} have not reached {until}{run}, {books.lost} were"
        " lost",
        f"wait longer, or {remedy}",
    )


MOST_BINS = 120


@dataclass(frozen=True, slots=True)
class PhaseDurations(Written):
    """One step of a run, durations in s."""

    step: Annotated[LifecyclePhase, flat(), "its name"]
    since: Annotated[str, "the milestone at which the phase begins"]
    values: Annotated[
        tuple[float | None, ...], INNER, "in the order of submission, None where missing."
    ]
    spread: Annotated[Distribution, called("seconds"), "how long it took"]
    sources: Annotated[
        dict[TimeSource, Count], "how many values come from where: watch, api, event, or mixed"
    ]
    missing: Annotated[Count, "workloads or pods without a value"]
    clipped: Annotated[Count, "values a little below zero, counted as zero"]

    @property
    def text(self) -> str:
        """Its name for people: where it begins and where it ends."""
        return phase_text(self.step, self.since)


@dataclass(frozen=True, slots=True)
class PodThroughput(Written):
    """Pods scheduled over time."""

    pods: Annotated[Count, "pods whose time of scheduling is known"]
    per_s: Annotated[float | None, "from the first to the last; null for less than a second"]
    peak_per_s: Annotated[float | None, "in the bin with the most pods"]
    began_s: Annotated[float, "seconds since the epoch"]
    bin_s: float
    counts: Annotated[tuple[int, ...], "pods in consecutive bins from began_s on"]
    seen: Annotated[Count, "pods that were seen"] = 0


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
        """A step by its name; None when nothing was measured of it."""
        return next((phase for phase in self.steps if phase.step.name == name), None)


@dataclass(frozen=True, slots=True)
class WorkloadSelection:
    """Which workloads of a run are shown. head, tail: keep the first, then the last so many."""

    skip_errors: bool = True
    head: int | None = None
    tail: int | None = None


def result(
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
    """The result of a run. The books are of the whole run, whatever is shown."""
    everything = order(timeline(workload) for workload in workloads)
    counts = books(everything, submissions, until, planned)
    uncut, skipped = _plausible(everything, view)
    shown = _cut(uncut, view)
    measured = [_durations(phase, shown) for phase in PHASES]
    steps = tuple(phase for phase in measured if phase.spread.count)
    rate = throughput(everything)
    outcomes = judge_thresholds(thresholds, steps, counts, rate.per_s)
    return LifecycleResult(
        until,
        counts,
        tuple(shown),
        steps,
        rate,
        skipped,
        outcomes,
        judged(counts, outcomes, tolerate_failures, until, interrupted),
        tuple(uncut),
    )


def _plausible(
    everything: Sequence[WorkloadTimeline], view: WorkloadSelection
) -> tuple[list[WorkloadTimeline], dict[str, int]]:
    """The workloads without erroneous ones, and how many are erroneous, by reason."""
    reasons = list(map(erroneous, everything))
    plausible = [
        workload
        for workload, reason in zip(everything, reasons, strict=True)
        if not (reason and view.skip_errors)
    ]
    return plausible, dict(Counter(filter(None, reasons)))


def _cut(uncut: list[WorkloadTimeline], view: WorkloadSelection) -> list[WorkloadTimeline]:
    shown = uncut[: view.head]
    return shown if view.tail is None else shown[max(0, len(shown) - view.tail) :]


def _durations(phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline]) -> PhaseDurations:
    """The durations of one step in all workloads."""
    measured = durations(phase, timelines)
    known = [duration for duration in measured if duration is not None]
    return PhaseDurations(
        phase,
        reference(phase, timelines),
        tuple(duration and duration.value_s for duration in measured),
        summary(duration.value_s for duration in known),
        dict(Counter(duration.source for duration in known)),
        len(measured) - len(known),
        sum(duration.clipped for duration in known),
    )


def throughput(timelines: Sequence[WorkloadTimeline]) -> PodThroughput:
    """Pods scheduled over time, in bins of whole seconds."""
    pods = chain.from_iterable(each.workload.pods.values() for each in timelines)
    scheduled = [at(pod.stamps.get("scheduled")) for pod in pods]
    times = sorted(time for time in scheduled if time is not None)
    if not times:
        return PodThroughput(0, None, None, 0.0, 1.0, (), len(scheduled))
    span = times[-1] - times[0]
    bin_s = float(max(1, -(-int(span + 1) // MOST_BINS)))
    counts = [0] * (int(span / bin_s) + 1)
    for time in times:
        counts[int((time - times[0]) / bin_s)] += 1
    per_s = (len(times) - 1) / span if span >= 1.0 else None
    return PodThroughput(
        len(times), per_s, max(counts) / bin_s, times[0], bin_s, tuple(counts), len(scheduled)
    )


__all__ = [
    "Fate",
    "LifecycleResult",
    "PhaseDurations",
    "PodThroughput",
    "WorkloadSelection",
    "fate",
    "result",
    "throughput",
]

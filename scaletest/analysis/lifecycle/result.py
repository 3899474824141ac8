"""The figures of a lifecycle run from its stamps. A stored run always gives the same ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.lifecycle.books import Books, Fate, books, fate
from scaletest.analysis.lifecycle.judge import judge, judged
from scaletest.analysis.lifecycle.phases import (
    PHASES,
    LifecyclePhase,
    WorkloadTimeline,
    at,
    durations,
    erroneous,
    order,
    reference,
    timeline,
)
from scaletest.analysis.percentiles import Distribution, summary
from scaletest.analysis.thresholds import ThresholdResult
from scaletest.model.lifecycle import LifecycleObject, Submission
from scaletest.model.verdict import Verdict
from scaletest.model.wire import SCHEMA_VERSION

MOST_BINS = 120


@dataclass(frozen=True, slots=True)
class PhaseDurations:
    """One step of a run, durations in s.

    values: in the order of submission, None where missing. missing: workloads (or pods) without a
    duration. clipped: how many were a little below 0. sources: where the durations come from, with
    their number.
    """

    step: LifecyclePhase
    since: str
    values: tuple[float | None, ...]
    spread: Distribution
    sources: dict[str, int]
    missing: int
    clipped: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "step": self.step.name,
            "title": self.step.title,
            "since": self.since,
            "of_pods": self.step.of_pods,
            "seconds": self.spread.to_dict(),
            "sources": self.sources,
            "missing": self.missing,
            "clipped": self.clipped,
        }


@dataclass(frozen=True, slots=True)
class PodThroughput:
    """Pods scheduled over time.

    pods: those whose time of scheduling is known, of all that were observed (`seen`). per_s: from
    the first to the last; None for less than a second. peak_per_s: in the best bin. Bins lie side
    by side from the first pod on; a stretch across two may hold more. counts: in bins of `bin_s`,
    the first of which begins at `began_s`, seconds since the epoch.
    """

    pods: int
    per_s: float | None
    peak_per_s: float | None
    began_s: float
    bin_s: float
    counts: tuple[int, ...]
    seen: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "pods": self.pods,
            "seen": self.seen,
            "per_s": self.per_s,
            "peak_per_s": self.peak_per_s,
            "began_s": self.began_s,
            "bin_s": self.bin_s,
            "counts": list(self.counts),
        }


@dataclass(frozen=True, slots=True)
class LifecycleResult:
    """The result of a run.

    skipped: workloads left out as erroneous, by reason. courses: timelines of those that are shown.
    """

    until: str
    books: Books
    courses: tuple[WorkloadTimeline, ...]
    steps: tuple[PhaseDurations, ...]
    throughput: PodThroughput
    skipped: dict[str, int]
    thresholds: tuple[ThresholdResult, ...]
    verdict: Verdict

    def step(self, name: str) -> PhaseDurations | None:
        """A step by its name; None when nothing was measured of it."""
        return next((phase for phase in self.steps if phase.step.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "lifecycle",
            "until": self.until,
            "books": self.books.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "throughput": self.throughput.to_dict(),
            "skipped": self.skipped,
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
            "verdict": self.verdict.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class WorkloadSelection:
    """Which workloads of a run are shown.

    head, tail: keep the first, then the last so many. times: "watch" or "api", where both are
    known.
    """

    skip_errors: bool = True
    head: int | None = None
    tail: int | None = None
    times: str = "watch"


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
    shown, skipped = _shown(everything, view)
    measured = [_durations(phase, shown, view.times) for phase in PHASES]
    steps = tuple(phase for phase in measured if phase.spread.count)
    rate = throughput(everything)
    outcomes = judge(thresholds, steps, counts, rate.per_s)
    verdict = judged(counts, outcomes, tolerate_failures, until, interrupted)
    return LifecycleResult(until, counts, tuple(shown), steps, rate, skipped, outcomes, verdict)


def _shown(
    everything: Sequence[WorkloadTimeline], view: WorkloadSelection
) -> tuple[list[WorkloadTimeline], dict[str, int]]:
    skipped: Counter[str] = Counter()
    shown = []
    for workload in everything:
        reason = erroneous(workload)
        if reason:
            skipped[reason] += 1
        if not reason or not view.skip_errors:
            shown.append(workload)
    if view.head is not None:
        shown = shown[: view.head]
    if view.tail is not None:
        shown = shown[max(0, len(shown) - view.tail) :]
    return shown, dict(skipped)


def _durations(
    phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline], prefer: str
) -> PhaseDurations:
    """The durations of one step in all workloads."""
    seconds: list[float | None] = []
    sources: Counter[str] = Counter()
    clipped = 0
    for duration in durations(phase, timelines, prefer):
        if duration is None:
            seconds.append(None)
            continue
        seconds.append(duration.value_s)
        sources[str(duration.source)] += 1
        clipped += duration.clipped
    known = [each for each in seconds if each is not None]
    return PhaseDurations(
        phase,
        reference(phase, timelines),
        tuple(seconds),
        summary(known),
        dict(sources),
        len(seconds) - len(known),
        clipped,
    )


def throughput(timelines: Sequence[WorkloadTimeline]) -> PodThroughput:
    """Pods scheduled over time, in bins of whole seconds."""
    scheduled: list[float | None] = []
    for each in timelines:
        pods = each.workload.pods.values()
        scheduled += [at(pod.stamps.get("scheduled")) for pod in pods]
    times = sorted(time for time in scheduled if time is not None)
    if not times:
        return PodThroughput(0, None, None, 0.0, 1.0, (), len(scheduled))
    span = times[-1] - times[0]
    bin_s = float(max(1, -(-int(span + 1) // MOST_BINS)))
    counts = [0] * (int(span / bin_s) + 1)
    for time in times:
        counts[int((time - times[0]) / bin_s)] += 1
    per_s = None
    if span >= 1.0:
        per_s = (len(times) - 1) / span
    peak_per_s = max(counts) / bin_s
    return PodThroughput(
        len(times), per_s, peak_per_s, times[0], bin_s, tuple(counts), len(scheduled)
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

"""Everything that a run's stamps say, in one value, so that a stored run is summed up anew and always alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.lifecycle.books import Books, Fate, books, fate
from scaletest.analysis.lifecycle.judge import LifecycleThresholdResult, judge, judged
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
from scaletest.model.lifecycle import Submission, Workload
from scaletest.model.verdict import Verdict
from scaletest.model.wire import SCHEMA_VERSION

MOST_BINS = 120


@dataclass(frozen=True, slots=True)
class PhaseDurations:
    """One step of a run, values in s. missing: workloads (or pods) that have no value. clipped: a little below 0.

    values: in the order of submission, None where missing. sources: where the values come from.
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
            "step": self.step.name, "title": self.step.title, "since": self.since, "of_pods": self.step.of_pods,
            "seconds": self.spread.to_dict(), "sources": self.sources, "missing": self.missing, "clipped": self.clipped,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodThroughput:
    """Pods scheduled. pods: those whose time of scheduling is known, of all that were seen.

    per_s: from the first to the last; None for less than a second. peak_per_s: in the best bin.
    Bins lie side by side from the first pod on; a stretch across two may hold more.

    counts: in bins of `bin_s`, the first of which begins at `began_s`, seconds since the epoch.
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
            "pods": self.pods, "seen": self.seen, "per_s": self.per_s, "peak_per_s": self.peak_per_s,
            "began_s": self.began_s, "bin_s": self.bin_s, "counts": list(self.counts),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class LifecycleResult:
    """What a run found. skipped: workloads left out as erroneous, by reason. courses: those that are shown."""

    until: str
    books: Books
    courses: tuple[WorkloadTimeline, ...]
    steps: tuple[PhaseDurations, ...]
    throughput: PodThroughput
    skipped: dict[str, int]
    thresholds: tuple[LifecycleThresholdResult, ...]
    verdict: Verdict

    def step(self, name: str) -> PhaseDurations | None:
        """A step by its name; None when nothing was measured of it."""
        return next((one for one in self.steps if one.step.name == name), None)

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
            "thresholds": [one.to_dict() for one in self.thresholds],
            "verdict": self.verdict.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class WorkloadSelection:
    """What of a run is shown. head, tail: keep the first, then the last so many. times: watch or api."""

    skip_errors: bool = True
    head: int | None = None
    tail: int | None = None
    times: str = "watch"


def result(
    workloads: Iterable[Workload],
    submissions: Sequence[Submission],
    until: str,
    view: WorkloadSelection,
    *,
    planned: int = 0,
    thresholds: Sequence[str] = (),
    tolerate_failures: int = 0,
    interrupted: str = "",
) -> LifecycleResult:
    """Sum a run up. The books are of the whole run, whatever is shown."""
    everything = order(timeline(one) for one in workloads)
    found = books(everything, submissions, until, planned)
    shown, skipped = _shown(everything, view)
    steps = tuple(one for one in (_step(step, shown, view.times) for step in PHASES) if one.spread.count)
    rate = throughput(everything)
    told = judge(thresholds, steps, found, rate.per_s)
    return LifecycleResult(
        until,
        found,
        tuple(shown),
        steps,
        rate,
        skipped,
        told,
        judged(found, told, tolerate_failures, until, interrupted),
    )


def _shown(
    everything: Sequence[WorkloadTimeline], view: WorkloadSelection
) -> tuple[list[WorkloadTimeline], dict[str, int]]:
    skipped: Counter[str] = Counter()
    shown = []
    for one in everything:
        reason = erroneous(one)
        if reason:
            skipped[reason] += 1
        if not reason or not view.skip_errors:
            shown.append(one)
    if view.head is not None:
        shown = shown[: view.head]
    if view.tail is not None:
        shown = shown[max(0, len(shown) - view.tail) :]
    return shown, dict(skipped)


def _step(step: LifecyclePhase, courses: Sequence[WorkloadTimeline], prefer: str) -> PhaseDurations:
    found = list(durations(step, courses, prefer))
    values = tuple(one.value_s if one else None for one in found)
    return PhaseDurations(
        step,
        reference(step, courses),
        values,
        summary(value for value in values if value is not None),
        dict(Counter(str(one.source) for one in found if one)),
        sum(one is None for one in found),
        sum(one.clipped for one in found if one),
    )


def throughput(courses: Sequence[WorkloadTimeline]) -> PodThroughput:
    """Pods scheduled over time, in bins of whole seconds."""
    pods = [pod for one in courses for pod in one.workload.pods.values()]
    times = sorted(time for pod in pods if (time := at(pod.stamps.get("scheduled"))) is not None)
    if not times:
        return PodThroughput(0, None, None, 0.0, 1.0, (), len(pods))
    span = times[-1] - times[0]
    bin_s = float(max(1, -(-int(span + 1) // MOST_BINS)))
    counts = [0] * (int(span / bin_s) + 1)
    for time in times:
        counts[int((time - times[0]) / bin_s)] += 1
    per_s = (len(times) - 1) / span if span >= 1.0 else None
    return PodThroughput(len(times), per_s, max(counts) / bin_s, times[0], bin_s, tuple(counts), len(pods))


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

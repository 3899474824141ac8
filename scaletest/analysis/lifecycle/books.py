"""Counts of the workloads of a run: submitted = measured + pending + failed + lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from scaletest.analysis.lifecycle.phases import WorkloadTimeline
from scaletest.model.lifecycle import Submission

# Reasons that are listed, the most frequent ones.
MOST_REASONS = 20


class Fate(StrEnum):
    """State of a workload at the end of a run."""

    MEASURED = "measured"
    PENDING = "pending"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Books:
    """Counts of workloads.

    rejections, failures: how often each reason occurred. running: pending ones, all of whose pods
    started.
    """

    planned: int
    rejected: int
    submitted: int
    measured: int
    pending: int
    failed: int
    lost: int
    rejections: Mapping[str, int]
    failures: Mapping[str, int]
    running: int = 0

    @property
    def balanced(self) -> bool:
        """Whether nothing is missing from the sum."""
        return self.submitted == self.measured + self.pending + self.failed + self.lost

    @property
    def not_tried(self) -> int:
        """How many are planned and not submitted yet."""
        return max(0, self.planned - self.submitted - self.rejected)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "balanced": self.balanced, "not_tried": self.not_tried}


@dataclass(frozen=True, slots=True)
class LifecycleProgress:
    """How far a run is. submitted: accepted ones. running: pending ones that only have to end."""

    planned: int
    submitted: int
    rejected: int
    fates: Mapping[Fate, int]
    pods: int
    running: int = 0


def runs(timeline: WorkloadTimeline, until: str) -> bool:
    """Whether all its pods started, so that their end is all that is missing."""
    return until == "finished" and not {"started", "ready"}.isdisjoint(timeline.passed)


def fate(timeline: WorkloadTimeline, until: str) -> Fate:
    """The state of a workload. until: the milestone at which it counts as measured."""
    workload = timeline.workload
    if until in timeline.passed and not (until == "finished" and workload.failed):
        return Fate.MEASURED
    # of an observed workload perhaps only the pods are known
    pods = []
    if not workload.seen:
        pods = list(workload.pods.values())
    if workload.failed or (pods and all(pod.failed for pod in pods)):
        return Fate.FAILED
    if workload.gone or (pods and all(pod.gone for pod in pods)):
        return Fate.LOST
    return Fate.PENDING


def books(
    timelines: Sequence[WorkloadTimeline],
    submissions: Iterable[Submission],
    until: str,
    planned: int = 0,
) -> Books:
    """The counts of a run; without submissions (observing) all known workloads are submitted."""
    by_name = {timeline.workload.name: timeline for timeline in timelines}
    submitted = {submission.name: submission for submission in submissions}
    rejected = [submission for submission in submitted.values() if not submission.accepted]
    counted = list(by_name)
    if submitted:
        counted = [name for name, submission in submitted.items() if submission.accepted]
    fates: Counter[Fate] = Counter()
    failures: Counter[str] = Counter()
    running = 0
    for name in counted:
        if name not in by_name:
            fates[Fate.PENDING] += 1
            continue
        timeline = by_name[name]
        state = fate(timeline, until)
        fates[state] += 1
        running += state is Fate.PENDING and runs(timeline, until)
        if state is Fate.FAILED:
            failures[timeline.workload.reason or "no reason given"] += 1
    return Books(
        planned=planned or len(counted) + len(rejected),
        rejected=len(rejected),
        submitted=len(counted),
        measured=fates[Fate.MEASURED],
        pending=fates[Fate.PENDING],
        failed=fates[Fate.FAILED],
        lost=fates[Fate.LOST],
        rejections=_most_common(f"{each.status} {each.reason}".strip() for each in rejected),
        failures=dict(failures.most_common(MOST_REASONS)),
        running=running,
    )


def _most_common(reasons: Iterable[str]) -> dict[str, int]:
    return dict(Counter(reasons).most_common(MOST_REASONS))

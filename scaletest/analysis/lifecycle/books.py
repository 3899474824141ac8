"""Where every workload of a run is: submitted = measured + pending + failed + lost. Rejected ones never were there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from scaletest.analysis.lifecycle.phases import WorkloadTimeline
from scaletest.model.lifecycle import Submission


class Fate(StrEnum):
    """What became of a workload."""

    MEASURED = "measured"
    PENDING = "pending"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Books:
    """Counts of workloads. rejections: how often each reason was given. running: pending, all pods started."""

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
        """Planned and not submitted yet."""
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


def runs(one: WorkloadTimeline, until: str) -> bool:
    """Whether all its pods started, so that their end is all that is missing."""
    return until == "finished" and not {"started", "ready"}.isdisjoint(one.passed)


def fate(one: WorkloadTimeline, until: str) -> Fate:
    """until: the milestone at which a workload counts as measured."""
    if until in one.passed and not (until == "finished" and one.workload.failed):
        return Fate.MEASURED
    pods = one.workload.pods.values()
    # of an observed workload we may know the pods alone
    if one.workload.failed or (not one.workload.seen and pods and all(pod.failed for pod in pods)):
        return Fate.FAILED
    gone = one.workload.gone or (not one.workload.seen and pods and all(pod.gone for pod in pods))
    return Fate.LOST if gone else Fate.PENDING


def books(
    courses: Sequence[WorkloadTimeline], submissions: Iterable[Submission], until: str, planned: int = 0
) -> Books:
    """The books of a run. Without submissions (observing) every workload that was seen counts as submitted."""
    rows = {row.name: row for row in submissions}
    rejected = [row for row in rows.values() if not row.accepted]
    by_name = {one.workload.name: one for one in courses}
    counted = [name for name, row in rows.items() if row.accepted] if rows else list(by_name)
    fates: Counter[Fate] = Counter()
    failures: Counter[str] = Counter()
    running = 0
    for name in counted:
        one = by_name.get(name)
        found = fate(one, until) if one else Fate.PENDING
        fates[found] += 1
        running += found is Fate.PENDING and one is not None and runs(one, until)
        if found is Fate.FAILED and one:
            failures[one.workload.reason or "no reason given"] += 1
    return Books(
        planned=planned or len(counted) + len(rejected),
        rejected=len(rejected),
        submitted=len(counted),
        measured=fates[Fate.MEASURED],
        pending=fates[Fate.PENDING],
        failed=fates[Fate.FAILED],
        lost=fates[Fate.LOST],
        rejections=dict(Counter(f"{row.status} {row.reason}".strip() for row in rejected).most_common(20)),
        failures=dict(failures.most_common(20)),
        running=running,
    )

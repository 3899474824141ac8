"""Count the workloads of a run, and what became of them.

Each has one fate, so submitted = measured + pending + failed + lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from scaletest.lifecycle.judging.timeline import WorkloadTimeline
from scaletest.lifecycle.records import Submission
from scaletest.model.declared import Count
from scaletest.model.writing import Written
from scaletest.render.numbers import plural
from scaletest.stats.failures import count_alike

# Reasons that are listed, the most frequent ones.
MOST_REASONS = 20


class Fate(StrEnum):
    """State of a workload at the end of a run."""

    MEASURED = "measured"
    PENDING = "pending"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Books(Written):
    """Counts of workloads."""

    planned: Annotated[Count, "objects to submit"]
    rejected: Annotated[Count, "refused by the API server"]
    submitted: Annotated[Count, "measured + pending + failed + lost"]
    measured: Annotated[Count, "reached the milestone"]
    pending: Annotated[Count, "have not reached the milestone yet"]
    failed: Annotated[Count, "ended badly"]
    lost: Annotated[Count, "disappeared without a known end"]
    rejections: Annotated[Mapping[str, Count], "how often each reason was given"]
    failures: Annotated[Mapping[str, Count], "how often each reason of a failure was given"]

    @property
    def not_tried(self) -> Annotated[Count, "planned and not submitted yet"]:
        """The number of those that are planned and not submitted yet."""
        return max(0, self.planned - self.submitted - self.rejected)


@dataclass(frozen=True, slots=True)
class LifecycleProgress:
    """The progress of a run, in workloads."""

    planned: int
    submitted: int  # accepted ones
    rejected: int
    fates: Mapping[Fate, int]
    pods: int  # those that were seen

    def __str__(self) -> str:
        """Describe it in one line."""
        parts = [f"{self.submitted} of {self.planned} submitted"]
        parts += [f"{self.fates[fate]} {fate}" for fate in Fate if self.fates.get(fate)]
        if self.rejected:
            parts.append(f"{self.rejected} rejected")
        return ", ".join([*parts, f"{plural(self.pods, 'pod')} seen"])


def fate_of(timeline: WorkloadTimeline, until: str) -> Fate:
    """Return the state of a workload. until: the milestone at which it counts as measured."""
    workload = timeline.workload
    if until in timeline.passed and not (until == "finished" and workload.failed):
        return Fate.MEASURED
    # where the object itself was never seen, its pods tell
    pods = [] if workload.seen else workload.pods.values()
    if workload.failed or (pods and all(pod.failed for pod in pods)):
        return Fate.FAILED
    if workload.gone or (pods and all(pod.gone for pod in pods)):
        return Fate.LOST
    return Fate.PENDING


def count_workloads(
    timelines: Sequence[WorkloadTimeline],
    submissions: Sequence[Submission],
    until: str,
    planned: int = 0,
) -> Books:
    """Count the workloads of a run. submissions: one a workload.

    Where no submission is on record, all workloads that were seen count as submitted.
    """
    by_name = {timeline.workload.name: timeline for timeline in timelines}
    by_fate: dict[Fate, list[WorkloadTimeline]] = {fate: [] for fate in Fate}
    rejected = [submission for submission in submissions if not submission.accepted]
    submitted_names = [submission.name for submission in submissions if submission.accepted]
    if not submissions:
        submitted_names = list(by_name)
    unseen = 0  # they are pending
    for name in submitted_names:
        if name in by_name:
            by_fate[fate_of(by_name[name], until)].append(by_name[name])
        else:
            unseen += 1
    submitted = unseen + sum(map(len, by_fate.values()))
    rejections = count_alike(f"{refused.status} {refused.reason}".strip() for refused in rejected)
    failures = count_alike(
        timeline.workload.reason or "no reason given" for timeline in by_fate[Fate.FAILED]
    )
    return Books(
        planned=planned or submitted + len(rejected),
        rejected=len(rejected),
        submitted=submitted,
        measured=len(by_fate[Fate.MEASURED]),
        pending=len(by_fate[Fate.PENDING]) + unseen,
        failed=len(by_fate[Fate.FAILED]),
        lost=len(by_fate[Fate.LOST]),
        rejections=dict(rejections.most_common(MOST_REASONS)),
        failures=dict(failures.most_common(MOST_REASONS)),
    )

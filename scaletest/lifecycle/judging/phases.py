"""The steps of a workload from its submission to its end, how long each took, and the books.

A milestone of a workload with many pods is passed when as many pods as it needs at once have passed
it: a gang of eight is scheduled when its eighth pod is. Arrival stamps are preferred where both
ends have one; else the API's fields count where both ends have one. A time that the tester sent and
a field of the API make a mixed duration, which includes the difference of two clocks and is counted
as such.

Watches of two collections may deliver events in another order than they happened, and whole seconds
may too. So a negative duration above -1 s counts as 0 and is counted as clipped. One further below
is an error of the workload.

The books count the workloads of a run: submitted = measured + pending + failed + lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from itertools import chain
from typing import Annotated, NamedTuple

from scaletest.lifecycle.stamps import (
    POD_MILESTONES,
    LifecycleObject,
    LifecyclePod,
    Stamp,
    Submission,
    TimeSource,
)
from scaletest.model.declared import INNER, Count, called
from scaletest.model.writing import Written
from scaletest.render.numbers import plural
from scaletest.stats.failures import counted_alike

CLIPPED_S = -1.0
# Kinds whose own status says when they have finished: their pods may fail and be replaced, or be
# fewer at once than in all.
SAY_THEIR_END = (
    "Job",
    "JobSet",
    "PyTorchJob",
    "TFJob",
    "MPIJob",
    "XGBoostJob",
    "JAXJob",
    "RunaiJob",
)


@dataclass(frozen=True, slots=True)
class LifecyclePhase(Written):
    """A step from one milestone to another."""

    name: Annotated[str, called("step"), "its name"]
    title: Annotated[str, "its heading in times.csv"]
    event: Annotated[str, INNER]
    references: Annotated[
        tuple[str, ...],
        INNER,
        "milestones to measure from; the first that any workload of the run has counts.",
    ]
    total: Annotated[bool, INNER, "spans many steps."] = False
    of_pods: Annotated[bool, "whether there is a value for each pod, not for each workload"] = False


_PLACED = ("pod_group_created", "first_pod_created")
_BEGUN = ("submitted", "created", "first_pod_created")
PHASES: tuple[LifecyclePhase, ...] = (
    LifecyclePhase("accepted", "Submission Accepted", "accepted", ("submitted",)),
    LifecyclePhase("created", "Workload Creation", "created", ("submitted",)),
    LifecyclePhase("job_created", "Job Creation", "job_created", ("created",)),
    LifecyclePhase(
        "first_pod_created", "First Pod Creation", "first_pod_created", ("job_created", "created")
    ),
    LifecyclePhase(
        "last_pod_created", "Last Pod Creation", "last_pod_created", ("job_created", "created")
    ),
    LifecyclePhase(
        "pod_group_created", "Pod Group Creation", "pod_group_created", ("first_pod_created",)
    ),
    LifecyclePhase("decided", "Pod Scheduling Decision", "decided", _PLACED),
    LifecyclePhase("scheduled", "All Pods Scheduled", "scheduled", _PLACED),
    LifecyclePhase("evicted", "First Eviction", "evicted", _PLACED),
    LifecyclePhase("pvc_requested", "First PVC Bind Request", "pvc_requested", _PLACED),
    LifecyclePhase("pvc_bound", "First PVC Bind", "pvc_bound", ("pvc_requested",)),
    LifecyclePhase("claim_created", "All Device Claims Created", "claim_created", _PLACED),
    LifecyclePhase(
        "claim_allocated", "All Device Claims Allocated", "claim_allocated", ("claim_created",)
    ),
    LifecyclePhase("ready_to_start", "Sandbox Ready", "ready_to_start", ("scheduled",)),
    LifecyclePhase("initialized", "Initialized", "initialized", ("scheduled",)),
    LifecyclePhase("started", "Containers Started", "started", ("scheduled",)),
    LifecyclePhase("containers_ready", "Containers Ready", "containers_ready", ("scheduled",)),
    LifecyclePhase("ready", "Ready", "ready", ("scheduled",)),
    LifecyclePhase("finished", "Finished", "finished", ("started", "created")),
    LifecyclePhase("backend_job_created", "Backend Job Creation", "backend_job_created", _PLACED),
    LifecyclePhase("total_decided", "Total Pod Scheduling Decision", "decided", _BEGUN, total=True),
    LifecyclePhase("total_scheduled", "Total All Pods Scheduled", "scheduled", _BEGUN, total=True),
    LifecyclePhase("total_ready", "Total Ready", "ready", _BEGUN, total=True),
    LifecyclePhase("total_finished", "Total Finished", "finished", _BEGUN, total=True),
    LifecyclePhase(
        "total_backend_job_created",
        "Total Backend Job Creation",
        "backend_job_created",
        _BEGUN,
        total=True,
    ),
    LifecyclePhase("pod_scheduled", "A Pod Scheduled", "scheduled", ("created",), of_pods=True),
    LifecyclePhase(
        "pod_claim_allocated",
        "A Pod's Device Claims Allocated",
        "claim_allocated",
        ("claim_created",),
        of_pods=True,
    ),
    LifecyclePhase(
        "pod_started", "A Pod's Containers Started", "started", ("scheduled",), of_pods=True
    ),
    LifecyclePhase("pod_ready", "A Pod Ready", "ready", ("created",), of_pods=True),
)
BY_NAME: Mapping[str, LifecyclePhase] = {step.name: step for step in PHASES}
MILESTONE_TEXTS = {
    "submitted": "submission",
    "accepted": "acceptance",
    "created": "workload creation",
    "job_created": "job creation",
    "first_pod_created": "first pod creation",
    "last_pod_created": "last pod creation",
    "pod_group_created": "pod group creation",
    "decided": "scheduling decision",
    "scheduled": "scheduling of all pods",
    "evicted": "first eviction",
    "pvc_requested": "PVC bind request",
    "pvc_bound": "PVC bind",
    "claim_created": "creation of all device claims",
    "claim_allocated": "allocation of all device claims",
    "ready_to_start": "sandboxes ready",
    "initialized": "initialised",
    "started": "containers started",
    "containers_ready": "containers ready",
    "ready": "ready",
    "finished": "finished",
    "backend_job_created": "backend job creation",
}
_OF_A_POD = {
    "created": "creation",
    "scheduled": "scheduling",
    "claim_created": "first device claim",
    "claim_allocated": "allocation of its device claims",
    "started": "containers started",
    "ready": "ready",
}


class PhaseDuration(NamedTuple):
    """How long a step took, in s. clipped: it was a little below 0."""

    value_s: float
    source: TimeSource
    clipped: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadTimeline:
    """A workload with the times of its milestones, its own and those of its pods.

    passed: all that it has passed, also those without a time.
    """

    workload: LifecycleObject
    milestones: Mapping[str, Stamp]
    passed: frozenset[str]

    def stamp(self, name: str) -> Stamp | None:
        """The times of a milestone; None when nobody observed it."""
        return self.milestones.get(name)


def timeline(workload: LifecycleObject) -> WorkloadTimeline:
    """The timeline of a workload."""
    stamps = dict(workload.stamps)
    passed = set(stamps)
    needed = workload.expected or len(workload.pods)
    if workload.pods and needed:
        created = _pod_stamps(workload, "created")
        stamps["first_pod_created"] = _nth(created, 1)
        stamps["last_pod_created"] = _nth(created, needed)
        for name in (*POD_MILESTONES[1:], "decided"):
            own_end = name == "finished" and workload.kind in SAY_THEIR_END
            if own_end and name not in passed:
                continue
            reached = _pod_stamps(workload, name)
            needed_here = workload.expected or len(_pods_for(workload, name))
            if len(reached) >= needed_here > 0:
                passed.add(name)
            if stamps.get(name, Stamp()) == Stamp():
                stamps[name] = _nth(reached, needed_here)
        evicted = _pod_stamps(workload, "evicted")
        if evicted:
            stamps["evicted"] = _nth([*evicted, *filter(None, [stamps.get("evicted")])], 1)
    return WorkloadTimeline(
        workload,
        {name: stamp for name, stamp in stamps.items() if stamp != Stamp()},
        frozenset(passed),
    )


def _pod_stamps(workload: LifecycleObject, name: str) -> list[Stamp]:
    """The stamps of its pods for a milestone."""
    return [pod.stamps[name] for pod in _pods_for(workload, name) if name in pod.stamps]


def _pods_for(workload: LifecycleObject, name: str) -> list[LifecyclePod]:
    """The pods that count for a milestone. Pods that failed have not finished anything."""
    pods = list(workload.pods.values())
    if name == "finished":
        pods = [pod for pod in pods if not pod.failed]
    return pods


def _nth(stamps: Sequence[Stamp], number: int) -> Stamp:
    """By each source the time at which `number` pods had passed; None where fewer did."""

    def nth(read: Iterable[float | None]) -> float | None:
        times = sorted(time for time in read if time is not None)
        return times[number - 1] if 0 < number <= len(times) else None

    return Stamp(*map(nth, zip(*map(astuple, stamps), strict=True)))


def between(start: Stamp | None, end: Stamp | None) -> PhaseDuration | None:
    """The duration from one milestone to the other; None when an end is missing. Where both are
    known, arrivals count: the API's fields are whole seconds.
    """
    if start is None or end is None:
        return None
    of_event = start.event_s is not None or end.event_s is not None
    source = TimeSource.EVENT if of_event else TimeSource.API
    duration = _duration(start.watch_s, end.watch_s, TimeSource.WATCH)
    duration = duration or _duration(_field(start), _field(end), source)
    if duration is None:
        last = end.watch_s if _field(end) is None else _field(end)
        duration = _duration(at(start), last, TimeSource.MIXED)
    if duration is not None and CLIPPED_S < duration.value_s < 0:
        return PhaseDuration(0.0, duration.source, clipped=True)
    return duration


def _duration(first: float | None, last: float | None, source: TimeSource) -> PhaseDuration | None:
    """The time from one instant to another of a source; None where one is missing."""
    return None if first is None or last is None else PhaseDuration(last - first, source)


def _field(stamp: Stamp) -> float | None:
    return stamp.api_s if stamp.event_s is None else stamp.event_s


def reference(step: LifecyclePhase, courses: Sequence[WorkloadTimeline]) -> str:
    """The milestone from which a step is measured in this run: the first that any workload has."""
    for name in step.references:
        if step.of_pods or any(name in timeline.milestones for timeline in courses):
            return name
    return step.references[-1]


def phase_text(step: LifecyclePhase, since: str) -> str:
    """The name of a step for people: where it begins and where it ends."""
    if step.of_pods:
        return f"each pod: {_OF_A_POD[since]} → {_OF_A_POD[step.event]}"
    return f"{MILESTONE_TEXTS[since]} → {MILESTONE_TEXTS[step.event]}"


def duration(step: LifecyclePhase, timeline: WorkloadTimeline, since: str) -> PhaseDuration | None:
    """How long the step took for one workload."""
    return between(timeline.stamp(since), timeline.stamp(step.event))


def durations(
    phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline]
) -> list[PhaseDuration | None]:
    """The durations of every workload, or of every pod; None where one is missing."""
    if phase.of_pods:
        pods = chain.from_iterable(timeline.workload.pods.values() for timeline in timelines)
        start, end = phase.references[0], phase.event
        return [between(pod.stamps.get(start), pod.stamps.get(end)) for pod in pods]
    since = reference(phase, timelines)
    return [duration(phase, timeline, since) for timeline in timelines]


def erroneous(timeline: WorkloadTimeline) -> str:
    """Why a workload's times cannot be right; "" when they can.

    A pod was replaced, or time runs backwards.
    """
    group = between(timeline.stamp("first_pod_created"), timeline.stamp("pod_group_created"))
    if group is not None and group.value_s < 0:
        return "the pod group is older than the first pod"
    for name in ("decided", "scheduled", "ready", "finished"):
        total = between(timeline.stamp("submitted"), timeline.stamp(name))
        if total is not None and total.value_s < 0:
            return f"{MILESTONE_TEXTS[name]} came before the submission"
    return ""


def order(courses: Iterable[WorkloadTimeline]) -> list[WorkloadTimeline]:
    """Timelines by submission, else by creation, then by name, so that series have one order."""
    return sorted(courses, key=lambda timeline: (began(timeline) or 0.0, timeline.workload.name))


def began(timeline: WorkloadTimeline) -> float | None:
    """When it was submitted, else created: seconds since the epoch."""
    return at(next(filter(None, map(timeline.stamp, _BEGUN)), None))


def at(stamp: Stamp | None) -> float | None:
    """The best single time of a milestone."""
    if stamp is None:
        return None
    return _field(stamp) if stamp.watch_s is None else stamp.watch_s


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
    running: Annotated[Count, "pending ones that only have to end"] = 0

    @property
    def balanced(self) -> Annotated[bool, "whether the counts add up"]:
        """Whether nothing is missing from the sum."""
        return self.submitted == self.measured + self.pending + self.failed + self.lost

    @property
    def not_tried(self) -> Annotated[Count, "planned and not submitted yet"]:
        """How many are planned and not submitted yet."""
        return max(0, self.planned - self.submitted - self.rejected)


@dataclass(frozen=True, slots=True)
class LifecycleProgress:
    """How far a run is. submitted: accepted ones. running: pending ones that only have to end."""

    planned: int
    submitted: int
    rejected: int
    fates: Mapping[Fate, int]
    pods: int
    running: int = 0

    def __str__(self) -> str:
        """In one line."""
        parts = [f"{self.submitted} of {self.planned} submitted"]
        parts += [f"{self.fates[fate]} {fate}" for fate in Fate if self.fates.get(fate)]
        if self.rejected:
            parts.append(f"{self.rejected} rejected")
        return ", ".join([*parts, f"{plural(self.pods, 'pod')} seen"])


def runs(timeline: WorkloadTimeline, until: str) -> bool:
    """Whether all its pods started, so that their end is all that is missing."""
    return until == "finished" and not {"started", "ready"}.isdisjoint(timeline.passed)


def fate(timeline: WorkloadTimeline, until: str) -> Fate:
    """The state of a workload. until: the milestone at which it counts as measured."""
    workload = timeline.workload
    if until in timeline.passed and not (until == "finished" and workload.failed):
        return Fate.MEASURED
    # where the object itself was never seen, its pods tell
    pods = list(workload.pods.values()) if not workload.seen else []
    if workload.failed or (pods and all(pod.failed for pod in pods)):
        return Fate.FAILED
    if workload.gone or (pods and all(pod.gone for pod in pods)):
        return Fate.LOST
    return Fate.PENDING


def _by_fate(
    timelines: Iterable[WorkloadTimeline], until: str
) -> dict[Fate, list[WorkloadTimeline]]:
    by_fate: dict[Fate, list[WorkloadTimeline]] = {state: [] for state in Fate}
    for timeline in timelines:
        by_fate[fate(timeline, until)].append(timeline)
    return by_fate


def books(
    timelines: Sequence[WorkloadTimeline],
    submissions: Iterable[Submission],
    until: str,
    planned: int = 0,
) -> Books:
    """The counts of a run; where submissions are not on record, all known workloads count as
    submitted.
    """
    by_name = {timeline.workload.name: timeline for timeline in timelines}
    submitted = {submission.name: submission for submission in submissions}
    rejected = [submission for submission in submitted.values() if not submission.accepted]
    counted = list(by_name)
    if submitted:
        counted = [name for name, submission in submitted.items() if submission.accepted]
    rejections = counted_alike(f"{each.status} {each.reason}".strip() for each in rejected)
    known = [by_name[name] for name in counted if name in by_name]
    by_fate = _by_fate(known, until)
    failures = counted_alike(
        each.workload.reason or "no reason given" for each in by_fate[Fate.FAILED]
    )
    return Books(
        planned=planned or len(counted) + len(rejected),
        rejected=len(rejected),
        submitted=len(counted),
        measured=len(by_fate[Fate.MEASURED]),
        pending=len(by_fate[Fate.PENDING]) + len(counted) - len(known),
        failed=len(by_fate[Fate.FAILED]),
        lost=len(by_fate[Fate.LOST]),
        rejections=dict(rejections.most_common(MOST_REASONS)),
        failures=dict(failures.most_common(MOST_REASONS)),
        running=sum(runs(each, until) for each in by_fate[Fate.PENDING]),
    )

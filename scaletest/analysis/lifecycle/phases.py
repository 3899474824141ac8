"""The steps of a workload from its submission to its end, and how long each took.

A milestone of a workload with many pods is passed when as many pods as it needs at once have passed
it: a gang of eight is scheduled when its eighth pod is. Arrival stamps are preferred where both
ends have one; else the API's fields count where both ends have one. A time that the tester sent and
a field of the API make a mixed duration, which includes the difference of two clocks and is counted
as such.

Watches of two collections may deliver events in another order than they happened, and whole seconds
may too. So a negative duration above -1 s counts as 0 and is counted as clipped. One further below
is an error of the workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scaletest.model.lifecycle import (
    POD_MILESTONES,
    LifecycleObject,
    LifecyclePod,
    Stamp,
    TimeSource,
)

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
class LifecyclePhase:
    """A step from one milestone to another.

    references: milestones to measure from; the first that any workload of the run has counts.
    total: spans many steps. of_pods: a duration for each pod instead of for each workload.
    """

    name: str
    title: str
    event: str
    references: tuple[str, ...]
    total: bool = False
    of_pods: bool = False


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
            own = filter(None, [stamps.get("evicted")])
            stamps["evicted"] = _nth([*evicted, *own], 1)
    timed = {name: stamp for name, stamp in stamps.items() if stamp != Stamp()}
    return WorkloadTimeline(workload, timed, frozenset(passed))


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
    nth: list[float | None] = []
    for source in range(len(Stamp._fields)):
        read = [stamp[source] for stamp in stamps]
        times = sorted(time for time in read if time is not None)
        nth.append(None)
        if 0 < number <= len(times):
            nth[-1] = times[number - 1]
    return Stamp(*nth)


def between(start: Stamp | None, end: Stamp | None, prefer: str = "watch") -> PhaseDuration | None:
    """The duration from one milestone to the other; None when an end is missing.

    prefer: "watch" or "api", for milestones that have both times.
    """
    if start is None or end is None:
        return None
    duration = _by_watch(start, end) or _by_api(start, end)
    if prefer == "api":
        duration = _by_api(start, end) or _by_watch(start, end)
    duration = duration or _mixed(start, end)
    if duration is not None and CLIPPED_S < duration.value_s < 0:
        return PhaseDuration(0.0, duration.source, clipped=True)
    return duration


def _by_watch(start: Stamp, end: Stamp) -> PhaseDuration | None:
    if start.watch_s is None or end.watch_s is None:
        return None
    return PhaseDuration(end.watch_s - start.watch_s, TimeSource.WATCH)


def _by_api(start: Stamp, end: Stamp) -> PhaseDuration | None:
    first, last = _field(start), _field(end)
    if first is None or last is None:
        return None
    source = TimeSource.API
    if start.event_s is not None or end.event_s is not None:
        source = TimeSource.EVENT
    return PhaseDuration(last - first, source)


def _mixed(start: Stamp, end: Stamp) -> PhaseDuration | None:
    first, last = at(start), _field(end)
    if last is None:
        last = end.watch_s
    if first is None or last is None:
        return None
    return PhaseDuration(last - first, TimeSource.MIXED)


def _field(stamp: Stamp) -> float | None:
    if stamp.event_s is not None:
        return stamp.event_s
    return stamp.api_s


def reference(step: LifecyclePhase, courses: Sequence[WorkloadTimeline]) -> str:
    """The milestone from which a step is measured in this run: the first that any workload has."""
    for name in step.references:
        if step.of_pods or any(name in timeline.milestones for timeline in courses):
            return name
    return step.references[-1]


def since_text(step: LifecyclePhase, since: str) -> str:
    """The beginning of a step, in words."""
    if step.of_pods:
        return f"the pod's {_OF_A_POD[since]}"
    return MILESTONE_TEXTS[since]


def duration(
    step: LifecyclePhase, timeline: WorkloadTimeline, since: str, prefer: str = "watch"
) -> PhaseDuration | None:
    """How long the step took for one workload."""
    return between(timeline.stamp(since), timeline.stamp(step.event), prefer)


def pod_duration(
    step: LifecyclePhase, pod: LifecyclePod, prefer: str = "watch"
) -> PhaseDuration | None:
    """How long the step took for one pod."""
    return between(pod.stamps.get(step.references[0]), pod.stamps.get(step.event), prefer)


def durations(
    phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline], prefer: str = "watch"
) -> Iterator[PhaseDuration | None]:
    """The durations of every workload, or of every pod; None where one is missing."""
    if not phase.of_pods:
        since = reference(phase, timelines)
        yield from (duration(phase, timeline, since, prefer) for timeline in timelines)
        return
    for timeline in timelines:
        for pod in timeline.workload.pods.values():
            yield pod_duration(phase, pod, prefer)


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
    for name in _BEGUN:
        stamp = timeline.stamp(name)
        if stamp is not None:
            return at(stamp)
    return None


def at(stamp: Stamp | None) -> float | None:
    """The best single time of a milestone."""
    if stamp is None:
        return None
    if stamp.watch_s is not None:
        return stamp.watch_s
    return _field(stamp)

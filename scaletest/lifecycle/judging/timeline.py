"""The phases of a workload from its submission to its end, the times of its milestones, and the
durations between them.

A milestone of a workload with many pods is passed when as many pods as it needs at once have passed
it: a gang of eight is scheduled when its eighth pod is. Arrival stamps are preferred where both
ends have one; else the API's fields count where both ends have one. A time that the tester sent and
a field of the API make a mixed duration, which includes the difference of two clocks and is counted
as such.

Watches of two collections may deliver events in another order than they happened, and whole seconds
may too. So a negative duration above -1 s counts as 0 and is counted as clipped. One further below
is an error of the workload.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from typing import Annotated, NamedTuple

from scaletest.lifecycle.records import (
    POD_MILESTONES,
    LifecycleObject,
    LifecyclePod,
    Stamp,
    TimeSource,
)
from scaletest.model.declared import INNER, named_in_documents
from scaletest.model.writing import Written

# Milestones from which a phase is measured, the first that any workload has.
PLACED = ("pod_group_created", "first_pod_created")
BEGUN = ("submitted", "created", "first_pod_created")
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
OF_A_POD = {
    "created": "creation",
    "scheduled": "scheduling",
    "claim_created": "first device claim",
    "claim_allocated": "allocation of its device claims",
    "started": "containers started",
    "ready": "ready",
}
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
# Durations that cannot be negative: from a milestone to another, and what is wrong if it is.
IMPOSSIBLE = (
    ("first_pod_created", "pod_group_created", "the pod group is older than the first pod"),
    *(
        ("submitted", name, f"{MILESTONE_TEXTS[name]} came before the submission")
        for name in ("decided", "scheduled", "ready", "finished")
    ),
)


@dataclass(frozen=True, slots=True)
class LifecyclePhase(Written):
    """A step from one milestone to another."""

    name: Annotated[str, named_in_documents("step"), "its name"]
    title: Annotated[str, "its heading in times.csv"]
    event: Annotated[str, INNER]
    references: Annotated[
        tuple[str, ...],
        INNER,
        "milestones to measure from; the first that any workload of the run has counts.",
    ]
    total: Annotated[bool, INNER, "spans many steps."] = False
    of_pods: Annotated[bool, "whether there is a value for each pod, not for each workload"] = False


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
    LifecyclePhase("decided", "Pod Scheduling Decision", "decided", PLACED),
    LifecyclePhase("scheduled", "All Pods Scheduled", "scheduled", PLACED),
    LifecyclePhase("evicted", "First Eviction", "evicted", PLACED),
    LifecyclePhase("pvc_requested", "First PVC Bind Request", "pvc_requested", PLACED),
    LifecyclePhase("pvc_bound", "First PVC Bind", "pvc_bound", ("pvc_requested",)),
    LifecyclePhase("claim_created", "All Device Claims Created", "claim_created", PLACED),
    LifecyclePhase(
        "claim_allocated", "All Device Claims Allocated", "claim_allocated", ("claim_created",)
    ),
    LifecyclePhase("ready_to_start", "Sandbox Ready", "ready_to_start", ("scheduled",)),
    LifecyclePhase("initialized", "Initialized", "initialized", ("scheduled",)),
    LifecyclePhase("started", "Containers Started", "started", ("scheduled",)),
    LifecyclePhase("containers_ready", "Containers Ready", "containers_ready", ("scheduled",)),
    LifecyclePhase("ready", "Ready", "ready", ("scheduled",)),
    LifecyclePhase("finished", "Finished", "finished", ("started", "created")),
    LifecyclePhase("backend_job_created", "Backend Job Creation", "backend_job_created", PLACED),
    LifecyclePhase("total_decided", "Total Pod Scheduling Decision", "decided", BEGUN, total=True),
    LifecyclePhase("total_scheduled", "Total All Pods Scheduled", "scheduled", BEGUN, total=True),
    LifecyclePhase("total_ready", "Total Ready", "ready", BEGUN, total=True),
    LifecyclePhase("total_finished", "Total Finished", "finished", BEGUN, total=True),
    LifecyclePhase(
        "total_backend_job_created",
        "Total Backend Job Creation",
        "backend_job_created",
        BEGUN,
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


class PhaseDuration(NamedTuple):
    """How long a step took."""

    value_s: float
    source: TimeSource
    clipped: bool = False  # it was a little below 0


@dataclass(frozen=True, slots=True)
class WorkloadTimeline:
    """A workload with the times of its milestones, its own and those of its pods."""

    workload: LifecycleObject
    milestones: Mapping[str, Stamp]
    passed: frozenset[str]  # all milestones that it has passed, also those without a time

    def stamp(self, name: str) -> Stamp | None:
        """Return the times of a milestone; None when nobody observed it."""
        return self.milestones.get(name)


def timeline_of(workload: LifecycleObject) -> WorkloadTimeline:
    """Return the timeline of a workload."""
    stamps = dict(workload.stamps)
    passed = set(stamps)
    needed = workload.expected or len(workload.pods)
    if workload.pods and needed:
        created = _pod_stamps(workload, "created")
        stamps["first_pod_created"] = _nth(created, 1)
        stamps["last_pod_created"] = _nth(created, needed)
        for name in (*POD_MILESTONES[1:], "decided"):
            if name == "finished" and workload.kind in SAY_THEIR_END and name not in passed:
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
    """Return the stamps of its pods for a milestone."""
    return [pod.stamps[name] for pod in _pods_for(workload, name) if name in pod.stamps]


def _pods_for(workload: LifecycleObject, name: str) -> list[LifecyclePod]:
    """Return the pods that count for a milestone. Pods that failed have not finished anything."""
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


def duration_between(start: Stamp | None, end: Stamp | None) -> PhaseDuration | None:
    """Return the duration from one milestone to the other; None when an end is missing. Where both
    are known, arrivals count: the API's fields are whole seconds.
    """
    if start is None or end is None:
        return None
    of_event = start.event_s is not None or end.event_s is not None
    source = TimeSource.EVENT if of_event else TimeSource.API
    duration = _duration(start.watch_s, end.watch_s, TimeSource.WATCH)
    duration = duration or _duration(_field(start), _field(end), source)
    if duration is None:
        last = end.watch_s if _field(end) is None else _field(end)
        duration = _duration(best_time(start), last, TimeSource.MIXED)
    if duration is not None and CLIPPED_S < duration.value_s < 0:
        return PhaseDuration(0.0, duration.source, clipped=True)
    return duration


def _duration(first: float | None, last: float | None, source: TimeSource) -> PhaseDuration | None:
    """Return the time from one instant to another of a source; None where one is missing."""
    return None if first is None or last is None else PhaseDuration(last - first, source)


def _field(stamp: Stamp) -> float | None:
    return stamp.api_s if stamp.event_s is None else stamp.event_s


def reference_milestone(step: LifecyclePhase, courses: Sequence[WorkloadTimeline]) -> str:
    """Return the milestone from which a step is measured in this run: the first that any workload
    has.
    """
    for name in step.references:
        if step.of_pods or any(name in timeline.milestones for timeline in courses):
            return name
    return step.references[-1]


def phase_duration(
    step: LifecyclePhase, timeline: WorkloadTimeline, since: str
) -> PhaseDuration | None:
    """Return how long the step took for one workload."""
    return duration_between(timeline.stamp(since), timeline.stamp(step.event))


def phase_durations(
    phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline]
) -> list[PhaseDuration | None]:
    """Return the durations of every workload, or of every pod; None where one is missing."""
    if phase.of_pods:
        pods = chain.from_iterable(timeline.workload.pods.values() for timeline in timelines)
        start, end = phase.references[0], phase.event
        return [duration_between(pod.stamps.get(start), pod.stamps.get(end)) for pod in pods]
    since = reference_milestone(phase, timelines)
    return [phase_duration(phase, timeline, since) for timeline in timelines]


def find_error(timeline: WorkloadTimeline) -> str:
    """Say why a workload's times cannot be right; "" when they can.

    A pod was replaced, or time runs backwards.
    """
    for since, name, error in IMPOSSIBLE:
        duration = duration_between(timeline.stamp(since), timeline.stamp(name))
        if duration is not None and duration.value_s < 0:
            return error
    return ""


def start_time(timeline: WorkloadTimeline) -> float | None:
    """Return when it was submitted, else created: seconds since the epoch."""
    return best_time(next(filter(None, map(timeline.stamp, BEGUN)), None))


def best_time(stamp: Stamp | None) -> float | None:
    """Return the best single time of a milestone."""
    if stamp is None:
        return None
    return _field(stamp) if stamp.watch_s is None else stamp.watch_s

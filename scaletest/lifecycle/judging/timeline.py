"""Find the times at which a workload passed its milestones, and the durations of its phases.

A milestone of a workload with many pods is passed when as many pods as it needs at once have passed
it: a gang of eight is scheduled when its eighth pod is.
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

# Milestones from which a phase of scheduling, or of the whole way, is measured: the first of them
# that any workload has.
PODS_CREATED = ("pod_group_created", "first_pod_created")
WORKLOAD_BEGUN = ("submitted", "created", "first_pod_created")
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
# The times of a milestone that nobody saw being passed.
UNKNOWN = Stamp()
# The texts of a single pod's milestones.
POD_MILESTONE_TEXTS = {
    "created": "creation",
    "scheduled": "scheduling",
    "claim_created": "first device claim",
    "claim_allocated": "allocation of its device claims",
    "started": "containers started",
    "ready": "ready",
}
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
IMPOSSIBLE_ORDERS = (
    ("first_pod_created", "pod_group_created", "the pod group is older than the first pod"),
    *(
        ("submitted", name, f"{MILESTONE_TEXTS[name]} came before the submission")
        for name in ("decided", "scheduled", "ready", "finished")
    ),
)


@dataclass(frozen=True, slots=True)
class LifecyclePhase(Written):
    """A phase from one milestone to another."""

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
    LifecyclePhase("decided", "Pod Scheduling Decision", "decided", PODS_CREATED),
    LifecyclePhase("scheduled", "All Pods Scheduled", "scheduled", PODS_CREATED),
    LifecyclePhase("evicted", "First Eviction", "evicted", PODS_CREATED),
    LifecyclePhase("pvc_requested", "First PVC Bind Request", "pvc_requested", PODS_CREATED),
    LifecyclePhase("pvc_bound", "First PVC Bind", "pvc_bound", ("pvc_requested",)),
    LifecyclePhase("claim_created", "All Device Claims Created", "claim_created", PODS_CREATED),
    LifecyclePhase(
        "claim_allocated", "All Device Claims Allocated", "claim_allocated", ("claim_created",)
    ),
    LifecyclePhase("ready_to_start", "Sandbox Ready", "ready_to_start", ("scheduled",)),
    LifecyclePhase("initialized", "Initialized", "initialized", ("scheduled",)),
    LifecyclePhase("started", "Containers Started", "started", ("scheduled",)),
    LifecyclePhase("containers_ready", "Containers Ready", "containers_ready", ("scheduled",)),
    LifecyclePhase("ready", "Ready", "ready", ("scheduled",)),
    LifecyclePhase("finished", "Finished", "finished", ("started", "created")),
    LifecyclePhase(
        "backend_job_created", "Backend Job Creation", "backend_job_created", PODS_CREATED
    ),
    LifecyclePhase(
        "total_decided", "Total Pod Scheduling Decision", "decided", WORKLOAD_BEGUN, total=True
    ),
    LifecyclePhase(
        "total_scheduled", "Total All Pods Scheduled", "scheduled", WORKLOAD_BEGUN, total=True
    ),
    LifecyclePhase("total_ready", "Total Ready", "ready", WORKLOAD_BEGUN, total=True),
    LifecyclePhase("total_finished", "Total Finished", "finished", WORKLOAD_BEGUN, total=True),
    LifecyclePhase(
        "total_backend_job_created",
        "Total Backend Job Creation",
        "backend_job_created",
        WORKLOAD_BEGUN,
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
BY_NAME: Mapping[str, LifecyclePhase] = {phase.name: phase for phase in PHASES}


class PhaseDuration(NamedTuple):
    """The duration of a phase."""

    value_s: float
    source: TimeSource


@dataclass(frozen=True, slots=True)
class WorkloadTimeline:
    """A workload with the times of its milestones, its own and those of its pods."""

    workload: LifecycleObject
    milestones: Mapping[str, Stamp]
    passed: frozenset[str]  # all milestones that it has passed, also those without a time

    def stamp(self, name: str) -> Stamp | None:
        """Return the times of a milestone; None when it was not observed."""
        return self.milestones.get(name)


def timeline_of(workload: LifecycleObject) -> WorkloadTimeline:
    """Return the timeline of a workload."""
    stamps = dict(workload.stamps)
    passed = set(stamps)
    pods = list(workload.pods.values())
    if pods:
        created = _pod_stamps(pods, "created")
        stamps["first_pod_created"] = _nth_times(created, 1)
        stamps["last_pod_created"] = _nth_times(created, workload.expected or len(pods))
        for name in (*POD_MILESTONES[1:], "decided"):
            counted_pods = pods
            if name == "finished":
                if workload.kind in SAY_THEIR_END and name not in passed:
                    continue
                # pods that failed have not finished anything
                counted_pods = [pod for pod in pods if not pod.failed]
            reached = _pod_stamps(counted_pods, name)
            needed = workload.expected or len(counted_pods)
            if len(reached) >= needed > 0:
                passed.add(name)
            # the workload's own times come first
            if stamps.get(name, UNKNOWN) == UNKNOWN:
                stamps[name] = _nth_times(reached, needed)
        # one eviction is enough, of a pod or of the workload
        evicted = _pod_stamps(pods, "evicted")
        if "evicted" in workload.stamps:
            evicted.append(workload.stamps["evicted"])
        if evicted:
            stamps["evicted"] = _nth_times(evicted, 1)
    known = {name: stamp for name, stamp in stamps.items() if stamp != UNKNOWN}
    return WorkloadTimeline(workload, known, frozenset(passed))


def _pod_stamps(pods: Iterable[LifecyclePod], name: str) -> list[Stamp]:
    """Return the stamps of those pods that have passed a milestone."""
    return [pod.stamps[name] for pod in pods if name in pod.stamps]


def _nth_times(stamps: Sequence[Stamp], number: int) -> Stamp:
    """Return when `number` pods had passed, by each source; None where fewer did."""
    times = []
    for source_times in zip(*map(astuple, stamps), strict=True):
        ordered = sorted(time for time in source_times if time is not None)
        times.append(ordered[number - 1] if 0 < number <= len(ordered) else None)
    return Stamp(*times)


def duration_between(start: Stamp | None, end: Stamp | None) -> PhaseDuration | None:
    """Return the duration from one milestone to the other; None when an end is missing.

    Both ends are by arrival where they can be, else both by the API, whose fields are mostly whole
    seconds. Otherwise the duration is mixed: it includes the difference of two clocks.
    """
    if start is None or end is None:
        return None
    start_s, end_s = start.watch_s, end.watch_s
    source = TimeSource.WATCH
    if start_s is None or end_s is None:
        start_s, end_s = _api_time(start), _api_time(end)
        of_event = start.event_s is not None or end.event_s is not None
        source = TimeSource.EVENT if of_event else TimeSource.API
    if start_s is None or end_s is None:
        start_s = best_time(start)
        end_s = end.watch_s if end_s is None else end_s
        source = TimeSource.MIXED
    if start_s is None or end_s is None:
        return None
    # watches of two collections may deliver events in another order than they happened, and whole
    # seconds may too; a duration further below zero is an error of the workload
    if -1.0 < end_s - start_s < 0:
        return PhaseDuration(0.0, source)
    return PhaseDuration(end_s - start_s, source)


def _api_time(stamp: Stamp) -> float | None:
    return stamp.api_s if stamp.event_s is None else stamp.event_s


def reference_milestone(phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline]) -> str:
    """Return the milestone from which a phase is measured: the first that any workload has."""
    for name in phase.references:
        if phase.of_pods or any(name in timeline.milestones for timeline in timelines):
            return name
    return phase.references[-1]


def phase_durations(
    phase: LifecyclePhase, timelines: Sequence[WorkloadTimeline]
) -> list[PhaseDuration | None]:
    """Return the durations of every workload, or of every pod; None where one is missing."""
    if phase.of_pods:
        pods = chain.from_iterable(timeline.workload.pods.values() for timeline in timelines)
        start, end = phase.references[0], phase.event
        return [duration_between(pod.stamps.get(start), pod.stamps.get(end)) for pod in pods]
    since = reference_milestone(phase, timelines)
    return [
        duration_between(timeline.stamp(since), timeline.stamp(phase.event))
        for timeline in timelines
    ]


def find_error(timeline: WorkloadTimeline) -> str:
    """Say why a workload's times cannot be right; "" when they can.

    They cannot where a pod was replaced, or a clock was set back.
    """
    for since, name, error in IMPOSSIBLE_ORDERS:
        duration = duration_between(timeline.stamp(since), timeline.stamp(name))
        if duration is not None and duration.value_s < 0:
            return error
    return ""


def start_time(timeline: WorkloadTimeline) -> float | None:
    """Return when it was submitted, else created: seconds since the epoch."""
    return best_time(next(filter(None, map(timeline.stamp, WORKLOAD_BEGUN)), None))


def best_time(stamp: Stamp | None) -> float | None:
    """Return the best single time of a milestone: its arrival, else what the API says."""
    if stamp is None:
        return None
    return _api_time(stamp) if stamp.watch_s is None else stamp.watch_s

"""The steps of a workload's way, and how long each took.

A milestone of a workload with many pods is passed when as many pods as it needs at once have passed it: a gang of
eight is scheduled when its eighth pod is. Arrival stamps are preferred where both ends have one; else the API's fields
count where both ends have one; a time sent by us and a field of the API make a mixed duration, which holds the
difference of two clocks and is counted as such.

Watches of two collections may deliver in another order than things happened, and whole seconds may too. So a duration
above -1 s that is negative counts as 0 and is counted as clipped. One further below is an error of the workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scaletest.model.lifecycle import POD_MILESTONES, Pod, Source, Stamp, Workload

CLIPPED_S = -1.0
# Their own status says when they have finished: their pods may fail and be replaced, or be fewer at once than in all.
SAY_THEIR_END = ("Job", "JobSet", "PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "JAXJob", "RunaiJob")
PREFERENCES = ("watch", "api")


@dataclass(frozen=True, slots=True)
class LifecyclePhase:
    """From one milestone to another. references: the first one that anybody in the run has counts.

    total: of many steps. of_pods: a value for each pod instead of for each workload.
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
    LifecyclePhase("first_pod_created", "First Pod Creation", "first_pod_created", ("job_created", "created")),
    LifecyclePhase("last_pod_created", "Last Pod Creation", "last_pod_created", ("job_created", "created")),
    LifecyclePhase("pod_group_created", "Pod Group Creation", "pod_group_created", ("first_pod_created",)),
    LifecyclePhase("decided", "Pod Scheduling Decision", "decided", _PLACED),
    LifecyclePhase("scheduled", "All Pods Scheduled", "scheduled", _PLACED),
    LifecyclePhase("evicted", "First Eviction", "evicted", _PLACED),
    LifecyclePhase("pvc_requested", "First PVC Bind Request", "pvc_requested", _PLACED),
    LifecyclePhase("pvc_bound", "First PVC Bind", "pvc_bound", ("pvc_requested",)),
    LifecyclePhase("claim_created", "All Device Claims Created", "claim_created", _PLACED),
    LifecyclePhase("claim_allocated", "All Device Claims Allocated", "claim_allocated", ("claim_created",)),
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
        "total_backend_job_created", "Total Backend Job Creation", "backend_job_created", _BEGUN, total=True
    ),
    LifecyclePhase("pod_scheduled", "A Pod Scheduled", "scheduled", ("created",), of_pods=True),
    LifecyclePhase(
        "pod_claim_allocated", "A Pod's Device Claims Allocated", "claim_allocated", ("claim_created",), of_pods=True
    ),
    LifecyclePhase("pod_started", "A Pod's Containers Started", "started", ("scheduled",), of_pods=True),
    LifecyclePhase("pod_ready", "A Pod Ready", "ready", ("created",), of_pods=True),
)
BY_NAME: Mapping[str, LifecyclePhase] = {step.name: step for step in PHASES}
MILESTONE_TEXTS = {
    "submitted": "submission", "accepted": "acceptance", "created": "workload creation",
    "job_created": "job creation", "first_pod_created": "first pod creation", "last_pod_created": "last pod creation",
    "pod_group_created": "pod group creation", "decided": "scheduling decision", "scheduled": "scheduling of all pods",
    "evicted": "first eviction", "pvc_requested": "PVC bind request", "pvc_bound": "PVC bind",
    "claim_created": "creation of all device claims", "claim_allocated": "allocation of all device claims",
    "ready_to_start": "sandboxes ready", "initialized": "initialised", "started": "containers started",
    "containers_ready": "containers ready", "ready": "ready", "finished": "finished",
    "backend_job_created": "backend job creation",
}  # fmt: skip
_OF_A_POD = {"created": "creation", "scheduled": "scheduling", "claim_created": "first device claim"}


class PhaseDuration(NamedTuple):
    """How long a step took. clipped: it came out a little below 0."""

    value_s: float
    source: Source
    clipped: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadTimeline:
    """A workload with its milestones worked out, its own and those of its pods.

    passed: all that it has passed, also those for which nobody has a time.
    """

    workload: Workload
    milestones: Mapping[str, Stamp]
    passed: frozenset[str]

    def stamp(self, name: str) -> Stamp | None:
        """A milestone; None when nobody saw it."""
        return self.milestones.get(name)


def timeline(workload: Workload) -> WorkloadTimeline:
    """Work the milestones out."""
    pods = list(workload.pods.values())
    found = dict(workload.stamps)
    passed = set(found)
    wanted = workload.expected or len(pods)
    if pods and wanted:
        created = [pod.stamps["created"] for pod in pods if "created" in pod.stamps]
        found["first_pod_created"] = _nth(created, 1)
        found["last_pod_created"] = _nth(created, wanted)
        for name in (*POD_MILESTONES[1:], "decided"):
            if name == "finished" and workload.kind in SAY_THEIR_END and name not in passed:
                continue
            stamps, needed = _of_pods(workload, name)
            if len(stamps) >= needed > 0:
                passed.add(name)
            if found.get(name, Stamp()) == Stamp():
                found[name] = _nth(stamps, needed)
        evicted = [pod.stamps["evicted"] for pod in pods if "evicted" in pod.stamps]
        if evicted:
            found["evicted"] = _nth([*evicted, *filter(None, [found.get("evicted")])], 1)
    timed = {name: stamp for name, stamp in found.items() if stamp != Stamp()}
    return WorkloadTimeline(workload, timed, frozenset(passed))


def _of_pods(workload: Workload, name: str) -> tuple[list[Stamp], int]:
    """The stamps of its pods, and how many it needs. Pods that failed have not finished anything."""
    pods = [pod for pod in workload.pods.values() if not (name == "finished" and pod.failed)]
    return [pod.stamps[name] for pod in pods if name in pod.stamps], workload.expected or len(pods)


def _nth(stamps: Sequence[Stamp], number: int) -> Stamp:
    """By each source the time at which `number` of them had passed; None where fewer did."""
    values = []
    for source in range(len(Stamp._fields)):
        times = sorted(stamp[source] for stamp in stamps if stamp[source] is not None)  # type: ignore[type-var]
        values.append(times[number - 1] if 0 < number <= len(times) else None)
    return Stamp(*values)


def between(start: Stamp | None, end: Stamp | None, prefer: str = "watch") -> PhaseDuration | None:
    """How long from one to the other; None when an end is missing. prefer: watch or api, where both could tell."""
    if start is None or end is None:
        return None
    found = None
    for way in (_by_watch, _by_api) if prefer == "watch" else (_by_api, _by_watch):
        found = found or way(start, end)
    found = found or _mixed(start, end)
    if found is not None and CLIPPED_S < found.value_s < 0:
        return PhaseDuration(0.0, found.source, clipped=True)
    return found


def _by_watch(start: Stamp, end: Stamp) -> PhaseDuration | None:
    if start.watch_s is None or end.watch_s is None:
        return None
    return PhaseDuration(end.watch_s - start.watch_s, Source.WATCH)


def _by_api(start: Stamp, end: Stamp) -> PhaseDuration | None:
    first, last = _field(start), _field(end)
    if first is None or last is None:
        return None
    exact = start.event_s is not None or end.event_s is not None
    return PhaseDuration(last - first, Source.EVENT if exact else Source.API)


def _mixed(start: Stamp, end: Stamp) -> PhaseDuration | None:
    first = start.watch_s if start.watch_s is not None else _field(start)
    last = _field(end) if _field(end) is not None else end.watch_s
    return PhaseDuration(last - first, Source.MIXED) if first is not None and last is not None else None


def _field(stamp: Stamp) -> float | None:
    return stamp.event_s if stamp.event_s is not None else stamp.api_s


def reference(step: LifecyclePhase, courses: Sequence[WorkloadTimeline]) -> str:
    """From which milestone a step is measured in this run: the first that any workload has."""
    for name in step.references:
        if step.of_pods or any(name in one.milestones for one in courses):
            return name
    return step.references[-1]


def since_text(step: LifecyclePhase, since: str) -> str:
    """From when a step is measured, in words."""
    return f"the pod's {_OF_A_POD[since]}" if step.of_pods else MILESTONE_TEXTS[since]


def duration(step: LifecyclePhase, one: WorkloadTimeline, since: str, prefer: str = "watch") -> PhaseDuration | None:
    """How long the step took for one workload."""
    return between(one.stamp(since), one.stamp(step.event), prefer)


def pod_duration(step: LifecyclePhase, pod: Pod, prefer: str = "watch") -> PhaseDuration | None:
    """How long the step took for one pod."""
    return between(pod.stamps.get(step.references[0]), pod.stamps.get(step.event), prefer)


def durations(
    step: LifecyclePhase, courses: Sequence[WorkloadTimeline], prefer: str = "watch"
) -> Iterator[PhaseDuration | None]:
    """Of every workload, or of every pod; None where it is missing."""
    if step.of_pods:
        yield from (pod_duration(step, pod, prefer) for one in courses for pod in one.workload.pods.values())
    else:
        since = reference(step, courses)
        yield from (duration(step, one, since, prefer) for one in courses)


def erroneous(one: WorkloadTimeline) -> str:
    """Why a workload's times cannot be right; "" when they can: a pod was replaced, or time runs backwards."""
    group = between(one.stamp("first_pod_created"), one.stamp("pod_group_created"))
    if group is not None and group.value_s < 0:
        return "the pod group is older than the first pod"
    for name in ("decided", "scheduled", "ready", "finished"):
        total = between(one.stamp("submitted"), one.stamp(name))
        if total is not None and total.value_s < 0:
            return f"{MILESTONE_TEXTS[name]} came before the submission"
    return ""


def order(courses: Iterable[WorkloadTimeline]) -> list[WorkloadTimeline]:
    """By submission, else by creation; in equal times by name, so that all series have one order."""
    return sorted(courses, key=lambda one: (began(one) or 0.0, one.workload.name))


def began(one: WorkloadTimeline) -> float | None:
    """When it was submitted, else created: seconds since the epoch."""
    for name in _BEGUN:
        stamp = one.stamp(name)
        if stamp is not None:
            return stamp.watch_s if stamp.watch_s is not None else _field(stamp)
    return None


def at(stamp: Stamp | None) -> float | None:
    """The best single time of a milestone."""
    if stamp is None:
        return None
    return stamp.watch_s if stamp.watch_s is not None else _field(stamp)

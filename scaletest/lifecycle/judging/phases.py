"""The phases of a workload from its submission to its end, and their names for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import INNER, called
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

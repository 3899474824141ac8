"""Gang scheduling: admits all parts of a benchmark together, by Kueue or Volcano.

Kueue resumes the suspended JobSet that holds the Jobs of all parts and has its label. Volcano
schedules the PodGroup that all pods belong to. All pods are then created at once, so the measuring
one waits in an init container until the servers are ready, and its hosts file is complete when its
tool starts. Documents are pure; only `admission` calls the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.benchmarks import manifests
from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.pod_status import conditions, holds, seconds
from scaletest.cluster.objects import JOBS, Documents, Resource
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.kind import KUEUE, NO_GANG, VOLCANO
from scaletest.model.errors import UsageError

JOBSETS = Resource("JobSet", "/apis/jobset.x-k8s.io/v1alpha2", "jobsets", True)
POD_GROUPS = Resource("PodGroup", "/apis/scheduling.volcano.sh/v1beta1", "podgroups", True)
QUEUE_NAME, GROUP_NAME = "kueue.x-k8s.io/queue-name", "scheduling.k8s.io/group-name"
# A queue may be long, but waiting for it must end at some time.
ADMIT_S = 24 * 3600.0
# Where there is room, parts are admitted within this time; after it others may measure meanwhile.
AT_ONCE_S = 10.0
_NEEDS = {KUEUE: "Kueue and JobSet", VOLCANO: "Volcano"}


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether all parts may start.

    since_s: since when, in seconds since the epoch; 0 while they may not. message: why they wait.
    """

    since_s: float
    message: str = ""


def wanted(benchmark: Benchmark) -> bool:
    """Check whether the parts are admitted together."""
    return benchmark.spec.gang != NO_GANG


def admit_s(benchmark: Benchmark) -> float:
    """Return the seconds within which all parts must be admitted."""
    return float(benchmark.spec.queue_limit or ADMIT_S)


def wait_s(benchmark: Benchmark) -> float:
    """Return the seconds that pods may exist before they are used.

    Volcano's pods are created before there is a node for them, and a benchmark that is admitted may
    have to wait for its turn.
    """
    return max(ADMIT_S, admit_s(benchmark)) if wanted(benchmark) else 0.0


def absent(benchmark: Benchmark, reason: str) -> UsageError:
    """Build the error of a cluster that lacks the gang scheduler, or does not allow its use."""
    gang = benchmark.spec.gang
    return UsageError(
        f"gang {gang} needs {_NEEDS[gang]}: {reason}",
        hint=f"install it, set operator.gang={{{gang}}} in the chart, or leave gang out",
    )


def job_name(benchmark: Benchmark, role: str) -> str:
    """Return the name of a role's Job; a JobSet numbers the Jobs that it creates."""
    name = manifests.name_of(benchmark, role)
    return f"{name}-0" if benchmark.spec.gang == KUEUE else name


def holder(benchmark: Benchmark) -> Resource | None:
    """Return the kind of the object that admits the parts together; it has the benchmark's name."""
    return {KUEUE: JOBSETS, VOLCANO: POD_GROUPS}.get(benchmark.spec.gang)


def manifests_of(
    benchmark: Benchmark, owner: Document, image: str
) -> list[tuple[Resource, Document]]:
    """List the objects to create: the one that admits all parts, then Jobs outside of it."""
    layout = benchmark.kind.layout(benchmark.spec)
    roles = dict.fromkeys(part.role for part in layout)
    jobs = {role: _job(benchmark, role, owner, image) for role in roles}
    if benchmark.spec.gang == VOLCANO:
        return [
            (POD_GROUPS, _pod_group(benchmark, len(layout), owner)),
            *((JOBS, job) for job in jobs.values()),
        ]
    return [(JOBSETS, _job_set(benchmark, jobs, owner))]


def admission(benchmark: Benchmark, objects: Documents, namespace: str) -> Admission:
    """Read from the object that holds the parts together whether they are admitted."""
    resource = holder(benchmark)
    assert resource is not None
    document = objects.find(resource, namespace, benchmark.name)
    if document is None:
        return Admission(0.0, f"the {resource.kind} was deleted by somebody")
    known, since = conditions(document), document["metadata"]["creationTimestamp"]
    if benchmark.spec.gang == VOLCANO:
        is_running = document.get("status", {}).get("phase") == "Running"
        if not is_running and not holds(document, "Scheduled"):
            message = f"waits until Volcano has room for all {document['spec']['minMember']} pods"
            reason = known.get("Unschedulable", {}).get("message")
            return Admission(0.0, ": ".join(filter(None, (message, reason))))
    elif document["spec"].get("suspend"):
        queue = benchmark.spec.queue_name
        message = f"waits in queue {queue} until all parts are admitted; Kueue's Workload says why"
        return Admission(0.0, message)
    decisive = known.get("Scheduled" if benchmark.spec.gang == VOLCANO else "Suspended", {})
    return Admission(seconds(decisive.get("lastTransitionTime") or since))


def _job(benchmark: Benchmark, role: str, owner: Document, image: str) -> Document:
    """Build the Job of a role for pods that are all created at once."""
    job = manifests.job(benchmark, role, owner, image)
    template = job["spec"]["template"]
    job["spec"]["activeDeadlineSeconds"] += int(wait_s(benchmark))
    if role == benchmark.kind.measures:
        template["spec"].setdefault("initContainers", []).append(
            _wait(template["spec"]["containers"][0])
        )
    if benchmark.spec.gang == VOLCANO:
        for container in template["spec"]["containers"]:
            # Volcano counts pods that ask for nothing as placed, whether a node fits them or not
            container["resources"] = container["resources"] or {"requests": {"cpu": "1m"}}
        template["spec"]["schedulerName"] = "volcano"
        template["metadata"]["annotations"] |= {GROUP_NAME: benchmark.name}
    return job


def _wait(container: Document) -> Document:
    """Build the init container that waits until the operator lets the measurement begin."""
    file = f"{manifests.FOLDER}/{manifests.MEASURING}"
    return {
        "name": "wait",
        # the first process of a container ends at SIGTERM only where it handles it
        "command": ["sh", "-c", f"trap exit TERM; until [ -s {file} ]; do sleep 0.2; done"],
        "volumeMounts": [
            mount for mount in container["volumeMounts"] if mount["mountPath"] == manifests.FOLDER
        ],
        **{key: container[key] for key in ("image", "imagePullPolicy", "securityContext")},
    }


def _job_set(benchmark: Benchmark, jobs: Mapping[str, Document], owner: Document) -> Document:
    metadata = manifests.meta(benchmark, benchmark.name, owner)
    metadata["labels"] |= {QUEUE_NAME: benchmark.spec.queue_name}
    spec: dict[str, Any] = {
        "suspend": True,
        # the benchmark's own Service gives the pods their names
        "network": {"enableDNSHostnames": False},
        "successPolicy": {"operator": "Any", "targetReplicatedJobs": [benchmark.kind.measures]},
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": [
            {"name": role, "replicas": 1, "template": {"spec": job["spec"]}}
            for role, job in jobs.items()
        ],
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": spec,
    }


def _pod_group(benchmark: Benchmark, count: int, owner: Document) -> Document:
    spec: dict[str, Any] = {"minMember": count}
    if benchmark.spec.queue_name:
        spec["queue"] = benchmark.spec.queue_name
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": manifests.meta(benchmark, benchmark.name, owner),
        "spec": spec,
    }

"""All parts of a benchmark admitted together or not at all: by Kueue, Volcano or JobSet, where a cluster has them.

Kueue admits the JobSet that holds the Jobs of all parts; Volcano schedules the PodGroup that all pods belong to; a
JobSet without a queue leaves it to whatever else admits JobSets in that cluster. All pods are made at once then, so the
measuring one waits in an init container until the others are ready, and its hosts file is whole when its tool starts.
Documents are pure; only `admission` and `check` ask the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from scaletest.benchmarks import manifests
from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.said import seconds
from scaletest.cluster.connection import Busy, Missing, Refused
from scaletest.cluster.documents import JOBS, Resource
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.common import JOBSET, KUEUE, NO_GANG, VOLCANO
from scaletest.model.errors import Unreachable, UsageError

JOBSETS = Resource("JobSet", "/apis/jobset.x-k8s.io/v1alpha2", "jobsets", True)
POD_GROUPS = Resource("PodGroup", "/apis/scheduling.volcano.sh/v1beta1", "podgroups", True)
# The newer first; a cluster serves one of them or both.
_APIS = [f"/apis/kueue.x-k8s.io/{one}" for one in ("v1beta2", "v1beta1")]
LOCAL_QUEUES = [Resource("LocalQueue", api, "localqueues", True) for api in _APIS]
WORKLOADS = [Resource("Workload", api, "workloads", True) for api in _APIS]
QUEUE_NAME, GROUP_NAME = "kueue.x-k8s.io/queue-name", "scheduling.k8s.io/group-name"
JOB_UID = "kueue.x-k8s.io/job-uid"
# A queue may be long, but is not waited for without end.
ADMIT_S = 24 * 3600.0
# Where there is room it is given within this time; else others may measure meanwhile.
AT_ONCE_S = 10.0
_NEEDS = {KUEUE: "Kueue and JobSet", VOLCANO: "Volcano", JOBSET: "JobSet"}


class Finds(Protocol):
    """What is used of cluster.documents.Documents."""

    def find(self, what: Resource, namespace: str, name: str) -> Document | None: ...
    def list(self, what: Resource, namespace: str = "", labels: str = "", fields: str = "") -> list[Document]: ...


@dataclass(frozen=True, slots=True)
class Admission:
    """Since when all parts may start, in seconds since the epoch; 0 while they may not, and what is waited for."""

    since_s: float
    message: str = ""


def wanted(benchmark: Benchmark) -> bool:
    """Whether its parts are admitted together."""
    return benchmark.spec.gang != NO_GANG


def admit_s(benchmark: Benchmark) -> float:
    """Seconds by which all parts must be admitted."""
    return float(benchmark.spec.queue_limit or ADMIT_S)


def wait_s(benchmark: Benchmark) -> float:
    """Seconds that its pods may be there before they are used.

    Volcano's are made before there is a place for them, and one that is admitted may have to wait for its turn.
    """
    return max(ADMIT_S, admit_s(benchmark)) if wanted(benchmark) else 0.0


def absent(benchmark: Benchmark, why: str) -> UsageError:
    """The error of a cluster that lacks what admits, or does not let us use it."""
    gang = benchmark.spec.gang
    return UsageError(
        f"gang {gang} needs {_NEEDS[gang]}: {why}",
        hint=f"install it, set operator.gang={{{gang}}} in the chart, or leave gang out",
    )


def check(benchmark: Benchmark, objects: Finds, namespace: str) -> None:
    """Raises UsageError when there is no such queue, since Kueue would wait for one for ever."""
    name = benchmark.spec.queue_name
    if benchmark.spec.gang == KUEUE and not any(objects.find(what, namespace, name) for what in LOCAL_QUEUES):
        raise absent(benchmark, f"there is no LocalQueue {name} in namespace {namespace}")


def job_name(benchmark: Benchmark, role: str) -> str:
    """Of the Job of a role; a JobSet numbers those that it makes."""
    name = manifests.name_of(benchmark, role)
    return f"{name}-0" if benchmark.spec.gang in (KUEUE, JOBSET) else name


def holder(benchmark: Benchmark) -> Resource | None:
    """The kind of the object, named as the benchmark, that holds its parts together."""
    return {KUEUE: JOBSETS, JOBSET: JOBSETS, VOLCANO: POD_GROUPS}.get(benchmark.spec.gang)


def made(benchmark: Benchmark, owner: Document, image: str) -> list[tuple[Resource, Document]]:
    """What is made of a benchmark, in this order: what holds the parts together, and their Jobs where it does not."""
    layout = benchmark.kind.layout(benchmark.spec)
    roles = dict.fromkeys(part.role for part in layout)
    jobs = {role: _job(benchmark, role, owner, image) for role in roles}
    if benchmark.spec.gang == VOLCANO:
        return [(POD_GROUPS, _pod_group(benchmark, len(layout), owner)), *((JOBS, job) for job in jobs.values())]
    return [(JOBSETS, _job_set(benchmark, jobs, owner))]


def admission(benchmark: Benchmark, objects: Finds, namespace: str) -> Admission:
    """How far what holds the parts together is."""
    what = holder(benchmark)
    assert what is not None
    found = objects.find(what, namespace, benchmark.name)
    if found is None:
        return Admission(0.0, f"the {what.kind} was deleted by somebody")
    conditions = {one["type"]: one for one in found.get("status", {}).get("conditions") or ()}
    if benchmark.spec.gang == VOLCANO:
        return _scheduled(found, conditions)
    if found["spec"].get("suspend"):
        queue = f" in queue {benchmark.spec.queue_name}" if benchmark.spec.queue_name else ""
        why = _kueues(objects, namespace, found) if benchmark.spec.gang == KUEUE else ""
        return Admission(0.0, f"waits{queue} until all parts are admitted" + (f": {why}" if why else ""))
    resumed = conditions.get("Suspended", {})
    return Admission(seconds(resumed.get("lastTransitionTime") or found["metadata"]["creationTimestamp"]))


def _kueues(objects: Finds, namespace: str, job_set: Document) -> str:
    """Kueue's word on why it does not admit a JobSet; "" when it has none, or nobody may ask for it."""
    for what in WORKLOADS:
        try:
            rows = objects.list(what, namespace, f"{JOB_UID}={job_set['metadata']['uid']}")
        except Busy:
            raise
        except (Missing, Refused, Unreachable):
            continue
        told = [one for row in rows for one in row.get("status", {}).get("conditions") or ()]
        return next((str(one.get("message", "")) for one in told if one["type"] == "QuotaReserved"), "")
    return ""


def _scheduled(group: Document, conditions: Mapping[str, Document]) -> Admission:
    """Volcano's word: a group whose pods have their nodes is Running, or has the condition Scheduled."""
    told = conditions.get("Scheduled", {})
    if told.get("status") == "True" or group.get("status", {}).get("phase") == "Running":
        return Admission(seconds(told.get("lastTransitionTime") or group["metadata"]["creationTimestamp"]))
    why = conditions.get("Unschedulable", {}).get("message", "")
    count = group["spec"]["minMember"]
    return Admission(0.0, f"waits until Volcano has a place for all {count} pods" + (f": {why}" if why else ""))


def _job(benchmark: Benchmark, role: str, owner: Document, image: str) -> Document:
    """The Job of a role, as it is where all pods are made at once."""
    parts = [part for part in benchmark.kind.layout(benchmark.spec) if part.role == role]
    job = manifests.job(benchmark, parts, owner, image)
    template = job["spec"]["template"]
    job["spec"]["activeDeadlineSeconds"] += int(wait_s(benchmark))
    if role == benchmark.kind.measures:
        template["spec"].setdefault("initContainers", []).append(_wait(template["spec"]["containers"][0]))
    if benchmark.spec.gang == VOLCANO:
        template["spec"]["schedulerName"] = "volcano"
        template["metadata"]["annotations"] |= {GROUP_NAME: benchmark.name}
    return job


def _wait(container: Document) -> Document:
    """Waits until the operator has written that it is its turn and all servers are ready."""
    file = f"{manifests.FOLDER}/{manifests.MEASURING}"
    mounts = [one for one in container["volumeMounts"] if one["mountPath"] == manifests.FOLDER]
    same = {key: container[key] for key in ("image", "imagePullPolicy", "securityContext")}
    return {"name": "wait", "command": ["sh", "-c", f"until [ -s {file} ]; do sleep 0.2; done"],
            "volumeMounts": mounts, **same}  # fmt: skip


def _job_set(benchmark: Benchmark, jobs: Mapping[str, Document], owner: Document) -> Document:
    metadata = manifests.meta(benchmark, benchmark.name, owner)
    spec: dict[str, Any] = {
        # our Service gives the names
        "network": {"enableDNSHostnames": False},
        "successPolicy": {"operator": "Any", "targetReplicatedJobs": [benchmark.kind.measures]},
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": [
            {"name": role, "replicas": 1, "template": {"spec": job["spec"]}} for role, job in jobs.items()
        ],
    }
    if benchmark.spec.gang == KUEUE:
        metadata["labels"] |= {QUEUE_NAME: benchmark.spec.queue_name}
        spec["suspend"] = True
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}


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

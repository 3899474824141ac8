"""Let Volcano place all parts of a benchmark together, or none: gang scheduling.

It schedules the PodGroup that all pods belong to. These are created at once, so the measuring one
waits in an init container until the servers are ready, and its hosts file is complete when its tool
starts. Documents are pure; only `read_admission` calls the API server.
"""

from typing import Any

from scaletest.benchmarks.documents import Benchmark
from scaletest.benchmarks.kinds.spec import VOLCANO
from scaletest.benchmarks.objects import manifests, pod_status
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import Resource

POD_GROUPS = Resource("PodGroup", "/apis/scheduling.volcano.sh/v1beta1", "podgroups", True)

# A queue may be long, but waiting for it must end at some time.
ADMISSION_LIMIT_S = 24 * 3600.0
# Where there is room, parts are admitted within this time; after it others may measure meanwhile.
AT_ONCE_S = 10.0


def is_wanted(benchmark: Benchmark) -> bool:
    """Check whether the parts are admitted together."""
    return benchmark.spec.gang == VOLCANO


def admission_limit_s(benchmark: Benchmark) -> float:
    """Return the seconds within which all parts must be admitted."""
    return float(benchmark.spec.queue_limit or ADMISSION_LIMIT_S)


def longest_wait_s(benchmark: Benchmark) -> float:
    """Return the seconds that pods may exist before they are used.

    Pods of a gang are created before there is a node for them, and a benchmark that is admitted may
    have to wait for its turn.
    """
    return max(ADMISSION_LIMIT_S, admission_limit_s(benchmark)) if is_wanted(benchmark) else 0.0


def pod_group(benchmark: Benchmark, owner: Document) -> Document:
    """Build the PodGroup of all pods, which has the benchmark's name."""
    spec: dict[str, Any] = {"minMember": len(benchmark.kind.layout(benchmark.spec))}
    if benchmark.spec.queue_name:
        spec["queue"] = benchmark.spec.queue_name
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": manifests.owned_metadata(benchmark, benchmark.name, owner),
        "spec": spec,
    }


def make_jobs(benchmark: Benchmark, owner: Document, image: str) -> list[Document]:
    """Build the Jobs of all roles, for pods that are all created at once."""
    jobs = []
    for role in dict.fromkeys(part.role for part in benchmark.kind.layout(benchmark.spec)):
        job = manifests.job(benchmark, role, owner, image)
        template = job["spec"]["template"]
        (container,) = template["spec"]["containers"]
        job["spec"]["activeDeadlineSeconds"] += int(longest_wait_s(benchmark))
        if role == benchmark.kind.measures:
            # waits until the operator lets the measurement begin
            begin = f"[ -s {manifests.FOLDER}/{manifests.MEASURING} ]"
            waiting = {
                "name": "wait",
                # the first process of a container ends at SIGTERM only where it handles it
                "command": ["sh", "-c", f"trap exit TERM; until {begin}; do sleep 0.2; done"],
                "volumeMounts": [
                    mount
                    for mount in container["volumeMounts"]
                    if mount["mountPath"] == manifests.FOLDER
                ],
                **{key: container[key] for key in ("image", "imagePullPolicy", "securityContext")},
            }
            template["spec"].setdefault("initContainers", []).append(waiting)
        # Volcano counts pods that ask for nothing as placed, whether a node fits them or not
        container["resources"] = container["resources"] or {"requests": {"cpu": "1m"}}
        template["spec"]["schedulerName"] = "volcano"
        template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = benchmark.name
        jobs.append(job)
    return jobs


def read_admission(
    benchmark: Benchmark, objects: ObjectClient, namespace: str
) -> tuple[float, str]:
    """Read from the PodGroup since when all parts may start, and why they wait if they may not.

    The time is in seconds since the epoch, 0 while they wait.
    """
    group = objects.find(POD_GROUPS, namespace, benchmark.name)
    if group is None:
        return 0.0, "the PodGroup was deleted by somebody"
    conditions = pod_status.conditions_by_type(group)
    is_running = group.get("status", {}).get("phase") == "Running"
    if not is_running and not pod_status.has_condition(group, "Scheduled"):
        message = f"waits until Volcano has room for all {group['spec']['minMember']} pods"
        reason = conditions.get("Unschedulable", {}).get("message")
        return 0.0, ": ".join(filter(None, (message, reason)))
    admitted = conditions.get("Scheduled", {}).get("lastTransitionTime")
    return pod_status.parse_time_s(admitted or group["metadata"]["creationTimestamp"]), ""

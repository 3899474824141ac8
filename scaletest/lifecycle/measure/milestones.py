"""Read from an object to which workload it belongs, and which milestones it shows as passed.

Times are epoch seconds, and None where a field is missing.
"""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from scaletest.lifecycle.kinds import WORKLOAD_LABEL
from scaletest.model.times import parse_time

# Labels that name the workload, in the order in which they are trusted.
LABELS = (
    WORKLOAD_LABEL,
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "release",
    "workloadName",
)
_HASH = "pod-template-hash"
# The name of a workload of ours, from which controllers make the names of what they create.
_OUR_NAME = re.compile(r"j-[0-9a-f]{6}")
# A pod's condition -> the milestone that it stands for when it is True.
CONDITIONS = {
    "PodScheduled": "scheduled",
    "PodReadyToStartContainers": "ready_to_start",
    "Initialized": "initialized",
    "ContainersReady": "containers_ready",
    "Ready": "ready",
    "DisruptionTarget": "evicted",
}


def workload_of(body: Mapping[str, Any], tracked_names: Container[str]) -> str:
    """Return the name of the workload to which an object belongs; "" for no tracked one.

    Our own label says it where we could put one. Else the labels of controllers do, and then the
    owner, or the object itself, whose name a controller has made of the workload's.
    """
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    candidates = [str(labels[label]) for label in LABELS if label in labels]
    for owner in metadata.get("ownerReferences") or ():
        name = str(owner["name"])
        if owner["kind"] == "ReplicaSet" and labels.get(_HASH):
            name = name.removesuffix(f"-{labels[_HASH]}")  # the name of its Deployment
        candidates += [name, *_OUR_NAME.findall(name)]
    own_name = str(metadata["name"])
    candidates += [own_name, *_OUR_NAME.findall(own_name)]
    return next((name for name in candidates if name in tracked_names), "")


def workload_of_event(
    body: Mapping[str, Any], tracked_names: Container[str], pod_owners: Mapping[str, str]
) -> str:
    """Return the name of the workload that an Event is about; "" for no tracked one.

    pod_owners: workloads by the uids of their pods, for those that were seen.
    """
    regarding = body.get("involvedObject") or {}
    uid, named = str(regarding.get("uid", "")), str(regarding.get("name", ""))
    if uid in pod_owners:
        return pod_owners[uid]
    return next((name for name in (named, *_OUR_NAME.findall(named)) if name in tracked_names), "")


def creation_time(body: Mapping[str, Any]) -> float | None:
    """Return when the API server made the object."""
    return parse_time(body["metadata"].get("creationTimestamp"))


def pod_milestones(body: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the milestones that a pod has passed, each with its time or None."""
    status = body.get("status") or {}
    passed = {"created": creation_time(body)}
    for condition in status.get("conditions") or ():
        name, is_true = condition.get("type"), condition.get("status") == "True"
        time_s = parse_time(condition.get("lastTransitionTime"))
        if name in CONDITIONS and is_true:
            passed[CONDITIONS[name]] = time_s
        if name == "PodScheduled" and (is_true or condition.get("reason")):
            # a recorded "unschedulable" is a decision as well
            passed["decided"] = time_s
    # it has started when all its containers have, and finished when the last one has
    containers = (body.get("spec") or {}).get("containers", ())
    states = [row.get("state") or {} for row in status.get("containerStatuses") or ()]
    ends = [state["terminated"] for state in states if state.get("terminated")]
    runs = [state["running"] for state in states if state.get("running")] + ends
    if len(runs) == len(states) >= max(1, len(containers)):
        passed["started"] = latest_time([parse_time(run.get("startedAt")) for run in runs])
    if status.get("phase") in ("Succeeded", "Failed"):
        passed["finished"] = latest_time([parse_time(end.get("finishedAt")) for end in ends])
    metadata = body["metadata"]
    gone_s = parse_time(metadata.get("deletionTimestamp"))
    if metadata.get("deletionTimestamp"):
        # the timestamp is when it shall be gone, its grace period included
        grace_s = metadata.get("deletionGracePeriodSeconds") or 0
        passed["deleted"] = gone_s - grace_s if gone_s is not None else None
    return passed


def latest_time(times: Sequence[float | None]) -> float | None:
    """Return the last of these times; None where one of them is unknown, or there is none."""
    known_times = [time for time in times if time is not None]
    return max(known_times) if len(known_times) == len(times) and known_times else None

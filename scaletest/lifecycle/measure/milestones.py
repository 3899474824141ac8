"""What one object says: whose it is, and the times in its fields as epoch seconds.

Pure. A field that is not there is no time.

A pod, a claim, a pod group or an event belongs to a workload. Our own label says it where we could
put one. Else the labels that controllers give, in a fixed order, and then the owner, whose name a
controller has made of the workload's. Only known names count; what belongs to nobody known is
foreign, counted and left alone.
"""

import math
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from scaletest.lifecycle.kinds import WORKLOAD_LABEL
from scaletest.model.times import parse_time

LABELS = (
    WORKLOAD_LABEL,
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "release",
    "workloadName",
)
_HASH = "pod-template-hash"
_CLAIM = re.compile(r"j-[0-9a-f]{6}")
# A pod's condition -> the milestone that it stands for when it is True.
CONDITIONS = {
    "PodScheduled": "scheduled",
    "PodReadyToStartContainers": "ready_to_start",
    "Initialized": "initialized",
    "ContainersReady": "containers_ready",
    "Ready": "ready",
    "DisruptionTarget": "evicted",
}


def workload_of(body: Mapping[str, Any], known: Container[str]) -> str:
    """Return the workload's name; "" for a foreign object."""
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    candidates = [str(labels[label]) for label in LABELS if label in labels]
    for owner in metadata.get("ownerReferences") or ():
        name = str(owner["name"])
        if owner["kind"] == "ReplicaSet" and labels.get(_HASH):
            name = name.removesuffix(f"-{labels[_HASH]}")
        # a pod's ephemeral claim, or what a controller made between it and the workload: its name
        # begins with the workload's
        candidates += [name, *_CLAIM.findall(name)]
    candidates += [str(metadata["name"]), *_CLAIM.findall(str(metadata["name"]))]
    return next((name for name in candidates if name in known), "")


def workload_of_event(
    body: Mapping[str, Any], known: Container[str], owners: Mapping[str, str]
) -> str:
    """Whose an Event is. owners: uid of an object -> its workload, for those that were seen."""
    regarding = body.get("involvedObject") or {}
    uid, named = str(regarding.get("uid", "")), str(regarding.get("name", ""))
    if uid in owners:
        return owners[uid]
    return next((name for name in (named, *_CLAIM.findall(named)) if name in known), "")


def creation_time(body: Mapping[str, Any]) -> float | None:
    """Return when the API server made the object."""
    return parse_time(body["metadata"].get("creationTimestamp"))


def pod_milestones(body: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the milestones that a pod's object shows as passed, each with its time; None for one
    passed at no said time.
    """
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
    # the states of its containers
    states = [row.get("state") or {} for row in status.get("containerStatuses") or ()]
    begun = list(
        filter(None, (state.get("running") or state.get("terminated") for state in states))
    )
    if len(begun) == len(states) >= max(1, len((body.get("spec") or {}).get("containers", ()))):
        passed["started"] = latest_time([parse_time(run.get("startedAt")) for run in begun])
    if status.get("phase") in ("Succeeded", "Failed"):
        terminated = filter(None, (state.get("terminated") for state in states))
        passed["finished"] = latest_time([parse_time(end.get("finishedAt")) for end in terminated])
    metadata = body["metadata"]
    if metadata.get("deletionTimestamp"):
        # the timestamp is when it shall be gone, its grace period included
        asked = parse_time(metadata["deletionTimestamp"])
        grace_s = metadata.get("deletionGracePeriodSeconds") or 0
        passed["deleted"] = asked - grace_s if asked is not None else None
    return passed


def latest_time(times: Sequence[float | None]) -> float | None:
    """Return the last of these times; None where one of them is not known, or there is none."""
    known = [time for time in times if time is not None]
    return max(known) if len(known) == len(times) and known else None


def event_time(body: Mapping[str, Any]) -> float | None:
    """Return an Event's time in microseconds, where it has one."""
    time_s = parse_time(body.get("eventTime"))
    return time_s if time_s is not None and math.isfinite(time_s) else None

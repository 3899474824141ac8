"""What one object says: the times in its fields, as epoch seconds. Pure. A field that is not there
is no time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scaletest.model.times import epoch

# A pod's condition -> the milestone that it stands for when it is True.
CONDITIONS = {
    "PodScheduled": "scheduled",
    "PodReadyToStartContainers": "ready_to_start",
    "Initialized": "initialized",
    "ContainersReady": "containers_ready",
    "Ready": "ready",
    "DisruptionTarget": "evicted",
}


def created(body: Mapping[str, Any]) -> float | None:
    """When the API server made the object."""
    return epoch(body["metadata"].get("creationTimestamp"))


def of_pod(body: Mapping[str, Any]) -> dict[str, float | None]:
    """The milestones that a pod's object shows as passed, each with its time; None for one passed
    at no said time.
    """
    status = body.get("status") or {}
    found: dict[str, float | None] = {"created": created(body)}
    for condition in status.get("conditions") or ():
        milestone = CONDITIONS.get(condition.get("type"))
        if milestone and condition.get("status") == "True":
            found[milestone] = epoch(condition.get("lastTransitionTime"))
        if condition.get("type") == "PodScheduled" and (
            condition.get("status") == "True" or condition.get("reason")
        ):
            # a recorded "unschedulable" is a decision as well
            found["decided"] = epoch(condition.get("lastTransitionTime"))
    containers = status.get("containerStatuses") or ()
    states = [row.get("state") or {} for row in containers]
    started = [_started(state) for state in states]
    if (
        started
        and all(started)
        and len(started) >= len((body.get("spec") or {}).get("containers", ()))
    ):
        found["started"] = _latest([time for _, time in filter(None, started)])
    if status.get("phase") in ("Succeeded", "Failed"):
        ends = [
            epoch(state["terminated"].get("finishedAt"))
            for state in states
            if state.get("terminated")
        ]
        found["finished"] = _latest(ends) if ends else None
    if body["metadata"].get("deletionTimestamp"):
        # the timestamp is when it shall be gone, its grace period included
        grace_s = body["metadata"].get("deletionGracePeriodSeconds") or 0
        asked = epoch(body["metadata"]["deletionTimestamp"])
        found["deleted"] = asked - grace_s if asked is not None else None
    return found


def claims(body: Mapping[str, Any]) -> int:
    """How many claims for devices are made for a pod."""
    rows = (body.get("spec") or {}).get("resourceClaims") or ()
    return sum("resourceClaimTemplateName" in row for row in rows)


def _started(state: Mapping[str, Any]) -> tuple[bool, float | None] | None:
    for name in ("running", "terminated"):
        if state.get(name):
            return True, epoch(state[name].get("startedAt"))
    return None


def _latest(times: list[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return max(known) if len(known) == len(times) and known else None


def micros(body: Mapping[str, Any]) -> float | None:
    """An Event's time in microseconds, where it has one."""
    found = epoch(body.get("eventTime"))
    return found if found is not None and math.isfinite(found) else None

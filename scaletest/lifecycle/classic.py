"""submitted.json and sampled.json as the Run:ai scale test tool has them: read, and written for its
other programs.

Their times are ISO 8601 in UTC. Where the original copies a time because it has none (eviction,
PVC, backend), we leave the fall-back as it does, since its plotter reads every field; our own files
say what was missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from scaletest.analysis.lifecycle.phases import WorkloadTimeline, timeline
from scaletest.lifecycle.milestones import epoch
from scaletest.model.errors import InvalidValue
from scaletest.model.lifecycle import LifecycleObject, LifecyclePod, Stamp, Submission

PREFIX = "runai-"
# field of sampled.json -> our milestone; None: it stands for another one
FIELDS = {
    "workloadCreatedTimestamp": "created",
    "jobCreatedTimestamp": "job_created",
    "firstPodCreatedTimestamp": "first_pod_created",
    "lastPodCreatedTimestamp": "last_pod_created",
    "podGroupCreatedTimestamp": "pod_group_created",
    "podSchedulingDecisionTimestamp": "decided",
    "firstEvictionTimestamp": "evicted",
    "firstPVCBindRequestTimestamp": "pvc_requested",
    "firstPVCBindTimestamp": "pvc_bound",
    "backendJobCreatedTimestamp": "backend_job_created",
}
# What the original writes where it has no time of its own: that of another milestone.
INSTEAD = {
    "job_created": "created",
    "pod_group_created": "first_pod_created",
    "evicted": "decided",
    "pvc_requested": "decided",
    "pvc_bound": "decided",
    "backend_job_created": "created",
}
NEEDED = ("created", "first_pod_created", "last_pod_created", "decided")


def submitted(rows: Iterable[Submission]) -> str:
    """submitted.json: those that were accepted and have a time."""
    return json.dumps(
        [
            {
                "jobName": row.name,
                "projectName": row.project or row.namespace.removeprefix(PREFIX),
                "jobNamespace": row.namespace,
                "submitTimestamp": iso(row.submitted_s),
            }
            for row in rows
            if row.accepted and row.submitted_s is not None
        ],
        indent=4,
    )


def sampled(workloads: Iterable[LifecycleObject], project: str) -> str:
    """sampled.json: those of which the original's fields are all known, by the API's whole seconds
    where there are.
    """
    rows = []
    for one in map(timeline, workloads):
        if all(name in one.milestones for name in NEEDED):
            row: dict[str, Any] = {
                "jobName": one.workload.name,
                "jobNamespace": one.workload.namespace,
                "projectName": project or one.workload.namespace.removeprefix(PREFIX),
            }
            rows.append(row | {field: iso(_time(one, name)) for field, name in FIELDS.items()})
    return json.dumps(rows, indent=4)


def _time(one: WorkloadTimeline, name: str) -> float | None:
    stamp = one.stamp(name) or one.stamp(INSTEAD.get(name, ""))
    if stamp is None:
        return None
    return stamp.api_s if stamp.api_s is not None else stamp.watch_s


def iso(time_s: float | None) -> str | None:
    """As the original writes times: microseconds and offset."""
    return (
        datetime.fromtimestamp(time_s, UTC).isoformat(timespec="microseconds")
        if time_s is not None
        else None
    )


def read_submitted(text: str) -> list[Submission]:
    """A submitted.json of either tool. Raises InvalidValue."""
    found = []
    for row in _rows(text, "submitted.json"):
        name, at_s = row.get("jobName"), epoch(row.get("submitTimestamp"))
        if not isinstance(name, str) or at_s is None:
            raise InvalidValue("submitted.json has a row without jobName or submitTimestamp")
        namespace, project = str(row.get("jobNamespace", "")), str(row.get("projectName", ""))
        found.append(Submission(name, namespace, project, True, at_s))
    return found


def read_sampled(text: str) -> list[LifecycleObject]:
    """A sampled.json of either tool. A time that only repeats another one is none of its own.
    Raises InvalidValue.
    """
    found = []
    for row in _rows(text, "sampled.json"):
        if not isinstance(row.get("jobName"), str):
            raise InvalidValue("sampled.json has a row without jobName")
        one = LifecycleObject(
            row["jobName"], str(row.get("jobNamespace", "")), seen=True, expected=None
        )
        times = {name: epoch(row.get(field)) for field, name in FIELDS.items()}
        for name in ("evicted", "pvc_requested", "pvc_bound", "backend_job_created"):
            if times[name] == times[INSTEAD[name]]:
                times[name] = None
        for name in (
            "created",
            "job_created",
            "pod_group_created",
            "evicted",
            "pvc_requested",
            "pvc_bound",
        ):
            one.mark(name, Stamp(api_s=times[name]))
        one.mark("backend_job_created", Stamp(api_s=times["backend_job_created"]))
        one.stamps = {name: stamp for name, stamp in one.stamps.items() if stamp != Stamp()}
        _pods(one, times)
        found.append(one)
    return found


def _pods(one: LifecycleObject, times: dict[str, float | None]) -> None:
    """The first and the last pod: all that the file knows of them."""
    for index, name in enumerate(("first_pod_created", "last_pod_created")):
        pod = LifecyclePod(f"{one.name}-{index}", f"{one.name}-{index}")
        for milestone, time_s in (("created", times[name]), ("decided", times["decided"])):
            if time_s is not None:
                pod.mark(milestone, Stamp(api_s=time_s))
        one.pods[pod.uid] = pod


def _rows(text: str, what: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidValue(f"{what} is not valid JSON: {error}") from error
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise InvalidValue(f"{what} is no list of objects")
    return found

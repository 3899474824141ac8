"""Read and write the files of the Run:ai scale test tool, for its other programs.

These are submitted.json and sampled.json, with times in ISO 8601 in UTC, and the times at which
the control plane's database noted the jobs.
"""

import csv
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scaletest.lifecycle.judging.timeline import WorkloadTimeline
from scaletest.lifecycle.records import LifecycleObject, Stamp, Submission
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.times import format_time, parse_time

# Columns of the database's table.
NAME_COLUMN = "jobName"
TIME_COLUMN = "time_created"
# Field of sampled.json -> our milestone.
SAMPLED_FIELDS = {
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
# Milestone -> the one whose time is written where it has none of its own. The tool does so, since
# its plotter reads every field; our own files tell what was missing.
SUBSTITUTES = {
    "job_created": "created",
    "pod_group_created": "first_pod_created",
    "evicted": "decided",
    "pvc_requested": "decided",
    "pvc_bound": "decided",
    "backend_job_created": "created",
}
# A workload without one of these is left out.
NEEDED_MILESTONES = ("created", "first_pod_created", "last_pod_created", "decided")
# Milestones whose time, when it equals that of the substitute, is taken for a copy.
COPIED_MILESTONES = ("evicted", "pvc_requested", "pvc_bound", "backend_job_created")

# times.csv: heading -> milestone.
TIME_COLUMNS = {
    "Workload Created": "created",
    "Job Created": "job_created",
    "First Pod Created": "first_pod_created",
    "Last Pod Created": "last_pod_created",
    "Pod Group Created": "pod_group_created",
    "Pod Scheduling Decision Time": "decided",
    "Workload Submitted": "submitted",
    "Backend Job Created": "backend_job_created",
}
# times.csv: the phases in the order of that tool's table.
DURATION_COLUMNS = (
    "created",
    "job_created",
    "first_pod_created",
    "last_pod_created",
    "pod_group_created",
    "decided",
    "evicted",
    "pvc_requested",
    "pvc_bound",
    "backend_job_created",
    "total_decided",
    "total_backend_job_created",
)


def project_of(namespace: str) -> str:
    """Return the project to which a namespace belongs."""
    return namespace.removeprefix("runai-")


def write_submitted(submissions: Iterable[Submission]) -> str:
    """Write submitted.json: the submissions that were accepted and have a time."""
    return json.dumps(
        [
            {
                "jobName": submission.name,
                "projectName": submission.project or project_of(submission.namespace),
                "jobNamespace": submission.namespace,
                "submitTimestamp": format_time(submission.submitted_s),
            }
            for submission in submissions
            if submission.accepted and submission.submitted_s is not None
        ],
        indent=4,
    )


def write_sampled(timelines: Iterable[WorkloadTimeline], project: str) -> str:
    """Write sampled.json: the workloads of which all needed milestones have a time."""
    return json.dumps(
        [
            {
                "jobName": timeline.workload.name,
                "jobNamespace": timeline.workload.namespace,
                "projectName": project or project_of(timeline.workload.namespace),
                **{field: _time_of(timeline, name) for field, name in SAMPLED_FIELDS.items()},
            }
            for timeline in timelines
            if all(map(timeline.stamp, NEEDED_MILESTONES))
        ],
        indent=4,
    )


def _time_of(timeline: WorkloadTimeline, name: str) -> str | None:
    """Return the time of a milestone or of its substitute, by the API where it says one."""
    stamp = timeline.stamp(name) or timeline.stamp(SUBSTITUTES.get(name, "")) or Stamp()
    return format_time(stamp.api_s if stamp.api_s is not None else stamp.watch_s)


def read_submitted(text: str) -> list[Submission]:
    """Read a submitted.json of either tool. Raises InvalidValue."""
    submissions = []
    for row in _parse_rows(text, "submitted.json"):
        name, submitted_s = row.get("jobName"), parse_time(row.get("submitTimestamp"))
        if not isinstance(name, str) or submitted_s is None:
            raise InvalidValue("submitted.json has a row without jobName or submitTimestamp")
        submissions.append(
            Submission(
                name=name,
                namespace=str(row.get("jobNamespace", "")),
                project=str(row.get("projectName", "")),
                accepted=True,
                submitted_s=submitted_s,
            )
        )
    return submissions


def read_sampled(text: str) -> list[LifecycleObject]:
    """Read a sampled.json of either tool. Raises InvalidValue."""
    workloads = []
    for row in _parse_rows(text, "sampled.json"):
        if not isinstance(row.get("jobName"), str):
            raise InvalidValue("sampled.json has a row without jobName")
        workload = LifecycleObject(
            row["jobName"], str(row.get("jobNamespace", "")), seen=True, expected=None
        )
        times_s = {name: parse_time(row.get(field)) for field, name in SAMPLED_FIELDS.items()}
        for name, time_s in times_s.items():
            is_copy = name in COPIED_MILESTONES and time_s == times_s[SUBSTITUTES[name]]
            # also those of its pods, of which the file tells no more
            if time_s is not None and not is_copy:
                workload.mark(name, Stamp(api_s=time_s))
        workloads.append(workload)
    return workloads


def _parse_rows(text: str, file: str) -> list[dict[str, Any]]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise InvalidValue(f"{file} is not valid JSON: {error}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidValue(f"{file} is not a list of objects")
    return rows


def read_backend_times(path: Path) -> dict[str, float]:
    """Read the epoch seconds at which the control plane's database noted each job, by its name.

    A query there made the file, as no database is spoken to from here. Raises UsageError unless it
    is CSV or JSON with both columns.
    """
    try:
        text = path.read_text("utf-8")
        rows: list[dict[str, Any]] = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else list(csv.DictReader(text.splitlines()))
        )
        times = {str(row[NAME_COLUMN]): float(row[TIME_COLUMN]) / 1000.0 for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"the backend times cannot be read: {error!r}",
            hint=f"give CSV or JSON with {NAME_COLUMN} and {TIME_COLUMN} in ms",
        ) from error
    if not all(map(math.isfinite, times.values())):
        raise UsageError(
            "invalid time in the backend times", hint=f"{TIME_COLUMN} is milliseconds since 1970"
        )
    return times

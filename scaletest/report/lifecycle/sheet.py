"""times.csv: one row a workload. Every column has one function, so that a heading cannot stand over
another's values.

The columns of the original come first, in its order; ours follow. Times are ISO 8601 in UTC,
durations seconds. What is missing is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from scaletest.analysis.lifecycle.books import fate
from scaletest.analysis.lifecycle.phases import (
    BY_NAME,
    PHASES,
    WorkloadTimeline,
    at,
    duration,
    reference,
)
from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.render.contents import Sheet

# heading -> milestone
TIMES = {
    "Workload Created": "created",
    "Job Created": "job_created",
    "First Pod Created": "first_pod_created",
    "Last Pod Created": "last_pod_created",
    "Pod Group Created": "pod_group_created",
    "Pod Scheduling Decision Time": "decided",
    "Workload Submitted": "submitted",
    "Backend Job Created": "backend_job_created",
}
# The original's twelve durations in its order.
CLASSIC = (
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


def sheet(result: LifecycleResult, project: str, times: str) -> Sheet:
    """The whole table; workloads in the order of submission."""
    columns = _columns(result, project, times)
    rows = [[column(timeline) for column in columns.values()] for timeline in result.courses]
    return Sheet(list(columns), rows, line_end="\n")


def _columns(
    result: LifecycleResult, project: str, times: str
) -> dict[str, Callable[[WorkloadTimeline], str]]:
    columns: dict[str, Callable[[WorkloadTimeline], str]] = {
        "Job Name": lambda one: one.workload.name,
        "Namespace": lambda one: one.workload.namespace,
        "projectName": lambda one: project or one.workload.namespace.removeprefix("runai-"),
    }
    columns |= {heading: _time(name) for heading, name in TIMES.items()}
    own = [step.name for step in PHASES if step.name not in CLASSIC and not step.of_pods]
    for name in (*CLASSIC, *own):
        columns[BY_NAME[name].title] = _duration(result, name, times)
    columns["Fate"] = lambda one: str(fate(one, result.until))
    columns["Pods"] = lambda one: str(len(one.workload.pods))
    columns["Reason"] = lambda one: one.workload.reason
    return columns


def _time(name: str) -> Callable[[WorkloadTimeline], str]:
    def get(one: WorkloadTimeline) -> str:
        found = at(one.stamp(name))
        return (
            datetime.fromtimestamp(found, UTC).isoformat(timespec="microseconds")
            if found is not None
            else ""
        )

    return get


def _duration(result: LifecycleResult, name: str, times: str) -> Callable[[WorkloadTimeline], str]:
    step = BY_NAME[name]
    since = reference(step, result.courses)

    def get(one: WorkloadTimeline) -> str:
        found = duration(step, one, since, times)
        return f"{found.value_s:.6f}" if found else ""

    return get

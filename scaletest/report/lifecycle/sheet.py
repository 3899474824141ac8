"""times.csv: one row a workload. Every column has one function, so that a heading cannot stand over
another's values.

The columns of the original come first, in its order; ours follow. Times are ISO 8601 in UTC,
durations seconds. What is missing is empty.
"""

from __future__ import annotations

from collections.abc import Callable

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
from scaletest.compat import runai
from scaletest.model.times import iso
from scaletest.render.contents import Sheet


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
        "projectName": lambda one: project or runai.project_of(one.workload.namespace),
    }
    columns |= {heading: _time(name) for heading, name in runai.TIME_COLUMNS.items()}
    own = [
        step.name for step in PHASES if step.name not in runai.DURATION_COLUMNS and not step.of_pods
    ]
    for name in (*runai.DURATION_COLUMNS, *own):
        columns[BY_NAME[name].title] = _duration(result, name, times)
    columns["Fate"] = lambda one: str(fate(one, result.until))
    columns["Pods"] = lambda one: str(len(one.workload.pods))
    columns["Reason"] = lambda one: one.workload.reason
    return columns


def _time(name: str) -> Callable[[WorkloadTimeline], str]:
    return lambda one: iso(at(one.stamp(name))) or ""


def _duration(result: LifecycleResult, name: str, times: str) -> Callable[[WorkloadTimeline], str]:
    step = BY_NAME[name]
    since = reference(step, result.courses)

    def get(one: WorkloadTimeline) -> str:
        found = duration(step, one, since, times)
        return f"{found.value_s:.6f}" if found else ""

    return get

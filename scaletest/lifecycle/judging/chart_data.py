"""Reduce a run to what charts show, which is bounded whatever its size.

Times are seconds since the first submission, or durations in seconds.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.lifecycle.judging.timeline import (
    WorkloadTimeline,
    best_time,
    duration_between,
    start_time,
)
from scaletest.lifecycle.records import LifecyclePod

# Moments of a line, and rows of a waterfall, at most.
MOST_MOMENTS = 240
MOST_ROWS = 11
# What a workload passes until it is ready. What it runs afterwards is its own.
MILESTONES = (
    "created",
    "last_pod_created",
    "claim_allocated",
    "scheduled",
    "ready_to_start",
    "started",
    "ready",
)


@dataclass(frozen=True, slots=True)
class PodsOverTime:
    """The numbers of pods so far, at evenly spaced moments."""

    moments_s: tuple[float, ...]
    # pods whose object was submitted, that were scheduled, and that became ready
    counts: Mapping[str, tuple[int, ...]]


def pods_over_time(timelines: Sequence[WorkloadTimeline]) -> PodsOverTime | None:
    """Count the pods of all workloads over time; None when no pod has a time."""
    pods = list(chain.from_iterable(timeline.workload.pods.values() for timeline in timelines))
    scheduled_s = _milestone_times(pods, "scheduled")
    if not scheduled_s:
        return None
    # when the object of each pod was submitted
    submitted_s: list[float] = []
    for timeline in timelines:
        start_s = start_time(timeline)
        if start_s is not None:
            submitted_s += [start_s] * (timeline.workload.expected or len(timeline.workload.pods))
    times = {
        "submitted": sorted(submitted_s),
        "scheduled": scheduled_s,
        "ready": _milestone_times(pods, "ready"),
    }
    zero_s = first_submission(timelines)
    last_s = max(chain.from_iterable(times.values()))
    step_s = (last_s - zero_s) / (MOST_MOMENTS - 1)
    # the last one is exactly the last event
    moments = [*(zero_s + index * step_s for index in range(MOST_MOMENTS - 1)), last_s]
    counts = {
        name: tuple(bisect_right(times_s, moment) for moment in moments)
        for name, times_s in times.items()
    }
    return PodsOverTime(tuple(moment - zero_s for moment in moments), counts)


def first_submission(timelines: Iterable[WorkloadTimeline]) -> float:
    """Return when the first workload was submitted, else created: seconds since the epoch."""
    return min((start for start in map(start_time, timelines) if start is not None), default=0.0)


def _milestone_times(pods: Iterable[LifecyclePod], name: str) -> list[float]:
    """Return when pods passed this milestone, in order."""
    times = [best_time(pod.stamps.get(name)) for pod in pods]
    return sorted(time for time in times if time is not None)


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """One workload on its way to ready."""

    name: str
    # milestones that it passed, in their order, each with the seconds since the submission
    ends: tuple[tuple[str, float], ...]


def waterfall(timelines: Sequence[WorkloadTimeline]) -> list[WaterfallRow]:
    """Return workloads at evenly spaced ranks of their time to ready, the fastest first.

    Where none became ready, the last milestone counts that any of them passed.
    """
    passed = set(chain.from_iterable(timeline.milestones for timeline in timelines))
    milestones = [name for name in MILESTONES if name in passed]
    if not milestones:
        return []
    rows = []
    for timeline in timelines:
        start_s = start_time(timeline)
        if start_s is not None and milestones[-1] in timeline.milestones:
            ends = _milestone_ends(timeline, milestones, start_s)
            rows.append(WaterfallRow(timeline.workload.name, ends))
    rows.sort(key=lambda row: (row.ends[-1][1], row.name))
    if len(rows) <= MOST_ROWS:
        return rows
    # the first and the last are among them
    last_rank = len(rows) - 1
    return [rows[round(number * last_rank / (MOST_ROWS - 1))] for number in range(MOST_ROWS)]


def _milestone_ends(
    timeline: WorkloadTimeline, milestones: Sequence[str], start_s: float
) -> tuple[tuple[str, float], ...]:
    """Return the milestones with seconds since the start, none before the one before it."""
    ends: list[tuple[str, float]] = []
    latest_s = 0.0
    for name in milestones:
        passed_s = best_time(timeline.stamp(name))
        if passed_s is not None:
            latest_s = max(latest_s, passed_s - start_s)
            ends.append((name, latest_s))
    return tuple(ends)


def ready_times_by_node(timelines: Iterable[WorkloadTimeline]) -> dict[str, list[float]]:
    """Return by node how many seconds its pods took from scheduling to ready."""
    seconds_of: dict[str, list[float]] = defaultdict(list)
    for pod in chain.from_iterable(timeline.workload.pods.values() for timeline in timelines):
        duration = duration_between(pod.stamps.get("scheduled"), pod.stamps.get("ready"))
        if pod.node and duration is not None:
            seconds_of[pod.node].append(duration.value_s)
    return seconds_of

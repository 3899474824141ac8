"""What charts of a lifecycle show, bounded whatever the run's size: pods over time, the phases of
single workloads, and nodes.

Pure. Times are seconds since the first submission, or durations in seconds.
"""

import statistics
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

# So many moments a line has at most.
MOST_MOMENTS = 240
MOST_ROWS = 11
# The way of a workload until it is ready. What it runs afterwards is its own.
WAY = (
    "created",
    "last_pod_created",
    "claim_allocated",
    "scheduled",
    "ready_to_start",
    "started",
    "ready",
)
ENDS = ("finished", "deleted", "evicted")


@dataclass(frozen=True, slots=True)
class PodsOverTime:
    """How many pods were so far at each moment."""

    moments_s: tuple[float, ...]
    # pods whose object was submitted, that were scheduled, became ready, and are ready now
    counts: Mapping[str, tuple[int, ...]]


def pods_over_time(timelines: Sequence[WorkloadTimeline]) -> PodsOverTime | None:
    """Count the pods of all workloads over time; None when no pod has a time."""
    zero_s = first_s(timelines)
    pods = list(chain.from_iterable(timeline.workload.pods.values() for timeline in timelines))
    # when the object of each pod was submitted
    submitted: list[float] = []
    for timeline in timelines:
        start_s = start_time(timeline)
        if start_s is not None:
            submitted += [start_s] * (timeline.workload.expected or len(timeline.workload.pods))
    events = {
        "submitted": sorted(submitted),
        "scheduled": _times(pods, "scheduled"),
        "ready": _times(pods, "ready"),
    }
    ends = [
        [time for name in ENDS for time in _times([pod], name)]
        for pod in pods
        if _times([pod], "ready")
    ]
    # when pods that had been ready were so no more
    ended = sorted(min(times) for times in ends if times)
    known = list(chain.from_iterable(events.values()))
    if not events["scheduled"] or not known:
        return None
    last_s = max([*known, *ended])
    step_s = (last_s - zero_s) / (MOST_MOMENTS - 1)
    # the last one is exactly the last event
    moments = [*(zero_s + index * step_s for index in range(MOST_MOMENTS - 1)), last_s]
    counts = {name: _counted(times, moments) for name, times in events.items()}
    if ended:
        pairs = zip(counts["ready"], _counted(ended, moments), strict=True)
        counts["ready now"] = tuple(max(0, ready - ended) for ready, ended in pairs)
    return PodsOverTime(tuple(moment - zero_s for moment in moments), counts)


def first_s(timelines: Iterable[WorkloadTimeline]) -> float:
    """Return when the first workload was submitted, else the first pod scheduled: seconds since
    1970.
    """
    return min((start for start in map(start_time, timelines) if start is not None), default=0.0)


def _times(pods: Iterable[LifecyclePod], name: str) -> list[float]:
    """Return when pods passed this milestone, in order."""
    times = [best_time(pod.stamps.get(name)) for pod in pods]
    return sorted(time for time in times if time is not None)


def _counted(times: Sequence[float], moments: Sequence[float]) -> tuple[int, ...]:
    return tuple(bisect_right(times, moment) for moment in moments)


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """One workload on its way to ready."""

    name: str
    share: float  # of the workloads that were as fast or faster
    # milestones that it passed, in the order of WAY, each with the seconds since the submission
    ends: tuple[tuple[str, float], ...]


def waterfall(timelines: Sequence[WorkloadTimeline]) -> list[WaterfallRow]:
    """Return workloads at evenly spaced ranks of their time until they were ready, the fastest
    first.

    Where none became ready, the last milestone counts that any of them passed.
    """
    passed = set(chain.from_iterable(timeline.milestones for timeline in timelines))
    way = [name for name in WAY if name in passed]
    if not way:
        return []
    ordered = []
    for timeline in timelines:
        start_s = start_time(timeline)
        if way[-1] not in timeline.milestones or start_s is None:
            continue
        # its milestones with seconds since the submission, none before the one before
        ends: list[tuple[str, float]] = []
        latest_s = 0.0
        for name in way:
            passed_s = best_time(timeline.stamp(name))
            if passed_s is not None:
                latest_s = max(latest_s, passed_s - start_s)
                ends.append((name, latest_s))
        if ends:
            ordered.append((latest_s, timeline.workload.name, tuple(ends)))
    ordered.sort()
    # evenly spaced ones, the first and the last among them
    ranks: Sequence[int] = range(len(ordered))
    if len(ordered) > MOST_ROWS:
        ranks = [round(row * (len(ordered) - 1) / (MOST_ROWS - 1)) for row in range(MOST_ROWS)]
    rows = []
    for rank in ranks:
        _, name, passed_ends = ordered[rank]
        share = rank / (len(ordered) - 1) if len(ordered) > 1 else 0.5
        rows.append(WaterfallRow(name, share, passed_ends))
    return rows


@dataclass(frozen=True, slots=True)
class NodePods:
    """The pods of a node."""

    node: str
    pods: int
    failed: int
    median_s: float | None  # from scheduling to ready; None when none was
    slowest_s: float | None  # the same


def by_node(timelines: Iterable[WorkloadTimeline]) -> list[NodePods]:
    """Return all nodes with pods, the slowest first; those without a pod that became ready last."""
    pods: dict[str, list[LifecyclePod]] = defaultdict(list)
    for pod in chain.from_iterable(timeline.workload.pods.values() for timeline in timelines):
        if pod.node:
            pods[pod.node].append(pod)
    nodes = []
    for name, pods_here in pods.items():
        values = []
        for pod in pods_here:
            taken = duration_between(pod.stamps.get("scheduled"), pod.stamps.get("ready"))
            if taken is not None:
                values.append(taken.value_s)
        nodes.append(
            NodePods(
                name,
                len(pods_here),
                sum(pod.failed for pod in pods_here),
                statistics.median(values) if values else None,
                max(values, default=None),
            )
        )
    return sorted(nodes, key=lambda node: (-(node.median_s or 0.0), node.node))

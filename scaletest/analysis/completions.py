"""Completions as progress in time: between two of its completions a worker progresses evenly.

Progress has two virtues over counting completions in a window. It is not quantised: workers in
lockstep that finish a request every 30 s progress by exactly T / 30 in T seconds, wherever the
window begins. And it is unbiased for any distribution of run times: the part of a cycle that lies
before an instant is evenly distributed, so the loss at one end of the window equals the gain at the
other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from scaletest.model import Record

# The clock of Redis counts microseconds: completions that are closer together have no rate.
RESOLUTION_S = 1e-6
# worker -> when it finished its successful requests, in Redis seconds, ascending
Ends = Mapping[str, Sequence[float]]


def ends_of(records: Iterable[Record]) -> dict[str, list[float]]:
    """The successful completions of each worker."""
    ends: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.ok:
            ends[record.reply.worker].append(record.reply.ended_s)
    return {worker: sorted(times) for worker, times in ends.items()}


def after(ends: Ends, cut_s: float) -> dict[str, Sequence[float]]:
    """The completions at or after `cut_s`; the first of each worker starts its first cycle."""
    return {worker: times[_first(times, cut_s) :] for worker, times in ends.items()}


def span(ends: Ends) -> tuple[float, float]:
    """Where every worker's progress is known: from the latest first completion to the earliest last
    one, in s.

    (0, 0) when there is no such time.
    """
    full = [times for times in ends.values() if times]
    if not full:
        return 0.0, 0.0
    first, last = max(times[0] for times in full), min(times[-1] for times in full)
    if last - first > RESOLUTION_S:
        return (first, last)
    return (0.0, 0.0)


def progress(ends: Ends, edges: Sequence[float]) -> list[float]:
    """Requests done between neighbouring edges, with fractions; edges ascend inside the span."""
    done = [0.0] * len(edges)
    for times in ends.values():
        if len(times) > 1:
            for index, edge in enumerate(edges):
                done[index] += _at(times, edge)
    return [later - earlier for earlier, later in pairwise(done)]


def rates(ends: Ends, first: float, last: float, bins: int) -> list[float]:
    """Throughput in `bins` equal parts of the time from `first` to `last`, in requests/s."""
    width = (last - first) / bins
    edges = [first + index * width for index in range(bins)] + [last]
    return [done / width for done in progress(ends, edges)]


def _at(times: Sequence[float], instant: float) -> float:
    """How many cycles a worker had done at `instant`."""
    index = bisect_right(times, instant)
    if index == 0:
        return 0.0
    if index == len(times):
        return index - 1.0
    before, behind = times[index - 1], times[index]
    return index - 1 + (instant - before) / (behind - before)


def _first(times: Sequence[float], cut_s: float) -> int:
    """Index of the first completion at or after the cut."""
    index = bisect_right(times, cut_s)
    while index and times[index - 1] >= cut_s:
        index -= 1
    return index

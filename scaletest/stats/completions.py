"""Completions of workers as progress in time: between two of its completions a worker progresses
evenly.

Progress has two virtues over counting completions in a window. It is not quantised: workers in
lockstep that finish a request every 30 s progress by exactly T / 30 in T seconds, wherever the
window begins. And it is unbiased for any distribution of run times: the part of a cycle that lies
before an instant is evenly distributed, so the loss at one end of the window equals the gain at the
other.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

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
    return {worker: times[bisect_left(times, cut_s) :] for worker, times in ends.items()}


def span(ends: Ends) -> tuple[float, float]:
    """Where every worker's progress is known: from the latest first completion to the earliest last
    one, in s.

    (0, 0) when there is no such time.
    """
    full = [times for times in ends.values() if times]
    if not full:
        return 0.0, 0.0
    first, last = max(times[0] for times in full), min(times[-1] for times in full)
    return (first, last) if last - first > RESOLUTION_S else (0.0, 0.0)


def progress(ends: Ends, edges: Sequence[float]) -> list[float]:
    """Requests done between neighbouring edges, with fractions; edges ascend inside the span."""
    done = [0.0] * len(edges)
    for times in ends.values():
        done = [total + _at(times, edge) for total, edge in zip(done, edges, strict=True)]
    return cycles(done)


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


def cycles(times: Sequence[float]) -> list[float]:
    """The differences of neighbours: the times between a worker's completions, in s."""
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def deal_in_turn(ends: Ends) -> Ends:
    """Return the completions as if workers had finished them in turn: a cycle is N / throughput.

    Where a worker starves there is hardly a time in which the progress of every worker is known,
    although that of all together is.
    """
    times = sorted(itertools.chain.from_iterable(ends.values()))
    return {worker: times[index :: len(ends)] for index, worker in enumerate(ends)}

"""A worker that stopped while it was measured, or that others kept waiting.

Its device or node was lost, or its workload hangs. Throughput is counted in the time that all
workers share, which ends with the first worker's last completion. Workers that go on to the end
leave about a cycle after that. One that stopped hides all that came later, and the throughput is
that of a system that no longer exists. So its silence must not pass as the end of a step.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from scaletest.stats.completions import RESOLUTION_S, Ends
from scaletest.validation.judging.throughput import _all_cycles

# In units of the longest cycle. With exponential run times and n cycles, a worker is silent for so
# long at the end of a step with probability n^-3.
LONGEST_CYCLES = 3.0


@dataclass(frozen=True, slots=True)
class Stall:
    """The worker that was silent longest at the end of a step, and for how long, in seconds."""

    worker: str
    silent_s: float


def stall(ends: Ends) -> Stall | None:
    """The worker that stopped; None when all went on to the end of the step."""
    all_cycles = _all_cycles(ends)
    if len(ends) < 2 or not all_cycles or not all(ends.values()):
        return None
    worker = min(ends, key=lambda name: ends[name][-1])
    silent_s = max(times[-1] for times in ends.values()) - ends[worker][-1]
    if silent_s > LONGEST_CYCLES * max(all_cycles):
        return Stall(worker, silent_s)
    return None


@dataclass(frozen=True, slots=True)
class StarvedWorker:
    """A worker that others kept from what all of them share."""

    worker: str
    waited_s: float  # from the first completion of any worker to its own


def find_starved(ends: Ends) -> StarvedWorker | None:
    """Find the worker that waited for its first completion for most of the step; None without.

    A service that refuses requests beyond its limit lets those in that ask at the right moment, so
    that a few workers may have it for themselves.
    """
    if len(ends) < 2 or not all(ends.values()):
        return None
    begin_s, end_s = _under_load(ends)
    if end_s - begin_s <= RESOLUTION_S:
        return None
    worker = max(ends, key=lambda name: ends[name][0])
    waited_s = ends[worker][0] - begin_s
    cycle_s = len(ends) / rate_together(ends)
    if waited_s > max(STARVED_PART * (end_s - begin_s), STARVED_CYCLES * cycle_s):
        return StarvedWorker(worker, waited_s)
    return None


def rate_together(ends: Ends) -> float:
    """Completions a second of all workers, whoever finished them; 0 where there is no time."""
    begin_s, end_s = _under_load(ends)
    if end_s - begin_s <= RESOLUTION_S:
        return 0.0
    return (sum(bisect_right(times, end_s) for times in ends.values()) - 1) / (end_s - begin_s)


def _under_load(ends: Ends) -> tuple[float, float]:
    """From the first completion to the end of the load, when the first worker has no more to do
    while others may finish what they hold.
    """
    full = [times for times in ends.values() if times]
    if not full:
        return 0.0, 0.0
    return min(times[0] for times in full), min(times[-1] for times in full)


# A worker starves that waits for its first completion for longer than this part of a step, and for
# longer than this many requests take on average; and where all together do less than this many
# times as much as fewer workers did, or it may have met one of few slow requests.
STARVED_PART, STARVED_CYCLES, STARVED_RATIO = 0.5, 3.0, 1.25

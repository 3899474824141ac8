"""A worker that stopped while it was measured: its device went away, its node was lost, or its workload hangs.

Throughput is counted in the time that all workers share, which ends with the first worker's last completion. Workers
that go on to the end leave a cycle or so behind that; one that stopped hides all that came after it, and what counts
is a system that no longer exists. So its silence must not pass as the end of a step.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.analysis.completions import Ends
from scaletest.analysis.throughput import cycles

# Cycles as long as the longest that was seen. With exponential run times and n cycles, one worker is silent so long at
# the end of a step with probability n^-3.
LONGEST_CYCLES = 3.0


@dataclass(frozen=True, slots=True)
class Stall:
    """The worker that was silent longest at the end of a step, and for how long, in seconds."""

    worker: str
    silent_s: float


def stall(ends: Ends) -> Stall | None:
    """The worker that stopped, None when all went on to the end of the step."""
    seen = [cycle for times in ends.values() for cycle in cycles(times)]
    if len(ends) < 2 or not seen or not all(ends.values()):
        return None
    worker = min(ends, key=lambda name: ends[name][-1])
    silent_s = max(times[-1] for times in ends.values()) - ends[worker][-1]
    return Stall(worker, silent_s) if silent_s > LONGEST_CYCLES * max(seen) else None

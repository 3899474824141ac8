"""A worker that stopped while it was measured.

Its device or node was lost, or its workload hangs. Throughput is counted in the time that all
workers share, which ends with the first worker's last completion. Workers that go on to the end
leave about a cycle after that. One that stopped hides all that came later, and the throughput is
that of a system that no longer exists. So its silence must not pass as the end of a step.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.stats.completions import Completions

# In units of the longest cycle. With exponential run times and n cycles, a worker is silent for so
# long at the end of a step with probability n^-3.
LONGEST_CYCLES = 3.0


@dataclass(frozen=True, slots=True)
class Stall:
    """The worker that was silent longest at the end of a step, and for how long, in seconds."""

    worker: str
    silent_s: float


def find_stall(completions: Completions) -> Stall | None:
    """Find the worker that stopped; None when all went on to the end of the step."""
    by_worker = completions.by_worker
    if len(by_worker) < 2 or not completions.all_cycles or not completions.fewest:
        return None
    worker = min(by_worker, key=lambda name: by_worker[name][-1])
    silent_s = max(times[-1] for times in by_worker.values()) - by_worker[worker][-1]
    if silent_s > LONGEST_CYCLES * max(completions.all_cycles):
        return Stall(worker, silent_s)
    return None

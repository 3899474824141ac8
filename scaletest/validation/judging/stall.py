"""A worker that stopped while it was measured, or that others kept waiting.

One that stops has lost its device or node, or its workload hangs. Throughput is counted in the time
that all workers share, which ends with the first worker's last completion. Workers that go on to
the end leave about a cycle after that. One that stopped hides all that came later, and the
throughput is that of a system that no longer exists. So its silence must not pass as the end of a
step.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scaletest.model import Measurement
from scaletest.stats.completions import Completions

# A worker starves that waits for its first completion for longer than this part of a step, and for
# longer than this many requests take on average.
STARVED_PART = 0.5
STARVED_CYCLES = 3.0
# And where all together do less than this many times as much as fewer workers did; else it may have
# met one of few slow requests.
STARVED_RATIO = 1.25
# In units of the longest cycle. With exponential run times and n cycles, a worker is silent for so
# long at the end of a step with probability n^-3.
LONGEST_CYCLES = 3.0


@dataclass(frozen=True, slots=True)
class IdleWorker:
    """A worker that finished nothing for long."""

    worker: str
    seconds: float  # for how long


def find_stall(completions: Completions) -> IdleWorker | None:
    """Find the worker that was silent longest at the end; None when all went on to the end."""
    by_worker = completions.by_worker
    if len(by_worker) < 2 or not completions.all_cycles or not completions.fewest:
        return None
    worker = min(by_worker, key=lambda name: by_worker[name][-1])
    silent_s = max(times[-1] for times in by_worker.values()) - by_worker[worker][-1]
    if silent_s > LONGEST_CYCLES * max(completions.all_cycles):
        return IdleWorker(worker, silent_s)
    return None


def find_starved(completions: Completions) -> IdleWorker | None:
    """Find the worker that waited for its first completion for most of the step; None without.

    A service that refuses requests beyond its limit lets those in that ask at the right moment, so
    that a few workers may have it for themselves.
    """
    by_worker = completions.by_worker
    if len(by_worker) < 2 or not completions.fewest or not completions.rate_under_load:
        return None
    begin_s, end_s = completions.under_load
    worker = max(by_worker, key=lambda name: by_worker[name][0])
    waited_s = by_worker[worker][0] - begin_s
    cycle_s = len(by_worker) / completions.rate_under_load
    if waited_s > max(STARVED_PART * (end_s - begin_s), STARVED_CYCLES * cycle_s):
        return IdleWorker(worker, waited_s)
    return None


def find_starving_steps(
    measurements_by_step: Sequence[Sequence[Measurement]],
    completions: Mapping[tuple[int, int], Completions],
) -> dict[int, IdleWorker]:
    """Find the steps in which a worker starved: the number of workers, and one of those that did.

    measurements_by_step: those of each step, with ever more workers.
    """
    starved = {}
    rate_of_fewer = 0.0  # requests/s with fewer workers, all together
    for measurements in measurements_by_step:
        of_step = [completions[measurement.key] for measurement in measurements]
        rate = statistics.fmean(once.rate_under_load for once in of_step)
        worker = next(filter(None, map(find_starved, of_step)), None)
        if worker and rate < STARVED_RATIO * rate_of_fewer:
            starved[measurements[0].workers] = worker
        rate_of_fewer = rate
    return starved

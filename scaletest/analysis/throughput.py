"""Throughput counted between completions, never per clock second, so that long requests are not quantised.

For a worker with completions at e(1) < ... < e(k) on the Redis clock the cycles are e(i+1) - e(i); its rate is one
over their mean, and the throughput of the step is the sum over workers. Its variance follows from the delta method:
Var(1/m) = s^2 / (n m^4). Summing per worker instead of counting all completions in a window is exact for workers
in lockstep, where a window that starts and ends on a burst counts one burst too many (6 % at 16 bursts).

The first completion of each worker only starts its first cycle, so that the ramp of a step is never counted.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scaletest.analysis.student import t95
from scaletest.model import Record

MIN_COMPLETIONS = 8
MIN_COMPLETIONS_PER_WORKER = 3


@dataclass(frozen=True, slots=True)
class Throughput:
    """Requests per second with the half-width of its 95 % interval.

    completions: successful requests counted, the first of each worker included.
    freedom: degrees of freedom behind the interval.
    enough: whether there are 8 completions in all and 3 of every worker; below that the rate is no evidence.
    """

    per_s: float
    half_width: float
    completions: int
    freedom: int
    enough: bool

    @property
    def relative(self) -> float:
        """Half-width over rate; infinity when the rate is 0."""
        return self.half_width / self.per_s if self.per_s > 0 else math.inf


def throughput(records: Iterable[Record], workers: int) -> Throughput:
    """The throughput of one step, from the successful records of its `workers` workers."""
    ends: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.ok:
            ends[record.reply.worker].append(record.reply.ended_s)
    completions = sum(map(len, ends.values()))
    rate = variance = 0.0
    freedom = 0
    for times in ends.values():
        cycles = _cycles(sorted(times))
        if not cycles:
            continue
        mean = statistics.fmean(cycles)
        if mean <= 0:
            continue
        rate += 1.0 / mean
        if len(cycles) > 1:
            variance += statistics.variance(cycles, mean) / (len(cycles) * mean**4)
            freedom += len(cycles) - 1
    enough = (
        completions >= MIN_COMPLETIONS
        and len(ends) >= workers
        and all(len(times) >= MIN_COMPLETIONS_PER_WORKER for times in ends.values())
    )
    half = t95(freedom) * math.sqrt(variance) if freedom else math.inf
    return Throughput(rate, half, completions, freedom, enough)


def _cycles(times: Sequence[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]

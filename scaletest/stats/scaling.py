"""Speed-up and efficiency of every step, each with a 95 % interval.

    S(N) = X(N) / X(1)        E(N) = S(N) / N

When the least number of workers is not 1, it is the base and N counts multiples of it. Intervals
come from the log delta method: the relative errors of the two throughputs add in squares. The base
compared with itself is exactly 1.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Positive
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate, estimate_within


@dataclass(frozen=True, slots=True)
class MeasuredThroughput:
    """The throughput of one number of workers, repeats already joined."""

    workers: int
    per_s: float  # requests
    relative: float = math.inf  # half-width of the 95 % interval over it; infinity when unknown


@dataclass(frozen=True, slots=True)
class Scaled(Written):
    """Speed-up and efficiency of one step."""

    workers: Positive
    speedup: Annotated[
        Estimate, "throughput over that of the fewest workers, with its 95 % interval"
    ]
    efficiency: Annotated[Estimate, "speed-up over the multiple of workers"]


def usable_steps(measured: Iterable[MeasuredThroughput]) -> list[MeasuredThroughput]:
    """Return steps by workers, ascending, without those that had no throughput.

    measured: one for each number of workers.
    """
    return sorted((step for step in measured if step.per_s > 0), key=lambda step: step.workers)


def scaling_figures(rows: Sequence[MeasuredThroughput]) -> list[Scaled]:
    """Return speed-up and efficiency of usable steps over the first of them."""
    return [scaling_over(step, rows[0]) for step in rows]


def scaling_over(step: MeasuredThroughput, base: MeasuredThroughput) -> Scaled:
    """Return speed-up and efficiency of a step over another with a throughput."""
    if step.workers == base.workers:
        exactly_1 = Estimate(1.0, 1.0, 1.0)
        return Scaled(step.workers, exactly_1, exactly_1)
    speedup = throughput_ratio(step, base)
    return Scaled(step.workers, speedup, speedup.scaled(base.workers / step.workers))


def throughput_ratio(step: MeasuredThroughput, base: MeasuredThroughput) -> Estimate:
    """Return the throughput of a step over that of another."""
    return estimate_within(step.per_s / base.per_s, math.hypot(step.relative, base.relative))

"""Speed-up and efficiency of every step, each with a 95 % interval.

    S(N) = X(N) / X(1)        E(N) = S(N) / N

When the least number of workers is not 1, it is the base and N counts multiples of it. Intervals
come from the log delta method: the relative errors of the two throughputs add in squares. The base
compared with itself is exactly 1.
"""

import math
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

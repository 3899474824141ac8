"""What a run would gain without its main cause: the speed-up if that had not grown.

A cycle of N workers takes c(N) = N / X(N), and the cause has the share s of its growth from M to N
workers. Without that growth it would take (1 - s) c(N) + s c(M), which gives the throughput, and
over that of the fewest workers the speed-up. This assumes that nothing else takes the cause's
place: a processor that the workers use up next limits them earlier.

The interval comes from those of the share and of the throughputs, each at its ends while the others
are at their values, with differences that add in squares (the method of variance estimates
recovery, Zou and Donner 2008). Steps of another run differ by SPREAD_BETWEEN_STEPS on top.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from scaletest.causes.causes import Causes
from scaletest.causes.steps import SPREAD_BETWEEN_STEPS
from scaletest.model.declared import Positive
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate, estimate_within
from scaletest.stats.scaling import MeasuredThroughput, scaling_over

# Of a normal distribution, the middle 95 % reach so many standard deviations. A speed-up is of two
# steps.
BETWEEN_RUNS = 1.96 * math.sqrt(2.0) * SPREAD_BETWEEN_STEPS


@dataclass(frozen=True, slots=True)
class Gain(Written):
    """The speed-up with and without the main cause."""

    description = "what the run would gain without its main cause; null where none is named"

    workers: Annotated[Positive, "of the step to which the time of a request grew"]
    speedup: Annotated[Estimate, "throughput over that of the fewest workers, as measured"]
    without: Annotated[Estimate, "the same, had the main cause not grown"]


def gain_without_cause(
    causes: Causes | None,
    first: MeasuredThroughput,
    before: MeasuredThroughput,
    after: MeasuredThroughput,
) -> Gain | None:
    """Return what the run would gain without its main cause; None where none is named.

    first: the fewest workers. before, after: the steps that the causes compare.
    """
    if causes is None or causes.headline or causes.slow or not causes.causes:
        return None
    share = causes.causes[0].share
    # one that is both varies once
    steps = {step.workers: step for step in (first, before, after)}
    measured = {workers: step.per_s for workers, step in steps.items()}

    def log_speedup(part: float, per_s: Mapping[int, float]) -> float:
        cycle_s = (1.0 - part) * after.workers / per_s[after.workers]
        cycle_s += part * before.workers / per_s[before.workers]
        return math.log(after.workers / cycle_s / per_s[first.workers])

    middle = log_speedup(share.value, measured)
    ends = [[log_speedup(part, measured) for part in (share.low, share.high)]]
    for workers, step in steps.items():
        rates = estimate_within(step.per_s, step.relative)
        ends.append(
            [
                log_speedup(share.value, {**measured, workers: per_s})
                for per_s in (rates.low, rates.high)
            ]
        )
    below = math.hypot(BETWEEN_RUNS, *(middle - min(middle, *pair) for pair in ends))
    above = math.hypot(BETWEEN_RUNS, *(max(middle, *pair) - middle for pair in ends))
    without = Estimate(math.exp(middle), math.exp(middle - below), math.exp(middle + above))
    return Gain(after.workers, scaling_over(after, first).speedup, without)

"""What a run would gain without its main cause: the speed-up if that had not grown.

A cycle of N workers takes c(N) = N / X(N), and the cause has the share s of its growth from the
fewest workers, B, to N. Without that growth it would take (1 - s) c(N) + s c(B), which gives the
throughput, and over that of B workers the speed-up. This assumes that nothing else takes the
cause's place: processors that more workers would use up next limit them earlier.

The interval comes from those of the share and of the two throughputs, each at its ends while the
others are at their values, with differences that add in squares (the method of variance estimates
recovery, Zou and Donner 2008). Steps of another run differ by SPREAD_BETWEEN_STEPS on top.
"""

import math
from dataclasses import dataclass
from typing import Annotated

from scaletest.causes.causes import Causes
from scaletest.causes.steps import SPREAD_BETWEEN_STEPS
from scaletest.model.declared import Positive
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate, estimate_within
from scaletest.stats.scaling import MeasuredThroughput, scaling_over
from scaletest.stats.student import NORMAL_95

# By how much the logarithm of a speed-up, which is of two steps, differs between runs.
BETWEEN_RUNS = NORMAL_95 * math.sqrt(2.0) * SPREAD_BETWEEN_STEPS


@dataclass(frozen=True, slots=True)
class Gain(Written):
    """The speed-up with and without the main cause."""

    description = "what the run would gain without its main cause; null where none is named"

    workers: Annotated[Positive, "of the step to which the time of a request grew"]
    speedup: Annotated[Estimate, "throughput over that of the fewest workers, as measured"]
    without: Annotated[Estimate, "the same, had the main cause not grown"]


def gain_without_cause(
    causes: Causes | None,
    since_first: Causes | None,
    first: MeasuredThroughput,
    last: MeasuredThroughput,
) -> Gain | None:
    """Return what the run would gain without its main cause; None where none is named.

    since_first: the causes of the growth from the fewest workers on. first, last: the fewest
    workers, and those of the step to which the causes compare.
    """
    if causes is None or causes.headline or causes.slow or since_first is None:
        return None
    shares = {cause.state: cause.share for cause in since_first.causes}
    share = shares.get(causes.causes[0].state)
    if share is None:
        return None

    def log_speedup(part: float, first_per_s: float, last_per_s: float) -> float:
        cycle_s = (1.0 - part) * last.workers / last_per_s + part * first.workers / first_per_s
        return math.log(last.workers / cycle_s / first_per_s)

    # the speed-up with each input at the two ends of its interval, and the others at their values
    first_per_s = estimate_within(first.per_s, first.relative)
    last_per_s = estimate_within(last.per_s, last.relative)
    middle = log_speedup(share.value, first.per_s, last.per_s)
    ends = [
        [log_speedup(end, first.per_s, last.per_s) for end in (share.low, share.high)],
        [log_speedup(share.value, end, last.per_s) for end in (first_per_s.low, first_per_s.high)],
        [log_speedup(share.value, first.per_s, end) for end in (last_per_s.low, last_per_s.high)],
    ]
    below = math.hypot(BETWEEN_RUNS, *(middle - min(middle, *pair) for pair in ends))
    above = math.hypot(BETWEEN_RUNS, *(max(middle, *pair) - middle for pair in ends))
    without = Estimate(math.exp(middle), math.exp(middle - below), math.exp(middle + above))
    return Gain(last.workers, scaling_over(last, first).speedup, without)

"""How long a run takes, before anything is measured. Pure.

A sweep measures the levels of its plan. A search takes as many steps as it needs: the usual number
is the median of the simulated services of tests/unit/simulated.py, and the bound is
`search.most_measured`. Between two steps requests in flight end, a level that was too much is
followed by a pause, and agents need a head start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.saturation.search import most_measured
from scaletest.analysis.saturation.sequence import LONGEST, MOST_AGAIN, UNPROBED_RATE
from scaletest.model.saturation import Mode, SaturationPlan

# Seconds: pause after a saturated step; from a command to its begin, so that all agents read it.
BACK_OFF_S = 0.5
HEAD_START_S = 0.5
# Seconds: for checks before the run; after a step for requests in flight and the pause, on average
# and at most.
SET_UP_S = 1.0
DRAIN_S, LONGEST_DRAIN_S = 0.3, 2.0
# Steps of a search before it is confirmed: the median of simulated services.
USUAL_SEARCH = 7
# The times of more levels are not added up.
MOST_LEVELS = 100_000


@dataclass(frozen=True, slots=True)
class SaturationForecast:
    """The forecast of a run.

    steps: that usually lie between probe and operating point, most: of these at most. usual_s,
    longest_s: seconds of the whole run, where ten requests after each other take less than a step;
    None where a step has a fixed number of requests of unknown length. longest_s includes the steps
    that a latency limit makes longer, and not those that are repeated since the tester was late.
    """

    steps: int
    most: int
    usual_s: float | None
    longest_s: float | None

    def times(self, runs: int) -> SaturationForecast:
        """The forecast of so many runs of the plan."""
        usual, longest = (seconds and runs * seconds for seconds in (self.usual_s, self.longest_s))
        return SaturationForecast(self.steps, self.most, usual, longest)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "usual_steps": self.steps,
            "most_steps": self.most,
            "usual_s": self.usual_s,
            "longest_s": self.longest_s,
            "extended_up_to": LONGEST,
            "repeated_up_to": MOST_AGAIN,
        }


def forecast(plan: SaturationPlan) -> SaturationForecast:
    """The forecast of a plan."""
    swept = plan.mode == Mode.SWEEP
    if swept:
        steps = most = _levels(plan) * plan.repeats
        measured = _swept_s(plan) if plan.count else steps * plan.step_s
    else:
        most = most_measured(plan)
        steps = min(USUAL_SEARCH, plan.most_steps) + 2 * ((1 + plan.confirm) // 2)
        measured = None if plan.count else steps * plan.step_s
    if measured is None:
        return SaturationForecast(steps, most, None, None)
    head_s = 0.0
    if plan.agents > 1:
        head_s = HEAD_START_S
    operate_s = 0.0 if swept else (plan.operate_s or 2 * plan.step_s) + head_s
    fixed_s = SET_UP_S + plan.warm_s + (head_s if plan.warm_s else 0.0) + operate_s
    longer = 1
    if plan.limit:
        longer = LONGEST
    return SaturationForecast(
        steps,
        most,
        fixed_s + measured + steps * (DRAIN_S + head_s),
        fixed_s + longer * (measured * most / steps + most * (LONGEST_DRAIN_S + head_s)),
    )


def _levels(plan: SaturationPlan) -> int:
    """How many levels a sweep has."""
    if plan.increment:
        return 1 + math.floor((plan.highest - _first(plan)) / plan.increment + 1e-9)
    return 1


def _first(plan: SaturationPlan) -> float:
    """The first level; where the probe determines it, the one that is used without a probe."""
    return plan.start or (UNPROBED_RATE if plan.open else 1.0)


def _swept_s(plan: SaturationPlan) -> float | None:
    """Seconds of a sweep whose steps end by a number of requests; None where it is unknown."""
    if not plan.open or _levels(plan) > MOST_LEVELS:
        return None
    return plan.repeats * sum(
        plan.count / (_first(plan) + index * plan.increment) for index in range(_levels(plan))
    )

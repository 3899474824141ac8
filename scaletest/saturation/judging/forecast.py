"""How long a run takes, before it is measured.

A search takes as many steps as it needs. Their usual number is the median of the simulated services
of tests/unit/simulated.py, and the bound is `most_measured`. Between two steps requests in flight
end, a level that was too much is followed by a pause, and agents need a head start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from scaletest.model.declared import named_in_documents
from scaletest.model.writing import Written
from scaletest.saturation.judging.search_open_load import MOST_CORRECTING_STEPS
from scaletest.saturation.judging.step_sequence import MOST_AGAIN, MOST_LENGTHS, OPERATING_STEPS
from scaletest.saturation.judging.trial import CONFIRMATIONS, MOST_STEPS
from scaletest.saturation.plan import SaturationPlan

# Seconds of the pause after a saturated step, and from an order to its begin, so that all agents
# have read it.
BACK_OFF_S = 0.5
HEAD_START_S = 0.5
# Seconds: for checks before the run; after a step for requests in flight and the pause, on average
# and at most.
SET_UP_S = 1.0
DRAIN_S, LONGEST_DRAIN_S = 0.3, 2.0
# Steps of a search before it is confirmed: the median of simulated services.
USUAL_SEARCH = 7


@dataclass(frozen=True, slots=True)
class SaturationForecast(Written):
    """The forecast of a run."""

    constants: ClassVar = {"extended_up_to": MOST_LENGTHS, "repeated_up_to": MOST_AGAIN}

    steps: Annotated[
        int,
        named_in_documents("usual_steps"),
        "that usually lie between probe and operating point, most: of these at most.",
    ]
    most: Annotated[int, named_in_documents("most_steps")]
    usual_s: Annotated[
        float | None,
        "seconds of the whole run, where ten requests after each other take less than a step; "
        "None where a step has a fixed number of requests of unknown length. longest_s "
        "includes the steps that a latency limit makes longer, and not those that are "
        "repeated since the tester was late.",
    ]
    longest_s: Annotated[
        float | None,
        "seconds of the whole run, where ten requests after each other take less than a step; "
        "None where a step has a fixed number of requests of unknown length. longest_s "
        "includes the steps that a latency limit makes longer, and not those that are "
        "repeated since the tester was late.",
    ]

    def times(self, runs: int) -> SaturationForecast:
        """Return the forecast of so many runs of the plan."""
        usual, longest = (seconds and runs * seconds for seconds in (self.usual_s, self.longest_s))
        return SaturationForecast(self.steps, self.most, usual, longest)


def forecast(plan: SaturationPlan) -> SaturationForecast:
    """Return the forecast of a plan."""
    most_steps = most_measured(plan)
    steps = USUAL_SEARCH + 2 * ((1 + CONFIRMATIONS) // 2)
    if plan.count:
        return SaturationForecast(steps, most_steps, None, None)
    head_s = HEAD_START_S if plan.agents > 1 else 0.0
    operate_s = OPERATING_STEPS * plan.step_s + head_s
    fixed_s = SET_UP_S + plan.warm_s + (head_s if plan.warm_s else 0.0) + operate_s
    longer = MOST_LENGTHS if plan.limit else 1
    return SaturationForecast(
        steps,
        most_steps,
        fixed_s + steps * (plan.step_s + DRAIN_S + head_s),
        fixed_s + longer * most_steps * (plan.step_s + LONGEST_DRAIN_S + head_s),
    )


def most_measured(plan: SaturationPlan) -> int:
    """Return the most steps of a search, without those that are repeated or extended."""
    return MOST_STEPS + (MOST_CORRECTING_STEPS if plan.open else 2 * CONFIRMATIONS)

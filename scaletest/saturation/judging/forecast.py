"""How long a run takes, before it is measured and while it is.

A search takes as many steps as it needs: in nine of ten searches of simulated services as many as
STEPS_TO_COME says, and never more than `most_measured`. Between two steps requests in flight end, a
level that was too much is followed by a pause, and agents need a head start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scaletest.model.declared import named_in_documents
from scaletest.model.run_progress import TimeLeft
from scaletest.model.writing import Written
from scaletest.saturation.judging.search_open_load import MOST_CORRECTING_STEPS
from scaletest.saturation.judging.step import step_timing
from scaletest.saturation.judging.step_sequence import (
    MOST_AGAIN,
    MOST_LENGTHS,
    OPERATING_STEPS,
    SaturationSequence,
)
from scaletest.saturation.judging.trial import CONFIRMATIONS, MOST_STEPS
from scaletest.saturation.plan import Phase, SaturationPlan

# Seconds of the pause after a saturated step, and from an order to its begin, so that all agents
# have read it.
BACK_OFF_S = 0.5
HEAD_START_S = 0.5
# Seconds: for checks before the run; after a step for requests in flight and the pause, on average
# and at most.
SET_UP_S = 1.0
DRAIN_S, LONGEST_DRAIN_S = 0.3, 2.0
# Steps from one of this phase on to the end, at least and at most, in nine of ten searches of the
# services of tests/unit/simulated.py, disturbed ones among them. The probe does not count, and the
# operating point counts as often as it is longer.
STEPS_TO_COME: Mapping[Phase, tuple[int, int]] = {
    Phase.WARM: (8, 20),
    Phase.RAMP: (5, 20),
    Phase.BISECT: (4, 18),
    Phase.CONFIRM: (3, 13),
    Phase.OPERATE: (OPERATING_STEPS, OPERATING_STEPS),
}


@dataclass(frozen=True, slots=True)
class SaturationForecast(Written):
    """The forecast of a run: in nine of ten runs, and of the longest possible one.

    Seconds are None where a step has a fixed number of requests of unknown length. They hold where
    ten requests after each other take less than a step.
    """

    constants: ClassVar = {"extended_up_to": MOST_LENGTHS, "repeated_up_to": MOST_AGAIN}

    most: Annotated[
        int, named_in_documents("most_steps"), "between probe and operating point, at most"
    ]
    least_s: Annotated[float | None, "seconds of the whole run, at least in nine of ten runs"]
    most_s: Annotated[float | None, "the same, at most"]
    longest_s: Annotated[
        float | None,
        "seconds of the longest possible run, with the steps that a latency limit makes longer, and"
        " without those that are repeated since the load generator was late.",
    ]

    def times(self, runs: int) -> SaturationForecast:
        """Return the forecast of so many runs of the plan."""
        times_s = (self.least_s, self.most_s, self.longest_s)
        return SaturationForecast(self.most, *(seconds and runs * seconds for seconds in times_s))


def forecast(plan: SaturationPlan) -> SaturationForecast:
    """Return the forecast of a plan."""
    most_steps = most_measured(plan)
    left = time_left(SaturationSequence(plan))
    if left is None:
        return SaturationForecast(most_steps, None, None, None)
    head_s = _head_start_s(plan)
    operate_s = OPERATING_STEPS * plan.step_s + head_s
    fixed_s = SET_UP_S + plan.warm_s + (head_s if plan.warm_s else 0.0) + operate_s
    longer = MOST_LENGTHS if plan.limit else 1
    return SaturationForecast(
        most_steps,
        SET_UP_S + left.least_s,
        SET_UP_S + left.most_s,
        fixed_s + longer * most_steps * (plan.step_s + LONGEST_DRAIN_S + head_s),
    )


def time_left(sequence: SaturationSequence, searched_s: float = 0.0) -> TimeLeft | None:
    """Return the seconds until a run ends; None where its steps end by a number of requests.

    searched_s: how long its steps took so far, without the probe.
    """
    plan, probe = sequence.plan, sequence.next
    if plan.count or probe is None:
        return None
    least, most = STEPS_TO_COME[probe.phase]
    if plan.limit and not sequence.has_held:
        least = 1  # a limit that no level meets ends the search on its way down
    # a step takes as long as planned, or as those before
    planned_s = step_timing(plan.step_s, sequence.usual_s)[0] + DRAIN_S + _head_start_s(plan)
    searched = sum(assessed.step.phase != Phase.WARM for assessed in sequence.steps)
    taken_s = searched_s / searched if searched else planned_s
    # and is repeated as often, where the tester was late
    late = sum(bool(assessed.tester) for assessed in sequence.steps)
    repeated = 1.0 + MOST_AGAIN * late / max(1, len(sequence.steps))
    probe_s = plan.warm_s if probe.phase is Phase.WARM else 0.0
    return TimeLeft(
        probe_s + least * min(planned_s, taken_s),
        probe_s + most * repeated * max(planned_s, taken_s),
    )


def _head_start_s(plan: SaturationPlan) -> float:
    return HEAD_START_S if plan.agents > 1 else 0.0


def most_measured(plan: SaturationPlan) -> int:
    """Return the most steps of a search, without those that are repeated or extended."""
    return MOST_STEPS + (MOST_CORRECTING_STEPS if plan.open else 2 * CONFIRMATIONS)

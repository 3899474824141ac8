"""How long a run takes, before it is measured and while it is.

A search takes as many steps as it needs: in nine of ten searches of simulated services as many as
STEPS_TO_COME says. Between two steps requests in flight end, a level that was too much is followed
by a pause, and agents need a head start.
"""

from collections.abc import Mapping

from scaletest.model.run_progress import TimeLeft
from scaletest.saturation.judging.step import step_timing
from scaletest.saturation.judging.step_sequence import (
    MOST_AGAIN,
    OPERATING_STEPS,
    SaturationSequence,
)
from scaletest.saturation.plan import Phase

# Seconds of the pause after a saturated step, and from an order to its begin, so that all agents
# have read it.
BACK_OFF_S = 0.5
HEAD_START_S = 0.5
# Seconds after a step for requests in flight and the pause, on average.
DRAIN_S = 0.3
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
    head_start_s = HEAD_START_S if plan.agents > 1 else 0.0
    planned_s = step_timing(plan.step_s, sequence.usual_s)[0] + DRAIN_S + head_start_s
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

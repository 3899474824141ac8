"""What disturbed the measurements of a step."""

import itertools
from collections.abc import Sequence

from scaletest.causes.interference import Interference, between
from scaletest.validation.judging.steps import Step

# What may slow a machine down for a while, where no samples of its resources say more.
CHANGES = "thermal throttling, frequency scaling, other programs on the machine"
POSSIBLE_CAUSES = f"possible causes: {CHANGES}"


def worst_disturbances(
    steps: Sequence[Step], disturbed: Sequence[Interference]
) -> dict[tuple[int, int], Interference]:
    """Return what disturbed each measurement most, by its key, where that is known."""
    worst = {}
    for sample in itertools.chain.from_iterable(step.samples for step in steps):
        end_s = sample.began_s + sample.measurement.measured_s
        spell = between(disturbed, sample.began_s, end_s)
        if spell:
            worst[sample.measurement.key] = spell
    return worst

"""What requests cost, where the plan says what a worker costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Positive
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate
from scaletest.validation.judging.steps import Step
from scaletest.validation.plan import Plan


@dataclass(frozen=True, slots=True)
class Cost(Written):
    """What a thousand requests cost with the most workers, in the unit of the price."""

    description = "what requests cost; null where the plan has no price"

    workers: Positive
    per_thousand: Annotated[Estimate, "of 1,000 requests"]
    lost: Annotated[
        Estimate, "the part of it that they would not cost with the fewest workers; 0 for none"
    ]


def cost_of_requests(plan: Plan, steps: Sequence[Step]) -> Cost | None:
    """Return what requests cost with the most workers; None without a price, or throughput.

    A request takes N / X(N) of a worker's time. What it takes beyond that with the fewest workers
    is lost; the errors of the two add in squares.
    """
    measured = [step for step in steps if step.throughput.enough]
    if not plan.price or not measured:
        return None
    base, most = (
        step.throughput.estimate.inverse.scaled(1000.0 * step.workers * plan.price / 3600.0)
        for step in (measured[0], measured[-1])
    )
    lost = most.value - base.value
    low = lost - math.hypot(most.value - most.low, base.high - base.value)
    high = lost + math.hypot(most.high - most.value, base.value - base.low)
    return Cost(measured[-1].workers, most, Estimate(lost, low, high).at_least(0.0))

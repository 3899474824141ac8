"""A quick look at a program: which steps fit into half a minute, and up to where workers paid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scaletest.causes.resources import StepResources
from scaletest.validation.judging.doubling import wanted_ratio
from scaletest.validation.judging.steps import Step

# Seconds under load of all steps together: usual, and at most where requests take long.
USUAL_LOAD_S = 8.0
LONGEST_LOAD_S = 22.0
# Requests that each worker shall end in a step, if a request takes as long as one alone.
REQUESTS_PER_WORKER = 4
LEAST_STEPS = 2
# A doubling that brings less than half of what is ideal does not pay.
LEAST_PAYING_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class QuickSteps:
    """The steps of a quick look: 1, 2, 4, ... workers up to `limit`, each for `step_s` seconds."""

    limit: int
    step_s: float


def fit_quick_steps(run_s: float, limit: int) -> QuickSteps | None:
    """Return the steps that fit into the time; None when not even two do.

    run_s: of one request alone. limit: the most workers.
    """
    count = math.ceil(math.log2(limit)) + 1
    while count >= LEAST_STEPS:
        step_s = max(REQUESTS_PER_WORKER * run_s, USUAL_LOAD_S / count)
        # each of the two passes begins with a request that does not count
        if count * (step_s + run_s) <= LONGEST_LOAD_S:
            return QuickSteps(limit, step_s)
        count -= 1
        limit = 2 ** (count - 1)
    return None


@dataclass(frozen=True, slots=True)
class QuickAnswer:
    """Up to how many workers each doubling paid, and the most that were tried."""

    reached: int
    tried: int

    @property
    def is_limited(self) -> bool:
        """Whether more workers were tried than paid."""
        return self.reached < self.tried


def quick_answer(steps: Sequence[Step]) -> QuickAnswer | None:
    """Return up to where doublings paid; None when nothing was measured at one worker."""
    measured = [step for step in steps if step.throughput.per_s > 0]
    if not measured or measured[0] is not steps[0]:
        return None
    reached = measured[0].workers
    for before, after in pairwise(measured):
        gain = after.throughput.per_s / before.throughput.per_s
        if gain < wanted_ratio(LEAST_PAYING_RATIO, before.workers, after.workers):
            break
        reached = after.workers
    return QuickAnswer(reached, steps[-1].workers)


def cores_needed(resources: Sequence[StepResources], workers: int) -> tuple[float, float] | None:
    """Return cores that a request uses, and cores that there are, where workers need all of them.

    A request as it was with the fewest workers. None where so many workers leave some cores idle,
    or where it is unknown.
    """
    for step in resources:
        if step.requests_cpu and step.cores:
            alone = step.requests_cpu / step.workers
            return (alone, step.cores) if alone * workers >= step.cores else None
    return None

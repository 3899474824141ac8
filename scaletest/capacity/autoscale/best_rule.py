"""Choose the best of several simulated rules, criterion by criterion.

Each criterion keeps the rules that are best by it, and the next one is applied to what is left, so
that a reader can follow the choice.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaletest.capacity.autoscale.rule import Rule
from scaletest.capacity.autoscale.simulation import SimulationResult

# Mean waits are equally short when they differ by less than this part of a request's run time:
# users do not notice less, and a rule that never shrinks would win otherwise.
EQUAL_WAIT = 0.1


@dataclass(frozen=True, slots=True)
class PlayedRule:
    """A rule with its simulated result."""

    rule: Rule
    result: SimulationResult
    grace_s: float  # for how long pods that must go may finish


@dataclass(frozen=True, slots=True)
class BestRule:
    """The best of several rules."""

    played: PlayedRule
    # names of the rules that remain after each criterion, up to the deciding one
    left_after: dict[str, list[str]]


def choose_best(played: Sequence[PlayedRule], mean_run_s: float) -> BestRule:
    """Choose the best of these rules, the first one of equals. At least one rule is needed."""
    criteria: dict[str, Callable[[SimulationResult], float]] = {
        "every request ends": lambda result: result.requests - result.ended,
        "fewest requests killed": lambda result: result.killed,
        "shortest mean wait, to a tenth of a run time": _wait_s,
        "fewest direction changes": lambda result: result.flips,
        "fewest pod-seconds": lambda result: result.pod_s,
    }
    left = list(played)
    left_after = {}
    for criterion, measure in criteria.items():
        slack = EQUAL_WAIT * mean_run_s if measure is _wait_s else 0.0
        least = min(measure(candidate.result) for candidate in left)
        left = [candidate for candidate in left if measure(candidate.result) <= least + slack]
        left_after[criterion] = [candidate.rule.name for candidate in left]
        if len(left) == 1:
            break
    return BestRule(left[0], left_after)


def _wait_s(result: SimulationResult) -> float:
    return math.inf if result.mean_wait_s is None else result.mean_wait_s

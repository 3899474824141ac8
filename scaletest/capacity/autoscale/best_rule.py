"""Judge simulated rules side by side: which is the best, and why others do worse.

Each criterion keeps the rules that are best by it, and the next one is applied to what is left, so
that a reader can follow the choice.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scaletest.capacity.autoscale.hpa import TargetType
from scaletest.capacity.autoscale.load import Arrivals
from scaletest.capacity.autoscale.rule import Rule
from scaletest.capacity.autoscale.simulation import SimulationResult
from scaletest.model.time_slots import LONGEST_WINDOW_S

# Mean waits are equally short when they differ by less than this part of a request's run time:
# users do not notice less, and a rule that never shrinks would win otherwise.
EQUAL_WAIT = 0.1
# A window that is long enough for most queues, and what suggested ones are a multiple of, in s.
USUAL_WINDOW_S, MULTIPLE_S = 300.0, 60.0


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


@dataclass(frozen=True, slots=True)
class Weakness:
    """Why a rule kills requests or changes its direction, and what to set instead."""

    reason: str
    remedy: str


def find_weaknesses(played: PlayedRule, arrivals: Arrivals) -> Iterator[Weakness]:
    """Yield the weaknesses of a rule that kills requests or changes its direction."""
    rule, result = played.rule, played.result
    if not (result.flips or result.killed):
        return
    # what it measures: over a window of fewer than two run times, chance decides
    window_s, run_s = rule.targets.window_s, arrivals.mean_run_s
    if rule.metric == "desired_workers" and window_s < 2.0 * run_s:
        # the window that is long enough for requests of this run time, or what else to change
        wanted_s = max(USUAL_WINDOW_S, MULTIPLE_S * math.ceil(run_s / MULTIPLE_S))
        remedy = (
            f"set the window to {wanted_s:.0f} s: <rule> desired:window={wanted_s:.0f}, or"
            f" autoscaling.exporter.window: {wanted_s:.0f} in the chart"
        )
        if wanted_s > LONGEST_WINDOW_S:
            remedy = "runs are longer than any window of the exporter: use <rule> demand-gentle"
        elif wanted_s <= window_s:
            remedy = "shrink more slowly: add down_window=300 to the rule"
        yield Weakness(
            f"the exporter counts requests over {window_s:.0f} s and a request runs for"
            f" {run_s:.0f} s: the number follows the chance of a few arrivals, and falls again"
            " while their requests still run",
            remedy,
        )
    if rule.metric == "waiting" and rule.kind != "job":
        yield Weakness(
            "it counts only what waits: when workers have taken the requests, it counts none and"
            " takes busy workers away",
            "count running requests too: metric demand, e.g. <rule> demand-gentle",
        )
    if rule.metric == "max_wait":
        yield Weakness(
            "the longest wait is known only when a request ends, so the rule acts a run time late",
            "use metric demand or desired_workers",
        )
    if rule.value is TargetType.VALUE:
        yield Weakness(
            "target type Value multiplies the present replicas: they grow as long as anything"
            " waits, and collapse afterwards",
            "use target type AverageValue",
        )
    # what its pods may do when they must go
    if result.killed:
        long_enough_s = math.ceil(max(arrivals.runs))
        yield Weakness(
            f"pods go, whether busy or idle, and their grace period of {played.grace_s:.0f} s is"
            f" shorter than a request, of up to {long_enough_s} s",
            f"give pods a grace period of {long_enough_s} s",
        )

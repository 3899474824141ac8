"""Judge simulated rules side by side: which is the best, and why others do worse.

Each criterion keeps the rules that are best by it, and the next one is applied to what is left, so
that a reader can follow the choice.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scaletest.capacity.autoscale.hpa import TargetType
from scaletest.capacity.autoscale.load import Requests
from scaletest.capacity.autoscale.simulation import SimulationResult
from scaletest.model.time_slots import LONGEST_WINDOW_S

# Mean waits are equally short when they differ by less than this part of a request's run time:
# users do not notice less, and a rule that never shrinks would win otherwise.
EQUAL_WAIT = 0.1
# A window that is long enough for most queues.
USUAL_WINDOW_S = 300.0
# Over a window of fewer run times, chance decides how many requests the exporter counts.
LEAST_RUNS_IN_WINDOW = 2.0


@dataclass(frozen=True, slots=True)
class BestRule:
    """The best of several rules."""

    result: SimulationResult
    # names of the rules that remain after each criterion, up to the deciding one
    left_after: dict[str, list[str]]


def choose_best(results: Sequence[SimulationResult], mean_run_s: float) -> BestRule:
    """Choose the best of these rules, the first one of equals. At least one rule is needed."""
    criteria: dict[str, Callable[[SimulationResult], float]] = {
        "every request ends": lambda result: result.requests - result.ended,
        "fewest requests killed": lambda result: result.killed,
        "shortest mean wait, to a tenth of a run time": _wait_s,
        "fewest direction changes": lambda result: result.direction_changes,
        "fewest pod-seconds": lambda result: result.pod_s,
    }
    left = list(results)
    left_after = {}
    for criterion, measure in criteria.items():
        slack = EQUAL_WAIT * mean_run_s if measure is _wait_s else 0.0
        least = min(map(measure, left))
        left = [result for result in left if measure(result) <= least + slack]
        left_after[criterion] = [result.rule.name for result in left]
        if len(left) == 1:
            break
    return BestRule(left[0], left_after)


def _wait_s(result: SimulationResult) -> float:
    return math.inf if result.mean_wait_s is None else result.mean_wait_s


def find_weaknesses(result: SimulationResult, requests: Requests) -> Iterator[str]:
    """Yield why a rule kills requests or changes its direction, each with what to set instead."""
    if not (result.direction_changes or result.killed):
        return
    rule = result.rule
    # what it measures
    window_s, run_s = rule.targets.window_s, requests.mean_run_s
    if rule.metric == "desired_workers" and window_s < LEAST_RUNS_IN_WINDOW * run_s:
        remedy = "use <rule> demand-gentle, which counts what is there instead"
        wanted_s = max(USUAL_WINDOW_S, math.ceil(run_s))
        if window_s < wanted_s <= LONGEST_WINDOW_S:
            remedy = (
                f"set the window to {wanted_s:.0f} s: <rule> desired:window={wanted_s:.0f}, or"
                f" autoscaling.exporter.window: {wanted_s:.0f} in the chart"
            )
        yield (
            f"the exporter counts requests over {window_s:.0f} s and a request runs for"
            f" {run_s:.0f} s: the number follows the chance of a few arrivals, and falls again"
            f" while their requests still run; {remedy}"
        )
    if rule.metric == "waiting" and rule.kind != "job":
        yield (
            "it counts only what waits: when workers have taken the requests, it counts none and"
            " takes busy workers away; count running requests too: metric demand, e.g. <rule>"
            " demand-gentle"
        )
    if rule.metric == "max_wait":
        yield (
            "the longest wait is known only when a request ends, so the rule acts a run time late;"
            " use metric demand or desired_workers"
        )
    if rule.target_type is TargetType.VALUE:
        yield (
            "target type Value multiplies the present replicas: they grow as long as anything"
            " waits, and collapse afterwards; use target type AverageValue"
        )
    # what its pods may do when they must go
    if result.killed:
        long_enough_s = math.ceil(max(requests.runs_s))
        yield (
            f"pods go, whether busy or idle, and their grace period of {rule.grace_s:.0f} s is"
            f" shorter than a request, of up to {long_enough_s} s; give pods a grace period of"
            f" {long_enough_s} s"
        )

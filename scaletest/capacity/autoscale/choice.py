"""Choose among simulated rules: the best of several that were given, or the cheapest candidate.

`choose_best` applies criteria one by one: each keeps the rules that are best by it; the next one is
applied to what is left, so that a reader can follow the choice. A wait counts as equally short up
to a tenth of a request's run time: nobody notices less, and a rule that never shrinks would win
otherwise.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from scaletest.capacity.autoscale.hpa import ScalingPolicy, TargetType
from scaletest.capacity.autoscale.load import Arrivals
from scaletest.capacity.autoscale.rule import RULES, Rule, shrink_after
from scaletest.capacity.autoscale.simulation import SimulationResult
from scaletest.model.desired_workers import Targets
from scaletest.model.time_slots import LONGEST_WINDOW_S

EQUAL_WAIT = 0.1
# The exporter counts over a window; over fewer requests' run times than this, chance decides.
LEAST_RUNS = 2.0
# A window that is long enough for most queues, and what suggested ones are a multiple of, in s.
USUAL_WINDOW_S, MULTIPLE_S = 300.0, 60.0


@dataclass(frozen=True, slots=True)
class PlayedRule:
    """A rule with its simulated result."""

    rule: Rule
    result: SimulationResult
    grace_s: float  # for how long pods that must go may finish


@dataclass(frozen=True, slots=True)
class Elimination:
    """One criterion of the choice."""

    criterion: str
    left: tuple[str, ...]  # names of the rules that remain after it


@dataclass(frozen=True, slots=True)
class BestRule:
    """The best of several rules."""

    played: PlayedRule
    steps: tuple[Elimination, ...]  # the criteria in their order, up to the deciding one


@dataclass(frozen=True, slots=True)
class Weakness:
    """Why a rule kills requests or changes its direction, and what to set instead."""

    reason: str
    remedy: str


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
    steps = []
    for criterion, measure in criteria.items():
        slack = EQUAL_WAIT * mean_run_s if measure is _wait_s else 0.0
        least = min(measure(candidate.result) for candidate in left)
        left = [candidate for candidate in left if measure(candidate.result) <= least + slack]
        steps.append(Elimination(criterion, tuple(candidate.rule.name for candidate in left)))
        if len(left) == 1:
            break
    return BestRule(left[0], tuple(steps))


def _wait_s(result: SimulationResult) -> float:
    return math.inf if result.mean_wait_s is None else result.mean_wait_s


def mean_run_s(arrivals: Arrivals) -> float:
    """Return the mean run time of the requests, in s."""
    return sum(arrivals.runs) / len(arrivals.runs)


def find_weaknesses(played: PlayedRule, arrivals: Arrivals) -> Iterator[Weakness]:
    """Yield why this rule kills requests or changes its direction.

    Nothing where it does neither.
    """
    result = played.result
    if result.flips or result.killed:
        yield from _metric_weakness(played.rule, mean_run_s(arrivals))
    if result.killed:
        long_enough_s = math.ceil(max(arrivals.runs))
        yield Weakness(
            f"pods go, whether busy or idle, and their grace period of {played.grace_s:.0f} s is"
            f" shorter than a request, of up to {long_enough_s} s",
            f"give pods a grace period of {long_enough_s} s",
        )


def _metric_weakness(rule: Rule, run_s: float) -> Iterator[Weakness]:
    """Weaknesses of what the rule measures."""
    window_s = rule.targets.window_s
    if rule.metric == "desired_workers" and window_s < LEAST_RUNS * run_s:
        yield Weakness(
            f"the exporter counts requests over {window_s:.0f} s and a request runs for"
            f" {run_s:.0f} s: the number follows the chance of a few arrivals, and falls again"
            " while their requests still run",
            _longer_window(rule, run_s),
        )
    if rule.metric == "waiting" and rule.kind != "job":
        yield Weakness(
            "it counts only what waits: when workers have taken the requests, it counts none and"
            " takes busy workers away",
            "count running requests too: metric demand, as in <rule> demand-gentle",
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


def _longer_window(rule: Rule, run_s: float) -> str:
    wanted_s = max(USUAL_WINDOW_S, MULTIPLE_S * math.ceil(run_s / MULTIPLE_S))
    if wanted_s > LONGEST_WINDOW_S:
        return "runs are longer than any window of the exporter: use <rule> demand-gentle"
    if wanted_s <= rule.targets.window_s:
        return "shrink more slowly: add down_window=300 to the rule"
    return (
        f"set the window to {wanted_s:.0f} s: <rule> desired:window={wanted_s:.0f}, or"
        f" autoscaling.exporter.window: {wanted_s:.0f} in the chart"
    )


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """A rule with its simulated result."""

    rule: Rule
    result: SimulationResult
    met: bool  # whether it keeps the target; if none does, the best is the one that comes closest


def candidate_rules(maximum: int, minimum: int, wait_s: float) -> Iterator[Rule]:
    """Yield candidate rules: on demand and on desired workers; quick, damped, and slow to scale
    down.

    None shrinks by a single look: a real queue that swings between full and nearly empty turns such
    a rule each time, which the simulated load need not show. To none it is KEDA that scales, as an
    HPA can do that from Kubernetes 1.37 on only.
    """
    downs = {
        "after 30 s": shrink_after(30),  # two looks of the HPA
        "after 60 s": shrink_after(60),
        "after 300 s": shrink_after(300),
        "one pod a minute": shrink_after(30, ScalingPolicy("Pods", 1, 60)),
    }
    for how, behavior in downs.items():
        base = replace(
            RULES["demand"],
            kind="hpa" if minimum else "keda",
            behavior=behavior,
            maximum=maximum,
            minimum=minimum,
        )
        for target in (1.0, 1.5, 2.0, 4.0):
            yield replace(base, name=f"{target:g} requests a worker, down {how}", target=target)
        for utilisation, window_s in product((0.7, 0.9), (60.0, 300.0, 600.0)):
            targets = Targets(utilisation, max(1.0, wait_s), window_s)
            name = f"desired at {utilisation:g} over {window_s:g} s, down {how}"
            yield replace(base, name=name, metric="desired_workers", targets=targets)


def find_best(
    rules: Iterable[Rule],
    play: Callable[[Rule], SimulationResult],
    wait_s: float,
    share: float = 0.95,
) -> tuple[RuleChoice, list[RuleChoice]]:
    """Find the best choice; return it, and all of them, best first: rules that keep the target, by
    cost.

    The target: `share` of the waits within `wait_s`. play: simulates a rule.
    """

    def rank(choice: RuleChoice) -> tuple[bool, bool, float, int]:
        simulated = choice.result
        cost = simulated.pod_s
        if not choice.met:
            wait = simulated.wait_s(share)
            cost = wait if wait is not None else math.inf
        return not choice.met, simulated.ended < simulated.requests, cost, simulated.changes

    choices = []
    for rule in rules:
        simulated = play(rule)
        complete = simulated.ended == simulated.requests and not simulated.killed
        wait = simulated.wait_s(share)
        choices.append(
            RuleChoice(rule, simulated, complete and wait is not None and wait <= wait_s)
        )
    choices.sort(key=rank)
    return choices[0], choices

"""Search the parameters of rules for the cheapest that keeps a wait target and kills nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from scaletest.analysis.autoscale.hpa import ScalingPolicy
from scaletest.analysis.autoscale.result import SimulationResult
from scaletest.analysis.autoscale.rule import RULES, Rule, quick
from scaletest.analysis.desired_workers import Targets


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """A rule with its simulated result.

    met: whether the rule keeps the target; if none does, the best is the one that comes closest.
    """

    rule: Rule
    result: SimulationResult
    met: bool


def candidates(maximum: int, minimum: int, wait_s: float) -> Iterator[Rule]:
    """Candidate rules: on demand and on desired workers; quick, damped, and slow to scale down."""
    downs = {
        "at once": quick(0),
        "after 60 s": quick(60),
        "after 300 s": quick(300),
        "one pod a minute": quick(0, ScalingPolicy("Pods", 1, 60)),
    }
    for how, behavior in downs.items():
        base = replace(
            RULES["demand"], behavior=behavior, idle_first=True, maximum=maximum, minimum=minimum
        )
        for target in (1.0, 1.5, 2.0, 4.0):
            yield replace(base, name=f"{target:g} requests a worker, down {how}", target=target)
        for utilisation, window_s in product((0.7, 0.9), (60.0, 300.0, 600.0)):
            targets = Targets(utilisation, max(1.0, wait_s), window_s)
            name = f"desired at {utilisation:g} over {window_s:g} s, down {how}"
            yield replace(base, name=name, metric="desired_workers", targets=targets)


def recommend(
    rules: Iterable[Rule],
    play: Callable[[Rule], SimulationResult],
    wait_s: float,
    share: float = 0.95,
) -> tuple[RuleChoice, list[RuleChoice]]:
    """The best choice, and all of them, best first: rules that keep the target, by cost.

    The target: `share` of the waits within `wait_s`. play: simulates a rule.
    """

    def rank(choice: RuleChoice) -> tuple[bool, bool, float, int]:
        simulated = choice.result
        cost = simulated.pod_s
        if not choice.met:
            wait = simulated.wait_s(share)
            cost = math.inf
            if wait is not None:
                cost = wait
        return not choice.met, simulated.ended < simulated.requests, cost, simulated.changes

    choices = []
    for rule in rules:
        simulated = play(rule)
        complete = simulated.ended == simulated.requests and not simulated.killed
        wait = simulated.wait_s(share)
        met = complete and wait is not None and wait <= wait_s
        choices.append(RuleChoice(rule, simulated, met))
    choices.sort(key=rank)
    return choices[0], choices

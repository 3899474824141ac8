"""The search for the cheapest rule that keeps a wait target and kills nothing."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from scaletest.capacity.autoscale.hpa import (
    ScalingPolicy,
)
from scaletest.capacity.autoscale.rule import RULES, Rule, shrink_after
from scaletest.capacity.autoscale.simulation import SimulationResult
from scaletest.model.desired_workers import Targets


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

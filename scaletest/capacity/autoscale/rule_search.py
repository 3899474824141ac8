"""Search for the cheapest rule that keeps a wait target: the candidates, and their order."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

from scaletest.capacity.autoscale.hpa import ScalingPolicy
from scaletest.capacity.autoscale.rule import RULES, Rule, shrink_after
from scaletest.capacity.autoscale.simulation import SimulationResult
from scaletest.model.desired_workers import Targets

# The share of the requests that must not wait longer than the target.
SHARE_IN_TIME = 0.95


def candidate_rules(*, minimum: int, maximum: int, grace_s: float, wait_s: float) -> Iterator[Rule]:
    """Yield rules on demand and on desired workers: quick, damped, and slow to scale down.

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
    kind = "hpa" if minimum else "keda"
    for how, behavior in downs.items():
        base = replace(
            RULES["demand"],
            kind=kind,
            behavior=behavior,
            minimum=minimum,
            maximum=maximum,
            grace_s=grace_s,
        )
        for target in (1.0, 1.5, 2.0, 4.0):
            yield replace(base, name=f"{target:g} requests a worker, down {how}", target=target)
        for utilisation, window_s in product((0.7, 0.9), (60.0, 300.0, 600.0)):
            targets = Targets(utilisation, max(1.0, wait_s), window_s)
            name = f"desired at {utilisation:g} over {window_s:g} s, down {how}"
            yield replace(base, name=name, metric="desired_workers", targets=targets)


def rank_rules(
    rules: Iterable[Rule], play: Callable[[Rule], SimulationResult], wait_s: float
) -> list[SimulationResult]:
    """Simulate rules; return their results best first: those that keep the target, by cost.

    Where none keeps it, the first comes closest.
    """

    def rank(result: SimulationResult) -> tuple[bool, bool, float, int]:
        is_kept = keeps_target(result, wait_s)
        cost = result.pod_s if is_kept else _longest_wait_s(result)
        return not is_kept, result.ended < result.requests, cost, result.changes

    return sorted(map(play, rules), key=rank)


def keeps_target(result: SimulationResult, wait_s: float) -> bool:
    """Return whether a rule kills nothing, and lets 95 % of the requests wait so long at most."""
    is_complete = result.ended == result.requests and not result.killed
    return is_complete and _longest_wait_s(result) <= wait_s


def _longest_wait_s(result: SimulationResult) -> float:
    """Return the longest wait of those requests that must be in time; infinite without any."""
    wait_s = result.wait_s(SHARE_IN_TIME)
    return math.inf if wait_s is None else wait_s

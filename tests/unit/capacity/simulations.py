"""Simulations of several tests."""

import random
from dataclasses import replace
from typing import Any

from scaletest.capacity.autoscale.hpa import (
    Behavior,
    Hpa,
    HpaSpec,
    TargetType,
)
from scaletest.capacity.autoscale.load import draw_requests, draw_run_times
from scaletest.capacity.autoscale.rule import RULES, parse_rule
from scaletest.capacity.autoscale.simulation import SimulationResult, simulate
from scaletest.capacity.report import RuleComparison


def syncs(
    behavior: Behavior | None, demands: list[float], replicas: int = 1, **spec: Any
) -> list[int]:
    hpa = Hpa(
        HpaSpec(
            **{"minimum": 1, "maximum": 100, **spec},
            target=TargetType.AVERAGE_VALUE,
            target_milli=1000,
            behavior=behavior,
        )
    )
    course = []
    for number, demand in enumerate(demands):
        replicas = hpa.sync(15.0 * number, replicas, replicas, replicas, round(demand * 1000))
        course.append(replicas)
    return course


LOAD = [("arrivals", "2/min for 30 min"), ("seed", "1")]


def figures(name: str, **changes: Any) -> SimulationResult:
    """The result of a rule, made up: everything ended, nothing was killed."""
    rule = replace(RULES["demand"], name=name)
    usual = SimulationResult(rule, 2, 2, 0, 0, 0, 9.0, 10.0, 1, (5.0, 5.0))
    return replace(usual, **changes)


def compared(*rules: str, run_s: float = 240.0) -> RuleComparison:
    """These rules, simulated with half an hour of two requests a minute."""
    chance = random.Random(1)
    requests = draw_requests("poisson", chance, draw_run_times(chance, run_s, 0.3), 2 / 60, 1800.0)
    results = [simulate(requests, rule, 20.0, random.Random(1)) for rule in map(parse_rule, rules)]
    return RuleComparison(requests, results, LOAD, 1, ["scaletest", "autoscale"])

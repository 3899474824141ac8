"""Forecast of a run: how long its steps take, and how narrow their intervals will be.

A step whose run times have the coefficient of variation c needs n = (1.96 c / precision)^2 cycles
of all its workers, never less than 8 completions in all and 3 a worker, never less than the
shortest nor more than the longest step. This is an upper bound: a step also ends when its doubling
is decided. Every step of a mirrored run has two parts, each with half of that; where these decide
nothing further parts follow, up to the longest time of the run.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.stopping import SHORTEST_STEP_S
from scaletest.analysis.throughput import least_each
from scaletest.model import Plan

# Starting a worker process, and noticing that it serves.
START_S = 0.3
STEADY, SCATTERED = 0.005, 0.10


@dataclass(frozen=True, slots=True)
class ValidationForecast:
    """The forecast of a run.

    spread: relative standard deviation of run times. seconds: of the whole run. half_widths:
    relative, by step.
    """

    spread: float
    seconds: float
    half_widths: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"half_widths": list(self.half_widths)}


def forecast(plan: Plan, spread: float) -> ValidationForecast:
    """Duration and interval widths of `plan` if run times scatter by `spread` at ideal scaling."""
    total, widths, running = 0.0, [], 0
    for workers in plan.steps:
        part_s = _part_s(plan, workers, spread)
        cycles = max(1.0, plan.parts * workers * (part_s / max(plan.seconds, 1e-3) - 1))
        widths.append(1.96 * spread / math.sqrt(cycles))
        total += plan.parts * (part_s + plan.seconds) + START_S * max(0, workers - running)
        running = workers
    return ValidationForecast(spread, total * plan.repeats, tuple(widths))


def longest_s(plan: Plan) -> float:
    """Seconds under load that a run takes at most, unless parts warm up longer than planned."""
    warmed_again_s = (plan.parts - 1) * (plan.warmup_s or 0.0)
    step_s = plan.longest_s + warmed_again_s
    if plan.step_s:
        step_s = plan.parts * plan.fixed_part_s
    return step_s * len(plan.steps) * plan.repeats


def _part_s(plan: Plan, workers: int, spread: float) -> float:
    """Seconds of load of one part of a step; each worker's first request only starts its cycle."""
    if plan.step_s:
        return plan.fixed_part_s
    needed = math.ceil((1.96 * spread / plan.precision) ** 2 / workers / plan.parts) + 1
    seconds = (plan.warmup_s or 0.0) + max(least_each(workers, plan.parts), needed) * plan.seconds
    return min(plan.longest_part_s, max(SHORTEST_STEP_S / plan.parts, seconds))

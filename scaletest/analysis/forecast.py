"""Before a run: how long will its steps take, and how narrow will their intervals be, for run times that scatter so?

A step whose run times have the coefficient of variation c needs n = (1.96 c / precision)^2 cycles of all its workers,
never less than 8 completions in all and 3 a worker, never less than the shortest nor more than the longest step. What
comes out is an upper bound: a step also ends when its doubling is decided.
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
class Forecast:
    """spread: relative standard deviation of run times. seconds: of the whole run. half_widths: relative, by step."""

    spread: float
    seconds: float
    half_widths: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"half_widths": list(self.half_widths)}


def forecast(plan: Plan, spread: float) -> Forecast:
    """Duration and interval widths of `plan` if run times scatter by `spread` and nothing slows them down."""
    total, widths, running = 0.0, [], 0
    for workers in plan.steps:
        measured = _measured_s(plan, workers, spread)
        cycles = max(1.0, workers * (measured / max(plan.seconds, 1e-3) - 1))
        widths.append(1.96 * spread / math.sqrt(cycles))
        total += measured + plan.seconds + START_S * max(0, workers - running)
        running = workers
    return Forecast(spread, total * plan.repeats, tuple(widths))


def _measured_s(plan: Plan, workers: int, spread: float) -> float:
    """Seconds under load; the first request of each worker only starts its first cycle."""
    if plan.step_s:
        return plan.step_s + plan.seconds
    needed = math.ceil((1.96 * spread / plan.precision) ** 2 / workers) + 1
    seconds = (plan.warmup_s or 0.0) + max(least_each(workers), needed) * plan.seconds
    return min(plan.longest_s, max(SHORTEST_STEP_S, seconds))

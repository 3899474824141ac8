"""Forecast of a run: how long its steps take, and how narrow their intervals will be.

A step whose run times have the coefficient of variation c needs n = (1.96 c / precision)^2 cycles
of all its workers, never less than 8 completions in all and 3 a worker, never less than the
shortest nor more than the longest step. This is an upper bound: a step also ends when its doubling
is decided. Every step has two parts, each with half of that; where these decide nothing further
parts follow, up to the longest time of the run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model import Measurement
from scaletest.model.writing import Written
from scaletest.validation.judging.schedule import Turn
from scaletest.validation.judging.stopping import PARTS, SHORTEST_STEP_S
from scaletest.validation.judging.throughput import least_per_worker
from scaletest.validation.plan import Plan

# Starting a worker process, and noticing that it serves.
START_S = 0.3
STEADY, SCATTERED = 0.005, 0.10


@dataclass(frozen=True, slots=True)
class ValidationForecast(Written):
    """The forecast of a run."""

    spread: Annotated[float, "relative standard deviation of run times."]
    seconds: Annotated[float, "of the whole run."]
    half_widths: Annotated[tuple[float, ...], "relative, by step."]


def forecast(plan: Plan, spread: float) -> ValidationForecast:
    """Forecast how long `plan` takes if run times scatter by `spread`, at ideal scaling."""
    total, widths = 0.0, []
    for workers in plan.steps:
        part_s = _part_load_s(plan, workers, spread)
        cycles = max(1.0, PARTS * workers * (part_s / max(plan.seconds, 1e-3) - 1))
        widths.append(1.96 * spread / math.sqrt(cycles))
        total += PARTS * part_s
    return ValidationForecast(spread, total * plan.repeats + _without_load_s(plan), tuple(widths))


def longest_run_s(plan: Plan) -> float:
    """Return the seconds of the whole run if each step is measured for as long as it may be."""
    return longest_load_s(plan) + _without_load_s(plan)


def _without_load_s(plan: Plan) -> float:
    """Return the seconds until workers serve and until the last requests of parts have ended."""
    return plan.repeats * (PARTS * len(plan.steps) * plan.seconds + START_S * max(plan.steps))


def left_s(plan: Plan, turns: Sequence[Turn], measurements: Sequence[Measurement]) -> float:
    """Return the seconds that these turns take, by the forecast and by how right it was so far."""
    measured_s = sum(measurement.measured_s for measurement in measurements)
    expected_s = sum(
        _part_load_s(plan, measurement.workers, STEADY) for measurement in measurements
    )
    pace = measured_s / (expected_s or 1.0) or 1.0
    lengths = (turn.length_s or pace * _part_load_s(plan, turn.workers, STEADY) for turn in turns)
    return sum(length + plan.seconds for length in lengths)


def longest_load_s(plan: Plan) -> float:
    """Return the seconds under load at most, unless parts warm up longer than planned."""
    step_s = plan.longest_s + (plan.warmup_s or 0.0)
    if plan.step_s:
        step_s = PARTS * plan.fixed_part_s
    return step_s * len(plan.steps) * plan.repeats


def _part_load_s(plan: Plan, workers: int, spread: float) -> float:
    """Return the seconds of load of one part of a step."""
    if plan.step_s:
        return plan.fixed_part_s
    # one more, since each worker's first request only starts its cycle
    needed = math.ceil((1.96 * spread / plan.precision) ** 2 / workers / PARTS) + 1
    seconds = (plan.warmup_s or 0.0) + max(least_per_worker(workers), needed) * plan.seconds
    return min(plan.longest_part_s, max(SHORTEST_STEP_S / PARTS, seconds))

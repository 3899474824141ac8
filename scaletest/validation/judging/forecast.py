"""Forecast of a run: how long its steps take.

A step whose run times have the coefficient of variation c needs n = (1.96 c / precision)^2 cycles
of all its workers, never less than 8 completions in all and 3 a worker, never less than the
shortest nor more than the longest step. This is an upper bound: a step also ends when its doubling
is decided. Every step has two parts, each with half of that; where these decide nothing further
parts follow, up to the longest time of the run.
"""

import math
from collections.abc import Mapping, Sequence

from scaletest.model import Measurement
from scaletest.model.run_progress import TimeLeft
from scaletest.stats.student import NORMAL_95
from scaletest.validation.judging.schedule import Turn
from scaletest.validation.judging.stopping import CAUSE_S, PARTS, SHORTEST_STEP_S
from scaletest.validation.judging.throughput import least_per_worker
from scaletest.validation.plan import Plan

# Starting a worker process, and noticing that it serves.
START_S = 0.3
# The coefficient of variation of the run times of steady requests.
STEADY_VARIATION = 0.005
# A larger step needs this part of the time of the last one, at least.
LEAST_SHARE_OF_LAST_STEP = 0.25
# Storing a step and judging it.
STORE_S = 0.3
# From when a part may end until it does, at most.
STOP_DELAY_S = 0.5


def expected_run_s(plan: Plan) -> float:
    """Return the seconds of the whole run if it scales ideally, with steady requests."""
    load_s = PARTS * sum(_part_load_s(plan, workers, plan.seconds) for workers in plan.steps)
    return plan.repeats * load_s + _without_load_s(plan)


def longest_run_s(plan: Plan) -> float:
    """Return the seconds of the whole run if each step is measured for as long as it may be."""
    return longest_load_s(plan) + _without_load_s(plan)


def _without_load_s(plan: Plan) -> float:
    """Return the seconds until workers serve and until the last requests of parts have ended."""
    return plan.repeats * (PARTS * len(plan.steps) * plan.seconds + START_S * max(plan.steps))


def time_left(
    plan: Plan,
    turns: Sequence[Turn],
    measurements: Sequence[Measurement],
    request_s: Mapping[int, float],
) -> TimeLeft | None:
    """Return the seconds that these turns take; None before the first step was measured.

    request_s: mean seconds of a request, by the number of workers that was measured.
    """
    if not request_s:
        return None
    scale_s = max(measurement.scale_s for measurement in measurements)
    parts = _expect_parts(plan, measurements, request_s)
    least_s = most_s = 0.0
    for turn in turns:
        part = parts[turn.workers]
        # a turn of a further pair, whose steps were measured, may have another length
        other_s = turn.length_s - part.least_s if turn.length_s else 0.0
        least_s += other_s + part.least_s
        most_s += other_s + part.most_s + scale_s + STORE_S
    return TimeLeft(least_s, most_s)


def _expect_parts(
    plan: Plan, measurements: Sequence[Measurement], request_s: Mapping[int, float]
) -> dict[int, TimeLeft]:
    """Return how long a part of every step takes, by its number of workers.

    The longer end includes the requests that are in flight at the end of the load. A step that was
    measured takes as long again. In a larger one requests take as long as in the last one measured,
    or there is no more throughput: then they take longer by the factor of the workers, and with
    further doublings by what the last one that was measured cost.
    """
    taken_s = {measurement.workers: measurement.measured_s for measurement in measurements}
    *_, before, last = [min(request_s), *sorted(request_s)]
    last_slowdown = max(1.0, request_s[last] / request_s[before])
    # requests of the measured step that needed most
    most_requests = max(taken_s[workers] * workers / request_s[workers] for workers in request_s)
    slowest_s, fewer_workers = request_s[last], last
    expected = {}
    for workers in plan.steps:
        if workers in request_s:
            part_s = plan.fixed_part_s if plan.step_s else taken_s[workers]
            expected[workers] = TimeLeft(part_s, part_s + request_s[workers])
            continue
        if fewer_workers == last:
            slowest_s *= workers / fewer_workers
        else:
            slowest_s *= last_slowdown
        fewer_workers = workers
        least_s = _part_load_s(plan, workers, request_s[last])
        most_s = _part_load_s(plan, workers, slowest_s)
        if not plan.step_s:
            # a doubling may be decided early, and requests that scatter need as many as before
            least_s = max(least_s, taken_s[last] * last / workers * LEAST_SHARE_OF_LAST_STEP)
            most_s = max(most_s, most_requests * slowest_s / workers, CAUSE_S + STOP_DELAY_S)
            most_s = min(most_s, max(plan.longest_part_s, taken_s[last]))
        expected[workers] = TimeLeft(least_s, most_s + slowest_s)
    return expected


def longest_load_s(plan: Plan) -> float:
    """Return the seconds under load at most, unless parts warm up longer than planned."""
    step_s = plan.longest_s + (plan.warmup_s or 0.0)
    if plan.step_s:
        step_s = PARTS * plan.fixed_part_s
    return step_s * len(plan.steps) * plan.repeats


def _part_load_s(plan: Plan, workers: int, request_s: float) -> float:
    """Return the seconds of load of one part of a step, with steady requests of this length."""
    if plan.step_s:
        return plan.fixed_part_s
    # one more, since each worker's first request only starts its cycle
    cycles = (NORMAL_95 * STEADY_VARIATION / plan.precision) ** 2
    needed = math.ceil(cycles / workers / PARTS) + 1
    seconds = (plan.warmup_s or 0.0) + max(least_per_worker(workers), needed) * request_s
    return min(plan.longest_part_s, max(SHORTEST_STEP_S / PARTS, seconds))

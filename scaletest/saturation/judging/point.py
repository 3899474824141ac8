"""The saturation point in requests a second, and the rates that the steps around it prove."""

import math
import statistics

from scaletest.saturation.judging.backlog import pool
from scaletest.saturation.judging.closed_search import PLATEAU_SHARE
from scaletest.saturation.judging.sequence import SaturationSequence, at_level, search_steps
from scaletest.stats.estimate import Estimate


def saturation_point(course: SaturationSequence) -> Estimate | None:
    """Return the saturation point in requests/s; None when there is none."""
    bracket, capacity = course.bracket, course.capacity
    if bracket is None or capacity is None:
        return None
    if course.plan.open:
        # the bracket, as wide as its ends are sure
        high = math.inf if bracket.high is None else highest_possible_rate(course, bracket.high)
        return Estimate(capacity, proven_rate(course, capacity), high)
    # the plateau is the best of several steps, so it errs upwards: the interval lies around the
    # mean of all steps on it, as wide as the widest
    rates = [step.goodput for step in search_steps(course) if not step.tester]
    on_plateau = [rate for rate in rates if rate.value >= PLATEAU_SHARE * capacity]
    if not on_plateau:
        return Estimate(capacity, 0.0, math.inf)
    middle = statistics.fmean(rate.value for rate in on_plateau)
    half = max(rate.high - rate.value for rate in on_plateau)
    low, high = max(0.0, middle - half), middle + half
    return Estimate(capacity, min(capacity, low), max(capacity, high))


def proven_rate(course: SaturationSequence, level: float) -> float:
    """Return the rate that a level that held proves, 0 where that is unknown.

    It is the offered rate less the possible growth of its backlog.
    """
    steps = [step for step in at_level(course, level) if step.growth]
    grown = [step.growth for step in steps if step.growth]
    if not grown:
        return 0.0
    offered = statistics.fmean(step.offered for step in steps)
    return max(0.0, min(level, offered) - max(0.0, pool(grown).high))


def highest_possible_rate(course: SaturationSequence, level: float) -> float:
    """Return the rate that a level that failed proves to be too much.

    It is the level, unless its throughput was higher; some requests may always fail.
    """
    highest = [level]
    for step in at_level(course, level):
        if math.isfinite(step.goodput.high):
            success = course.plan.success if step.errors else 1.0
            highest.append(step.goodput.high / success)
    return max(highest)

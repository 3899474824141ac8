"""The saturation point in requests a second, and the rates that the steps around it prove."""

import math
import statistics

from scaletest.saturation.judging.backlog import pool_estimates
from scaletest.saturation.judging.search_closed_load import PLATEAU_SHARE
from scaletest.saturation.judging.step_sequence import (
    SaturationSequence,
    search_steps,
    steps_at_level,
)
from scaletest.stats.estimate import Estimate


def saturation_point(sequence: SaturationSequence) -> Estimate | None:
    """Return the saturation point in requests/s; None when there is none."""
    bracket, capacity = sequence.bracket, sequence.capacity
    if bracket is None or capacity is None:
        return None
    if sequence.plan.open:
        # the bracket, as wide as its ends are sure
        high = math.inf if bracket.high is None else highest_possible_rate(sequence, bracket.high)
        return Estimate(capacity, proven_rate(sequence, capacity), high)
    # the plateau is the best of several steps, so it errs upwards: the interval lies around the
    # mean of all steps on it, as wide as the widest
    on_plateau = [
        step.goodput
        for step in search_steps(sequence)
        if not step.tester and step.goodput.value >= PLATEAU_SHARE * capacity
    ]
    if not on_plateau:
        return Estimate(capacity, 0.0, math.inf)
    middle = statistics.fmean(rate.value for rate in on_plateau)
    half = max(rate.high - rate.value for rate in on_plateau)
    low, high = max(0.0, middle - half), middle + half
    return Estimate(capacity, min(capacity, low), max(capacity, high))


def proven_rate(sequence: SaturationSequence, level: float) -> float:
    """Return the rate that a level that held proves, 0 where that is unknown.

    It is the offered rate less the possible growth of its backlog.
    """
    growths, offered = [], []
    for step in steps_at_level(sequence, level):
        if step.growth:
            growths.append(step.growth)
            offered.append(step.offered)
    if not growths:
        return 0.0
    offered_per_s = min(level, statistics.fmean(offered))
    return max(0.0, offered_per_s - max(0.0, pool_estimates(growths).high))


def highest_possible_rate(sequence: SaturationSequence, level: float) -> float:
    """Return the rate that a level that failed proves to be too much.

    It is the level, unless its throughput was higher; some requests may always fail.
    """
    highest = [level]
    for step in steps_at_level(sequence, level):
        if math.isfinite(step.goodput.high):
            success = sequence.plan.success if step.errors else 1.0
            highest.append(step.goodput.high / success)
    return max(highest)

"""How the machine changed along a run that measures its steps on the way up and on the way down.

The two measurements of a step lie the farther apart the fewer workers it has, all around the middle
of the run. So a change by the same part every second makes the logarithm of down over up
proportional to the time between, and cancels in the mean of both; a jump makes it the same for all
steps around it, and does not cancel. A trend counts only where the straight line fits and the best
jump does not: chi square of the line within chance (1 %), and that of the jump larger by six, a
likelihood ratio of 20 (Burnham and Anderson 2002 call that "considerably less support").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.stats.student import chi_square_limit
from scaletest.validation.judging.step_parts import (
    StepPart,
    middle_of,
    parts_to_judge,
    tail_of,
    throughput_of_parts,
)

# A trend needs so many steps; and the best jump a chi square that is larger by so much.
LEAST_STEPS = 3
LESS_SUPPORT = 6.0
# Two measurements of one step differ by this relative standard deviation without a cause.
NUISANCE = 0.001
# A straight line fits, or the ways differ by chance alone, in all but this part of cases.
LINE_ERROR, SCATTER_ERROR = 0.01, 0.20


@dataclass(frozen=True, slots=True)
class UpAndDown:
    """One step measured on the way up and on the way down."""

    seconds: float  # from the middle of the one to that of the other
    change: float  # logarithm of the throughput on the way down over that on the way up
    error: float  # its standard error

    @property
    def weight(self) -> float:
        """One over the variance."""
        return 1.0 / (self.error**2 + NUISANCE**2)


@dataclass(frozen=True, slots=True)
class MachineTrend:
    """How the machine changed along a run."""

    # its steady relative change per second, as a logarithm; 0 where none is certain
    per_s: float = 0.0
    # By which factor the ways differ more than the scatter of requests explains, to widen errors; 1
    # where chance explains it. One number for all steps (Birge 1932), since few steps know little
    # each.
    scatter_factor: float = 1.0


STEADY = MachineTrend()


def trend_of_run(steps: Sequence[Sequence[StepPart]]) -> MachineTrend:
    """Return how the machine changed along the run, by both ways of each step's judged parts."""
    return fit_trend(list(filter(None, map(_up_and_down, steps))))


def fit_trend(both_ways: Sequence[UpAndDown]) -> MachineTrend:
    """Return the trend by the two ways of all steps together."""
    steps = [step for step in both_ways if math.isfinite(step.error) and step.seconds > 0]
    gaps = [step.seconds for step in steps]
    slope, misfit = _fit_pattern(steps, gaps)
    freedom = len(steps) - 1
    # the steady change, unless it may have been a jump
    per_s = 0.0
    if len(steps) >= LEAST_STEPS and misfit <= chi_square_limit(freedom, LINE_ERROR):
        jumps = (_fit_pattern(steps, [float(gap >= least) for gap in gaps])[1] for least in gaps)
        per_s = slope if min(jumps) - misfit >= LESS_SUPPORT else 0.0
    # a steady change cancels, whether or not it is certain that it was steady
    if freedom < 1 or misfit <= chi_square_limit(freedom, SCATTER_ERROR):
        return MachineTrend(per_s)
    return MachineTrend(per_s, math.sqrt(misfit / freedom))


def _fit_pattern(steps: Sequence[UpAndDown], pattern: Sequence[float]) -> tuple[float, float]:
    """Return the factor on the pattern closest to the changes, and chi square of the rest."""
    pairs = list(zip(steps, pattern, strict=True))
    denominator = sum(step.weight * part**2 for step, part in pairs)
    factor = 0.0
    if denominator:
        factor = sum(step.weight * part * step.change for step, part in pairs) / denominator
    return factor, sum(step.weight * (step.change - factor * part) ** 2 for step, part in pairs)


def _up_and_down(parts: Sequence[StepPart]) -> UpAndDown | None:
    """Return the change of a step from its way up to its way down; None without both.

    By its judged parts, and by their usual requests where some were slow.
    """
    sound = [part for part in parts_to_judge(parts) if part.sound]
    up_parts = [part for part in sound if not part.down]
    down_parts = [part for part in sound if part.down]
    if not up_parts or not down_parts:
        return None
    seconds = middle_of(down_parts) - middle_of(up_parts)
    up, down = tail_of(up_parts), tail_of(down_parts)
    if up.slow or down.slow:
        if not up.usual or not down.usual:
            return None
        error = math.hypot(up.error, down.error)
        return UpAndDown(seconds, math.log(up.usual_s / down.usual_s), error)
    up_rate, down_rate = throughput_of_parts(up_parts), throughput_of_parts(down_parts)
    if up_rate.per_s <= 0 or down_rate.per_s <= 0:
        return None
    error = math.hypot(up_rate.error, down_rate.error)
    return UpAndDown(seconds, math.log(down_rate.per_s / up_rate.per_s), error)

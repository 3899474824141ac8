"""How the machine changed along a run that measures its steps on the way up and on the way down.

The two measurements of a step lie the farther apart the fewer workers it has, all around the middle
of the run. So a change by the same part every second makes the logarithm of down over up
proportional to the time between, and cancels in the mean of both; a jump makes it the same for all
steps around it, and does not cancel. A trend counts only where the straight line fits and the best
jump does not: chi square of the line within chance (1 %), and that of the jump larger by six, a
likelihood ratio of 20 (Burnham and Anderson 2002 call that "considerably less support").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

FEWEST_STEPS = 3
LESS_SUPPORT = 6.0
# Two measurements of one step differ by this relative standard deviation without a cause.
NUISANCE = 0.001
LINE_ERROR, SHAKEN_ERROR = 0.01, 0.20


@dataclass(frozen=True, slots=True)
class UpAndDown:
    """One step measured on the way up and on the way down.

    seconds: from the middle of the one to that of the other. change: logarithm of the throughput on
    the way down over that on the way up; error: its standard error.
    """

    seconds: float
    change: float
    error: float

    @property
    def weight(self) -> float:
        """One over the variance."""
        return 1.0 / (self.error**2 + NUISANCE**2)


@dataclass(frozen=True, slots=True)
class MachineTrend:
    """How the machine changed along a run.

    per_s: its steady relative change per second, as a logarithm; 0 where none is certain. shaken:
    by which factor the ways differ more than the scatter of requests explains, to widen errors; 1
    where chance explains it. One number for all steps (Birge 1932), since few steps know little
    each.
    """

    per_s: float = 0.0
    shaken: float = 1.0


def machine_trend(both_ways: Sequence[UpAndDown]) -> MachineTrend:
    """The trend by the two ways of all steps together."""
    steps = [step for step in both_ways if math.isfinite(step.error) and step.seconds > 0]
    per_s, freedom = _trend(steps), len(steps) - 1
    # a steady change cancels, whether or not it is certain that it was steady
    misfit = _fit(steps, [step.seconds for step in steps])[1]
    if freedom < 1 or misfit <= chi_square_limit(freedom, SHAKEN_ERROR):
        return MachineTrend(per_s)
    return MachineTrend(per_s, math.sqrt(misfit / freedom))


def _trend(steps: Sequence[UpAndDown]) -> float:
    """The steady change; 0 where there is none, or it may have been a jump."""
    if len(steps) < FEWEST_STEPS:
        return 0.0
    gaps = [step.seconds for step in steps]
    slope, misfit = _fit(steps, gaps)
    jumps = []
    for least in gaps:
        jump = [float(gap >= least) for gap in gaps]
        jumps.append(_fit(steps, jump)[1])
    line_fits = misfit <= chi_square_limit(len(steps) - 1, LINE_ERROR)
    if line_fits and min(jumps) - misfit >= LESS_SUPPORT:
        return slope
    return 0.0


def chi_square_limit(freedom: int, error: float) -> float:
    """The number that chi square exceeds with that probability (Wilson, Hilferty 1931; to 2 %)."""
    part = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - part + NormalDist().inv_cdf(1.0 - error) * math.sqrt(part)) ** 3


def _fit(steps: Sequence[UpAndDown], pattern: Sequence[float]) -> tuple[float, float]:
    """The factor on the pattern that is closest to the changes, and chi square of what remains."""
    pairs = list(zip(steps, pattern, strict=True))
    below = sum(step.weight * part**2 for step, part in pairs)
    factor = 0.0
    if below:
        factor = sum(step.weight * part * step.change for step, part in pairs) / below
    return factor, sum(step.weight * (step.change - factor * part) ** 2 for step, part in pairs)

"""Whether the machine changed along a run that measures its steps on the way up and again on the way down.

The two measurings of a step lie the farther apart the fewer workers it has, all around the middle of the run. So a
change by the same part every second makes the logarithm of down over up proportional to the time between, and cancels
in the mean of both; a jump makes it the same for all steps around it, and does not cancel. A trend counts only where
the straight line fits and the best jump does not: chi square of the line within chance (1 %), and that of the jump
larger by six, a likelihood ratio of 20 (Burnham and Anderson 2002 call that "considerably less support").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

FEWEST_STEPS = 3
LESS_SUPPORT = 6.0
# Two measurings of one step differ by so much without a reason (standard deviation, relative).
NUISANCE = 0.001
LINE_ERROR, SHAKEN_ERROR = 0.01, 0.20


@dataclass(frozen=True, slots=True)
class UpAndDown:
    """One step measured on the way up and on the way down. seconds: from the middle of the one to that of the other.

    change: logarithm of the throughput on the way down over that on the way up; error: its standard error.
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
    """What the machine did along a run. per_s: its steady relative change per second, as a logarithm; 0 for none told.

    shaken: how much more the ways differ than the scatter of requests explains, as a factor on errors; 1 where chance
    does it. One number for all steps (Birge 1932), since few steps know little each.
    """

    per_s: float = 0.0
    shaken: float = 1.0


def machine_trend(halves: Sequence[UpAndDown]) -> MachineTrend:
    """What the two ways of all steps say together."""
    rows = [row for row in halves if math.isfinite(row.error) and row.seconds > 0]
    per_s, freedom = _trend(rows), len(rows) - 1
    # what a straight line explains cancels, whether or not it is certain that it was one
    misfit = _fit(rows, [row.seconds for row in rows])[1]
    if freedom < 1 or misfit <= chi_square_limit(freedom, SHAKEN_ERROR):
        return MachineTrend(per_s)
    return MachineTrend(per_s, math.sqrt(misfit / freedom))


def _trend(rows: Sequence[UpAndDown]) -> float:
    """The steady change; 0 where it is none, or may have been a jump."""
    if len(rows) < FEWEST_STEPS:
        return 0.0
    gaps = [row.seconds for row in rows]
    slope, misfit = _fit(rows, gaps)
    jumps = [_fit(rows, [float(gap >= least) for gap in gaps])[1] for least in gaps]
    line_fits = misfit <= chi_square_limit(len(rows) - 1, LINE_ERROR)
    return slope if line_fits and min(jumps) - misfit >= LESS_SUPPORT else 0.0


def chi_square_limit(freedom: int, error: float) -> float:
    """What chi square exceeds with that probability (Wilson and Hilferty 1931, right to 2 %)."""
    part = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - part + NormalDist().inv_cdf(1.0 - error) * math.sqrt(part)) ** 3


def _fit(rows: Sequence[UpAndDown], pattern: Sequence[float]) -> tuple[float, float]:
    """The factor on the pattern that is closest to the changes, and chi square of what remains."""
    pairs = list(zip(rows, pattern, strict=True))
    below = sum(row.weight * value**2 for row, value in pairs)
    factor = sum(row.weight * value * row.change for row, value in pairs) / below if below else 0.0
    return factor, sum(row.weight * (row.change - factor * value) ** 2 for row, value in pairs)

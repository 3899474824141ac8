"""The law that the points prefer, by Akaike's criterion.

A law with k parameters needs n >= k + 2 points, since corrected AIC divides by n - k - 1, and
points at several numbers of workers: repeats at the same ones show the noise, and not the curve
between and beyond.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import called, flat
from scaletest.model.writing import Written
from scaletest.stats.law import LAWS, PARAMETERS, Law, Point, fit, squared_residuals

# Different numbers of workers that a law needs to differ from a simpler one, whatever the repeats.
STEPS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 3}
# Laws whose criteria differ by less are supported equally well.
EQUALLY_GOOD = 2.0
# A ceiling this near to the straight line at the largest number of workers may be any small loss.
NEAR_LINE = 0.95


def missing_steps(workers: Sequence[float]) -> dict[str, int]:
    """Return the laws for which these points are too few, with the further steps that suffice.

    workers: the number of workers of each point, so that every repeat is listed.
    """
    distinct = len(set(workers))
    steps = {
        name: max(PARAMETERS[name] + 2 - len(workers), STEPS[name] - distinct) for name in LAWS
    }
    return {name: count for name, count in steps.items() if count > 0}


@dataclass(frozen=True, slots=True)
class Choice(Written):
    """The law that AIC prefers among those with enough points (see `missing_steps`)."""

    law: Annotated[Law, flat()]
    criteria: Annotated[
        dict[str, float], "corrected AIC of every law that was fitted; the least is chosen"
    ]
    too_few: Annotated[
        tuple[str, ...], called("too_few_points_for"), "laws that were left out for lack of points."
    ]


def choose(points: Sequence[Point], spreads: Sequence[float] | None = None) -> Choice | None:
    """Return the best law by AICc; None where points suffice for the linear law at most.

    One law alone says nothing. spreads: relative standard deviation of each point, where known.
    Then the criterion is chi^2 + 2 k, which needs no correction for an estimated spread, and the
    simplest law within 2 of the best counts (Burnham and Anderson 2002): five precise points are
    enough to show a coherency.

    A ceiling that stays within 5 % of the straight line is not counted: overhead of 1 % looks like
    that.
    """
    too_few = missing_steps([workers for workers, _ in points])
    fitted = {name: fit(name, points) for name in LAWS if name not in too_few}
    capped = fitted.get("capped")
    if capped and capped.ceiling > NEAR_LINE * capped.rate * max(n for n, _ in points):
        del fitted["capped"]
    if len(fitted) < 2:
        return None
    if spreads is None:
        criteria = {name: aicc(points, law, PARAMETERS[name]) for name, law in fitted.items()}
        best = min(criteria, key=lambda name: (criteria[name], PARAMETERS[name]))
    else:
        criteria = {
            name: aic(points, law, PARAMETERS[name], spreads) for name, law in fitted.items()
        }
        near = [
            name for name in criteria if criteria[name] <= min(criteria.values()) + EQUALLY_GOOD
        ]
        best = min(near, key=lambda name: (PARAMETERS[name], criteria[name]))
    return Choice(fitted[best], criteria, tuple(too_few))


def aic(points: Sequence[Point], law: Law, parameters: int, spreads: Sequence[float]) -> float:
    """Return Akaike's criterion for known relative spreads: chi^2 of the logarithms + 2 k.

    Low is good.
    """
    residuals = (math.log(law.at(workers) / rate) for workers, rate in points)
    pairs = zip(residuals, spreads, strict=True)
    return sum((residual / spread) ** 2 for residual, spread in pairs) + 2.0 * parameters


def aicc(points: Sequence[Point], law: Law, parameters: int) -> float:
    """Return the corrected Akaike criterion of relative residuals.

    Low is good; it is infinite below n = k + 2.
    """
    n, k = len(points), parameters
    squares = max(squared_residuals(points, law), n * 1e-12)
    correction = 2 * k * (k + 1) / (n - k - 1) if n > k + 1 else math.inf
    return n * math.log(squares / n) + 2 * k + correction

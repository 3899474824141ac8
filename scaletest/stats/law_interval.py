"""95 % intervals of the coefficients of a fitted law, by bootstrap.

The residuals r = X / X_fitted are multiplicative. Their logarithms, widened by sqrt(n / (n - k))
for the k parameters that the fit used up and by t / 1.96 for how badly n - k degrees of freedom
know a spread, are drawn again over all points, the same law is fitted to each draw, and the middle
95 % of its coefficients are the interval. Drawing repeats within a number of workers instead covers
only 63-92 % with three repeats.

With known spreads of the points and less than 10 degrees of freedom left, each point is drawn
log-normally with its own instead; but when the residuals scatter more than the spreads
allow, they count, with t's factor.

The truth was covered in 89 to 99 % of simulated runs (docs/statistics.md). The law is assumed to be
true: where too few points made AICc choose Amdahl for a truth with coherency, its contention holds
a part of the coherency and its interval misses a.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import named_in_documents
from scaletest.model.writing import Written
from scaletest.stats.chance import Chance
from scaletest.stats.estimate import Estimate
from scaletest.stats.law import PARAMETERS, Law, Point, fit_law
from scaletest.stats.student import t95

DRAWS = 500
_NORMAL = t95(math.inf)
# With as many degrees of freedom the residuals themselves tell the spread well enough.
_ENOUGH_FREEDOM = 10
# Laws that have a coefficient, the simplest first.
_LAWS_WITH = {
    "contention": ("amdahl", "usl"),
    "coherency": ("usl",),
    "ceiling": ("capped",),
    "peak": ("usl",),
}


@dataclass(frozen=True, slots=True)
class LawInterval(Written):
    """The coefficients of a law with intervals; None for those that the law does not have."""

    description = "by bootstrap"

    rate: Annotated[Estimate, named_in_documents("rate_per_s"), "value with its 95 % interval"]
    contention: Annotated[Estimate | None, "value with its 95 % interval"]
    coherency: Annotated[Estimate | None, "value with its 95 % interval"]
    ceiling: Annotated[
        Estimate | None, named_in_documents("ceiling_per_s"), "value with its 95 % interval"
    ]
    peak: Annotated[
        Estimate | None, named_in_documents("peak_workers"), "value with its 95 % interval"
    ]


def law_interval(
    law: Law,
    points: Sequence[Point],
    chance: Chance,
    *,
    spreads: Sequence[float] | None = None,
    draws: int = DRAWS,
) -> LawInterval | None:
    """Return intervals of `law` as it was fitted to `points`.

    None when the points are not more than its parameters.
    spreads: relative standard deviation of each point, where known, as for `choose_law`.
    """
    freedom = len(points) - PARAMETERS[law.name]
    if freedom < 1:
        return None
    draw_deviation = _deviations(law, points, freedom, chance, spreads=spreads)
    redrawn_laws = []
    for _ in range(draws):
        redrawn = [
            (n, law.at(n) * math.exp(draw_deviation(index))) for index, (n, _) in enumerate(points)
        ]
        redrawn_laws.append(fit_law(law.name, redrawn))

    def interval_of(name: str) -> Estimate | None:
        """Return the interval of a coefficient; None where the law does not have it."""
        if law.name not in _LAWS_WITH[name]:
            return None
        values = [getattr(fit, name) for fit in (law, *redrawn_laws)]
        # a throughput that never falls has its peak at infinity
        fitted, *drawn = [math.inf if value is None else value for value in values]
        return _middle_95(fitted, drawn)

    return LawInterval(
        rate=_middle_95(law.rate, [redrawn_law.rate for redrawn_law in redrawn_laws]),
        contention=interval_of("contention"),
        coherency=interval_of("coherency"),
        ceiling=interval_of("ceiling"),
        peak=interval_of("peak"),
    )


def _deviations(
    law: Law,
    points: Sequence[Point],
    freedom: int,
    chance: Chance,
    *,
    spreads: Sequence[float] | None,
) -> Callable[[int], float]:
    """Return a function that draws the logarithm of a deviation for the point of that index."""
    residuals = [math.log(rate / law.at(workers)) for workers, rate in points]
    widening = t95(freedom) / _NORMAL
    if spreads is None or freedom >= _ENOUGH_FREEDOM:
        widened = [residual * widening * math.sqrt(len(points) / freedom) for residual in residuals]
        return lambda index: chance.choice(widened)
    scatter = math.sqrt(sum(residual**2 for residual in residuals) / freedom)
    allowed = math.sqrt(sum(spread**2 for spread in spreads) / len(spreads))
    least_spread = scatter * widening if scatter > allowed else 0.0
    return lambda index: chance.gauss(0.0, max(spreads[index], least_spread))


def _middle_95(fitted: float, drawn: Sequence[float]) -> Estimate:
    """Return the fitted coefficient with the middle 95 % of those drawn.

    The ends are drawn ones, since no number lies between a finite one and infinity.
    """
    ordered = sorted(drawn)
    outside = int(0.025 * len(ordered))
    low, high = ordered[outside], ordered[-1 - outside]
    return Estimate(fitted, min(fitted, low), max(fitted, high))

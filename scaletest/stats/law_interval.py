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
from dataclasses import dataclass, replace
from typing import Annotated

from scaletest.model.declared import named_in_documents
from scaletest.model.writing import Written
from scaletest.stats.chance import Chance
from scaletest.stats.estimate import Estimate
from scaletest.stats.law import EQUALLY_GOOD, PARAMETERS, Law, Point, choose_law, fit_law
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


def law_coefficients(
    points: Sequence[Point], chance: Chance, spreads: Sequence[float] | None = None
) -> dict[str, Estimate]:
    """Return contention and coherency by name, with their intervals, for thresholds.

    A run that scales linearly has no contention in its law, and still a threshold may ask that it
    be below 5 %. So the interval is that of the chosen law when it has the coefficient, else of the
    simplest good one that has it. Under a ceiling neither is a true description; the contention is
    then large, as it should be. One is missing where the points are too few for every law that has
    it.

    spreads: relative standard deviation of each point, where known, as for `choose_law`.
    """
    choice = choose_law(points, spreads)
    if choice is None:
        return {}
    estimates: dict[str, Estimate] = {}
    for name in ("contention", "coherency"):
        laws = _LAWS_WITH[name]
        # the chosen law if it is one of these, else the first that is as good
        criteria = {law: choice.criteria[law] for law in laws if law in choice.criteria}
        limit = min(criteria.values(), default=0.0) + EQUALLY_GOOD
        good = [law for law, criterion in criteria.items() if criterion <= limit]
        law = choice.law.name if choice.law.name in laws else next(iter(good), "")
        if law:
            # a fit that ends at 0 is called linear; its interval is wanted all the same
            fitted = replace(fit_law(law, points), name=law)
            estimate = getattr(law_interval(fitted, points, chance, spreads=spreads), name, None)
            if estimate is not None:
                estimates[name] = estimate
    return estimates

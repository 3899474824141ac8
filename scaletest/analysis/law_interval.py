"""How sure a fitted law is: 95 % intervals of its coefficients by bootstrap.

The residuals r = X / X_fitted are multiplicative. Their logarithms, widened by sqrt(n / (n - k))
for the k parameters that the fit used up and by t / 1.96 for how badly n - k degrees of freedom
know a spread, are drawn again over all points, the same law is fitted to each draw, and the middle
95 % of its coefficients are the interval. Drawing repeats within a number of workers instead covers
only 63-92 % with three repeats.

With half-widths of the points and less than 10 degrees of freedom left, each point is drawn
log-normally with its own spread instead; but when the residuals scatter more than the half-widths
allow, they count, with t's factor.

How often the truth was covered, per cent of 300 runs with 200 draws each, at 2 % / 5 % noise;
"known" are half-widths that tell the whole noise, "understated" ones that tell 40 % of it:

    truth                 points                          rate       a       b       C
    a = .03, b = .005     N = 1,2,4,8 x 3                92 / 93  96 / 98  94 / 99
                          N = 1,2,4,8,16 x 5             94 / 95  92 / 92  92 / 91
                          N = 1,2,4,8,16                 93 / 94  96 / 96  95 / 96
                          N = 1,2,4,8,16  known          96 / 97  97 / 98  97 / 98
                          N = 1,2,4,8,16  understated    91 / 91  92 / 94  93 / 94
    a = .05               N = 1,2,4,8 x 3                93 / 93  92 / 92
                          N = 1,2,4,8                    93 / 93  94 / 94
                          N = 1,2,4,8     known          96 / 96  98 / 98
                          N = 1,2,4,8     understated    90 / 89  91 / 91
    C at 4.5 workers      N = 1,2,4,8 x 3                94 / 93                    92 / 91
                          N = 1,2,4,8                    90 / 90                    89 / 89
                          N = 1,2,4,8     known          96 / 96                    96 / 95
    linear                N = 1,2,4,8 x 3                95 / 95
                          N = 1,2,4,8                    92 / 92

The law is assumed to be true. Where too few points made AICc choose Amdahl for a truth with
coherency, its contention holds a part of the coherency and its interval misses a: check
`separability` before the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.law import Law, Point, fit
from scaletest.analysis.law_requirements import PARAMETERS
from scaletest.analysis.student_t import t95

DRAWS = 500
_NORMAL = t95(math.inf)
# With more degrees of freedom the residuals themselves know the spread well enough.
_FEW = 10
_T = TypeVar("_T")


class Chance(Protocol):
    """The part of random.Random that resampling uses."""

    def choice(self, seq: Sequence[_T], /) -> _T:
        """A member of the sequence, each equally likely."""

    def gauss(self, mu: float, sigma: float, /) -> float:
        """A normal variable."""


@dataclass(frozen=True, slots=True)
class LawInterval:
    """The coefficients of a law with intervals; None for those that the law does not have.

    rate, ceiling: requests/s. peak: workers at the maximum, infinite where the throughput never
    falls.
    """

    rate: Estimate
    contention: Estimate | None
    coherency: Estimate | None
    ceiling: Estimate | None
    peak: Estimate | None

    def to_dict(self) -> dict[str, dict[str, float | None] | None]:
        """Plain values for JSON; missing and infinite ones are null."""
        return {
            "rate_per_s": self.rate.to_dict(),
            "contention": self.contention.to_dict() if self.contention else None,
            "coherency": self.coherency.to_dict() if self.coherency else None,
            "ceiling_per_s": self.ceiling.to_dict() if self.ceiling else None,
            "peak_workers": self.peak.to_dict() if self.peak else None,
        }


def law_interval(
    law: Law,
    points: Sequence[Point],
    chance: Chance,
    *,
    relative: Sequence[float] | None = None,
    draws: int = DRAWS,
) -> LawInterval | None:
    """Intervals of `law` as it was fitted to `points`; None when the points are not more than its
    parameters.

    relative: half-width of each point's 95 % interval over its throughput, where known.
    """
    freedom = len(points) - PARAMETERS[law.name]
    if freedom < 1:
        return None
    noise = _noise(law, points, freedom, chance, relative)
    fitted = [(workers, law.at(workers)) for workers, _ in points]
    laws = []
    for _ in range(draws):
        drawn_points = []
        for index, (workers, rate) in enumerate(fitted):
            drawn_points.append((workers, rate * math.exp(noise(index))))
        laws.append(fit(law.name, drawn_points))

    def of(coefficient: Callable[[Law], float], *names: str) -> Estimate | None:
        if law.name in names:
            return _middle(coefficient(law), [coefficient(drawn) for drawn in laws])
        return None

    return LawInterval(
        rate=_middle(law.rate, [drawn.rate for drawn in laws]),
        contention=of(lambda drawn: drawn.contention, "amdahl", "usl"),
        coherency=of(lambda drawn: drawn.coherency, "usl"),
        ceiling=of(lambda drawn: drawn.ceiling, "capped"),
        peak=of(lambda drawn: math.inf if drawn.peak is None else drawn.peak, "usl"),
    )


def _noise(
    law: Law,
    points: Sequence[Point],
    freedom: int,
    chance: Chance,
    relative: Sequence[float] | None,
) -> Callable[[int], float]:
    """A function that draws the logarithm of a deviation for the point of that index."""
    residuals = [math.log(rate / law.at(workers)) for workers, rate in points]
    unsure = t95(freedom) / _NORMAL
    if relative is None or freedom >= _FEW:
        widened = [residual * unsure * math.sqrt(len(points) / freedom) for residual in residuals]
        return lambda index: chance.choice(widened)
    known = [width / _NORMAL for width in relative]
    scatter = math.sqrt(sum(residual**2 for residual in residuals) / freedom)
    allowed = math.sqrt(sum(spread**2 for spread in known) / len(known))
    least = 0.0
    if scatter > allowed:
        least = scatter * unsure
    return lambda index: chance.gauss(0.0, max(known[index], least))


def _middle(fitted: float, drawn: Sequence[float]) -> Estimate:
    """The fitted coefficient with the middle 95 % of those drawn.

    The ends are drawn ones, since no number lies between a finite one and infinity.
    """
    ordered = sorted(drawn)
    outside = int(0.025 * len(ordered))
    low, high = ordered[outside], ordered[-1 - outside]
    return Estimate(fitted, min(fitted, low), max(fitted, high))

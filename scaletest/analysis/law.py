"""Scaling laws: linear, Amdahl, Universal Scalability Law and a ceiling, chosen by corrected AIC.

    linear   X(N) = g N
    amdahl   X(N) = g N / (1 + a (N - 1))                           a: contention
    usl      X(N) = g N / (1 + a (N - 1) + b N (N - 1))             b: coherency      (Gunther 2007)
    capped   X(N) = min(g N, C)                                     C: ceiling

The first three are linear in (1/g, a/g, b/g) after N/X, so they are fitted in closed form by
weighted least squares with weights (X/N)^2, which makes the errors relative. Both coefficients are
kept at 0 or above by trying the sign
patterns: unconstrained fits of linear data turn negative 95 % of the time. The ceiling is searched
over the measured plateaus.

Contention is the part of a request for which workers wait for something that only one of them can
use at a time, such as a lock. Coherency is the time that each pair of workers costs to keep shared
data in agreement; with it, throughput falls beyond a peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.law_requirements import LAWS, PARAMETERS, lacking
from scaletest.analysis.linear_equations import solve

Point = tuple[float, float]
# Laws whose criteria differ by less are supported equally well.
EQUALLY_GOOD = 2.0
# A ceiling this near to the straight line at the largest number of workers may be any small loss.
NEAR_LINE = 0.95
# Terms of the linear equation by their coefficient; the constant has none.
_TERMS: dict[str, Callable[[float], float]] = {
    "": lambda n: 1.0,
    "a": lambda n: n - 1.0,
    "b": lambda n: n * (n - 1.0),
}


@dataclass(frozen=True, slots=True)
class Law:
    """A fitted law. rate: g, requests/s of one worker; ceiling: C in requests/s, else infinity."""

    name: str
    rate: float
    contention: float = 0.0
    coherency: float = 0.0
    ceiling: float = math.inf

    def at(self, workers: float) -> float:
        """Predicted throughput in requests/s."""
        n = workers
        scaled = self.rate * n / (1 + self.contention * (n - 1) + self.coherency * n * (n - 1))
        return min(scaled, self.ceiling)

    @property
    def peak(self) -> float | None:
        """Workers at the maximum, sqrt((1 - a) / b); None when throughput never falls."""
        if self.coherency <= 0 or self.contention >= 1:
            return None
        return math.sqrt((1 - self.contention) / self.coherency)


@dataclass(frozen=True, slots=True)
class Choice:
    """The law that AIC prefers among those with enough points (see `lacking`).

    criteria: AICc of each fitted law, or AIC where the spread of the points is known. too_few: laws
    that were left out for lack of points.
    """

    law: Law
    criteria: dict[str, float]
    too_few: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite ceiling and a missing peak are null."""
        law = self.law
        return {
            "name": law.name,
            "rate_per_s": law.rate,
            "contention": law.contention,
            "coherency": law.coherency,
            "ceiling_per_s": law.ceiling if math.isfinite(law.ceiling) else None,
            "criteria": self.criteria,
            "too_few_points_for": list(self.too_few),
        }


def fit(name: str, points: Sequence[Point]) -> Law:
    """The law `name` fitted to (workers, requests/s) points; throughputs must be above 0."""
    if name == "capped":
        return _fit_capped(points)
    if name == "linear":
        return _closed_form(points, ())
    if name == "amdahl":
        return min((_closed_form(points, ("a",)), _closed_form(points, ())), key=_misfit(points))
    patterns: tuple[tuple[str, ...], ...] = (("a", "b"), ("a",), ("b",), ())
    return min((_closed_form(points, pattern, "usl") for pattern in patterns), key=_misfit(points))


def choose(points: Sequence[Point], spreads: Sequence[float] | None = None) -> Choice | None:
    """The best law by AICc; None where points suffice for the linear law at most.

    One law alone says nothing. spreads: relative standard deviation of each point, where known.
    Then the criterion is chi^2 + 2 k, which needs no correction for an estimated spread, and the
    simplest law within 2 of the best counts (Burnham and Anderson 2002): five precise points are
    enough to show a coherency.

    A ceiling that stays within 5 % of the straight line is not counted: overhead of 1 % looks like
    that.
    """
    too_few = lacking([workers for workers, _ in points])
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
    """Akaike's criterion for known relative spreads: chi^2 of the logarithms + 2 k; low is good."""
    residuals = (math.log(law.at(workers) / rate) for workers, rate in points)
    pairs = zip(residuals, spreads, strict=True)
    return sum((residual / spread) ** 2 for residual, spread in pairs) + 2.0 * parameters


def aicc(points: Sequence[Point], law: Law, parameters: int) -> float:
    """Corrected Akaike criterion of relative residuals; low is good; infinite below n = k + 2."""
    n, k = len(points), parameters
    squares = max(sum(_relative(point, law) ** 2 for point in points), n * 1e-12)
    correction = math.inf
    if n > k + 1:
        correction = 2 * k * (k + 1) / (n - k - 1)
    return n * math.log(squares / n) + 2 * k + correction


def _relative(point: Point, law: Law) -> float:
    workers, rate = point
    return law.at(workers) / rate - 1.0


def _misfit(points: Sequence[Point]) -> Callable[[Law], float]:
    """Sum of squares, infinite for coefficients below 0."""

    def of(law: Law) -> float:
        if law.rate <= 0 or law.contention < 0 or law.coherency < 0:
            return math.inf
        return sum(_relative(point, law) ** 2 for point in points)

    return of


def _closed_form(points: Sequence[Point], free: tuple[str, ...], name: str = "") -> Law:
    """Weighted least squares of N/X = p + q (N - 1) + r N (N - 1), where p = 1/g, q = a/g, r = b/g.

    free: the coefficients that are fitted, "a" and "b"; the others are 0. Coefficients below 0 mark
    a law that cannot be solved.
    """
    terms = ("", *free)
    size = len(terms)
    matrix = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    for n, x in points:
        weight = (x / n) ** 2
        columns = [_TERMS[term](n) for term in terms]
        for i in range(size):
            right[i] += weight * columns[i] * n / x
            for j in range(size):
                matrix[i][j] += weight * columns[i] * columns[j]
    law = name or "linear"
    if free and not name:
        law = "amdahl"
    solved = solve(matrix, right)
    if solved is None or solved[0] <= 0:
        return Law(law, 0.0, -1.0, -1.0)
    scaled = [coefficient / solved[0] for coefficient in solved[1:]]
    coefficients = dict(zip(free, scaled, strict=True))
    return Law(law, 1.0 / solved[0], coefficients.get("a", 0.0), coefficients.get("b", 0.0))


def _fit_capped(points: Sequence[Point]) -> Law:
    """Fit a ceiling: try every number of workers as the first on it.

    Each side of it is a weighted mean of its own.
    """
    ordered = sorted(points)
    best = Law("capped", sum(x / n for n, x in ordered) / len(ordered))
    for split in sorted({n for n, _ in ordered})[1:]:
        rising = [x / n for n, x in ordered if n < split]
        flat = [x for n, x in ordered if n >= split]
        candidate = Law("capped", _relative_mean(rising), ceiling=_relative_mean(flat))
        best = min(best, candidate, key=_misfit(points))
    return best


def _relative_mean(xs: Sequence[float]) -> float:
    """The constant c that minimises the sum of (c/x - 1)^2."""
    return sum(1 / x for x in xs) / sum(1 / x**2 for x in xs)

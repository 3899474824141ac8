"""Scaling laws, their fit to measured throughputs, and the law that the points prefer.

    linear   X(N) = g N
    amdahl   X(N) = g N / (1 + a (N - 1))                           a: contention
    usl      X(N) = g N / (1 + a (N - 1) + b N (N - 1))             b: coherency      (Gunther 2007)
    capped   X(N) = min(g N, C)                                     C: ceiling

The first three are linear in (1/g, a/g, b/g) after N/X, so they are fitted in closed form by
weighted least squares with weights (X/N)^2, which makes the errors relative. Both coefficients are
kept at 0 or above by trying the sign patterns: unconstrained fits of linear data turn negative 95 %
of the time. The ceiling is searched over the measured plateaus.

Contention is the part of a request for which workers wait for something that only one of them can
use at a time, such as a lock. Coherency is the time that each pair of workers costs to keep shared
data in agreement; with it, throughput falls beyond a peak.

The points prefer a law by Akaike's criterion. One with k parameters needs n >= k + 2 points, since
corrected AIC divides by n - k - 1, and points at several numbers of workers: repeats at the same
ones show the noise, and not the curve between and beyond.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from scaletest.model.declared import Unbounded, choice, flat, named_in_documents
from scaletest.model.writing import Written

LAWS = ("linear", "amdahl", "usl", "capped")
PARAMETERS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 2}
# So many different numbers of workers tell a law from a simpler one; repeats do not count.
STEPS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 3}
# Laws whose criteria differ by less are supported equally well.
EQUALLY_GOOD = 2.0
# A ceiling this near to the straight line at the largest number of workers may be any small loss.
NEAR_LINE = 0.95
Point = tuple[float, float]  # workers, and requests a second
# Terms of the linear equation by their coefficient; the constant has none.
_TERMS: dict[str, Callable[[float], float]] = {
    "": lambda n: 1.0,
    "a": lambda n: n - 1.0,
    "b": lambda n: n * (n - 1.0),
}
# The sets of coefficients above 0 that a fit of a law tries, each with the law that it then is.
_FITS: dict[str, dict[tuple[str, ...], str]] = {
    "linear": {(): "linear"},
    "amdahl": {("a",): "amdahl", (): "linear"},
    "usl": dict.fromkeys((("a", "b"), ("a",), ("b",), ()), "usl"),
}


def _solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """Solve `matrix` x = `right` (up to 3 x 3) by Gauss with pivoting; None when singular."""
    size = len(right)
    rows = [[*equation, constant] for equation, constant in zip(matrix, right, strict=True)]
    for column in range(size):
        # the largest number as pivot loses the fewest digits
        pivot = max(range(column, size), key=lambda index: abs(rows[index][column]))
        if abs(rows[pivot][column]) < 1e-300:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for index in range(size):
            if index != column:
                factor = rows[index][column] / rows[column][column]
                rows[index] = [
                    a - factor * b for a, b in zip(rows[index], rows[column], strict=True)
                ]
    return [rows[index][size] / rows[index][index] for index in range(size)]


@dataclass(frozen=True, slots=True)
class Law(Written):
    """A fitted law."""

    name: Annotated[str, choice(LAWS)]
    rate: Annotated[float, named_in_documents("rate_per_s"), "throughput of one worker"]
    contention: Annotated[float, "part of the work that one worker does at a time"] = 0.0
    coherency: Annotated[float, "part that grows with every pair of workers"] = 0.0
    ceiling: Annotated[
        Unbounded, named_in_documents("ceiling_per_s"), "C in requests/s, else infinity."
    ] = math.inf

    def at(self, workers: float) -> float:
        """Return the predicted throughput in requests/s."""
        n = workers
        scaled = self.rate * n / (1 + self.contention * (n - 1) + self.coherency * n * (n - 1))
        return min(scaled, self.ceiling)

    @property
    def peak(self) -> float | None:
        """Workers at the maximum, sqrt((1 - a) / b); None when throughput never falls."""
        if self.coherency <= 0 or self.contention >= 1:
            return None
        return math.sqrt((1 - self.contention) / self.coherency)


def fit_law(name: str, points: Sequence[Point]) -> Law:
    """Fit the law `name` to (workers, requests/s) points; throughputs must be above 0."""
    if name != "capped":
        candidates = [_closed_form(points, free, law) for free, law in _FITS[name].items()]
        return min(candidates, key=partial(_misfit, points))
    # try every number of workers as the first on the ceiling; each side of it has its own mean
    ordered = sorted(points)
    candidates = [Law("capped", sum(x / n for n, x in ordered) / len(ordered))]
    for first_on_ceiling in sorted({n for n, _ in ordered})[1:]:
        rates = [x / n for n, x in ordered if n < first_on_ceiling]
        ceilings = [x for n, x in ordered if n >= first_on_ceiling]
        law = Law("capped", _relative_mean(rates), ceiling=_relative_mean(ceilings))
        candidates.append(law)
    return min(candidates, key=partial(_misfit, points))


def _misfit(points: Sequence[Point], law: Law) -> float:
    """Return the sum of the squares of the relative residuals, infinite for impossible laws."""
    if law.rate <= 0 or law.contention < 0 or law.coherency < 0:
        return math.inf
    return sum((law.at(workers) / rate - 1.0) ** 2 for workers, rate in points)


def _relative_mean(xs: Sequence[float]) -> float:
    """Return the constant c that minimises the sum of (c/x - 1)^2."""
    return sum(1 / x for x in xs) / sum(1 / x**2 for x in xs)


def _closed_form(points: Sequence[Point], free: tuple[str, ...], law: str) -> Law:
    """Fit p, q and r of N/X = p + q (N - 1) + r N (N - 1) by weighted least squares.

    They are p = 1/g, q = a/g and r = b/g. free: the coefficients that are fitted, "a" and "b"; the
    others are 0. Coefficients below 0 mark a law that cannot be solved.
    """
    # the normal equations
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
    solution = _solve(matrix, right)
    if solution is None or solution[0] <= 0:
        return Law(law, 0.0, contention=-1.0, coherency=-1.0)
    # back from p, q and r to g, a and b
    p, *others = solution
    coefficients = {name: value / p for name, value in zip(free, others, strict=True)}
    return Law(law, 1.0 / p, coefficients.get("a", 0.0), coefficients.get("b", 0.0))


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


def choose_law(points: Sequence[Point], spreads: Sequence[float] | None = None) -> Choice | None:
    """Return the best law by AICc; None where points suffice for the linear law at most.

    One law alone says nothing. spreads: relative standard deviation of each point, where known.
    Then the criterion is chi^2 + 2 k, which needs no correction for an estimated spread, and the
    simplest law within 2 of the best counts (Burnham and Anderson 2002): five precise points are
    enough to show a coherency.

    A ceiling that stays within 5 % of the straight line is not counted: overhead of 1 % looks like
    that.
    """
    # fit every law that may be chosen
    too_few = missing_steps([workers for workers, _ in points])
    fitted = {name: fit_law(name, points) for name in LAWS if name not in too_few}
    capped = fitted.get("capped")
    if capped and capped.ceiling > NEAR_LINE * capped.rate * max(n for n, _ in points):
        del fitted["capped"]
    if len(fitted) < 2:
        return None
    # choose the simplest law of those that are as good as the one with the least criterion
    if spreads is None:
        criteria = {name: _aicc(points, law, PARAMETERS[name]) for name, law in fitted.items()}
        limit = min(criteria.values())
    else:
        criteria = {
            name: _aic(points, law, PARAMETERS[name], spreads) for name, law in fitted.items()
        }
        limit = min(criteria.values()) + EQUALLY_GOOD
    good = [name for name, criterion in criteria.items() if criterion <= limit]
    best = min(good, key=lambda name: (PARAMETERS[name], criteria[name]))
    return Choice(fitted[best], criteria)


def _aic(points: Sequence[Point], law: Law, parameters: int, spreads: Sequence[float]) -> float:
    """Return Akaike's criterion for known relative spreads: chi^2 of the logarithms + 2 k."""
    residuals = (math.log(law.at(workers) / rate) for workers, rate in points)
    pairs = zip(residuals, spreads, strict=True)
    return sum((residual / spread) ** 2 for residual, spread in pairs) + 2.0 * parameters


def _aicc(points: Sequence[Point], law: Law, parameters: int) -> float:
    """Return the corrected Akaike criterion of relative residuals; infinite below n = k + 2."""
    n, k = len(points), parameters
    # laws that fit exactly would have the logarithm of 0
    squares = max(_misfit(points, law), n * 1e-12)
    correction = 2 * k * (k + 1) / (n - k - 1) if n > k + 1 else math.inf
    return n * math.log(squares / n) + 2 * k + correction

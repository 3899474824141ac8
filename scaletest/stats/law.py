"""Scaling laws: linear, Amdahl, Universal Scalability Law and a ceiling, and how sure a fit is.

A law with k parameters needs n >= k + 2 points, since corrected AIC divides by n - k - 1, and
points at several numbers of workers: repeats at the same ones show the noise, and not the curve
between and beyond.

The laws, of which corrected AIC chooses:

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

How sure a fitted law is: 95 % intervals of its coefficients by bootstrap.

The residuals r = X / X_fitted are multiplicative. Their logarithms, widened by sqrt(n / (n - k))
for the k parameters that the fit used up and by t / 1.96 for how badly n - k degrees of freedom
know a spread, are drawn again over all points, the same law is fitted to each draw, and the middle
95 % of its coefficients are the interval. Drawing repeats within a number of workers instead covers
only 63-92 % with three repeats.

With known spreads of the points and less than 10 degrees of freedom left, each point is drawn
log-normally with its own instead; but when the residuals scatter more than the spreads
allow, they count, with t's factor.

How often the truth was covered, per cent of 300 runs with 200 draws each, at 2 % / 5 % noise;
"known" are spreads that tell the whole noise, "understated" ones that tell 40 % of it:

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
coherency, its contention holds a part of the coherency and its interval misses a.

Contention and coherency with their intervals, for thresholds, whichever law the points prefer.

A run that scales linearly has no contention in its law, and still a threshold may ask that it be
below 5 %. So the interval is that of the chosen law when it has the coefficient, else of the
simplest good one that has it: Amdahl's or the Universal Scalability Law for contention, the latter
for coherency. Under a ceiling neither is a true description; the contention is then large, as it
should be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from scaletest.model.declared import Unbounded, called, choice, flat
from scaletest.model.writing import Written
from scaletest.stats.estimate import Chance, Estimate, t95

LAWS = ("linear", "amdahl", "usl", "capped")
PARAMETERS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 2}
# Different numbers of workers that a law needs to differ from a simpler one, whatever the repeats.
STEPS = {"linear": 1, "amdahl": 2, "usl": 3, "capped": 3}


def missing_steps(workers: Sequence[float]) -> dict[str, int]:
    """Return the laws for which these points are too few, with the further steps that suffice.

    workers: the number of workers of each point, so that every repeat is listed.
    """
    distinct = len(set(workers))
    steps = {
        name: max(PARAMETERS[name] + 2 - len(workers), STEPS[name] - distinct) for name in LAWS
    }
    return {name: count for name, count in steps.items() if count > 0}


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """Solve `matrix` x = `right` (up to 3 x 3) by Gauss with pivoting; None when singular."""
    size = len(right)
    rows = [[*equation, constant] for equation, constant in zip(matrix, right, strict=True)]
    for column in range(size):
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
# The coefficients that a fit of a law sets free, and the law that it is then.
_FITS: dict[str, dict[tuple[str, ...], str]] = {
    "linear": {(): "linear"},
    "amdahl": {("a",): "amdahl", (): "linear"},
    "usl": dict.fromkeys((("a", "b"), ("a",), ("b",), ()), "usl"),
}


@dataclass(frozen=True, slots=True)
class Law(Written):
    """A fitted law."""

    name: Annotated[str, choice(LAWS)]
    rate: Annotated[float, called("rate_per_s"), "throughput of one worker"]
    contention: Annotated[float, "part of the work that one worker does at a time"] = 0.0
    coherency: Annotated[float, "part that grows with every pair of workers"] = 0.0
    ceiling: Annotated[Unbounded, called("ceiling_per_s"), "C in requests/s, else infinity."] = (
        math.inf
    )

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
class Choice(Written):
    """The law that AIC prefers among those with enough points (see `missing_steps`)."""

    law: Annotated[Law, flat()]
    criteria: Annotated[
        dict[str, float], "corrected AIC of every law that was fitted; the least is chosen"
    ]
    too_few: Annotated[
        tuple[str, ...], called("too_few_points_for"), "laws that were left out for lack of points."
    ]


def fit(name: str, points: Sequence[Point]) -> Law:
    """The law `name` fitted to (workers, requests/s) points; throughputs must be above 0."""
    if name == "capped":
        return _fit_capped(points)
    return min(
        [_closed_form(points, free, law) for free, law in _FITS[name].items()],
        key=partial(_misfit, points),
    )


def choose(points: Sequence[Point], spreads: Sequence[float] | None = None) -> Choice | None:
    """The best law by AICc; None where points suffice for the linear law at most.

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
    """Akaike's criterion for known relative spreads: chi^2 of the logarithms + 2 k; low is good."""
    residuals = (math.log(law.at(workers) / rate) for workers, rate in points)
    pairs = zip(residuals, spreads, strict=True)
    return sum((residual / spread) ** 2 for residual, spread in pairs) + 2.0 * parameters


def aicc(points: Sequence[Point], law: Law, parameters: int) -> float:
    """Corrected Akaike criterion of relative residuals; low is good; infinite below n = k + 2."""
    n, k = len(points), parameters
    squares = max(_squares(points, law), n * 1e-12)
    correction = 2 * k * (k + 1) / (n - k - 1) if n > k + 1 else math.inf
    return n * math.log(squares / n) + 2 * k + correction


def _squares(points: Sequence[Point], law: Law) -> float:
    """The sum of the squares of the relative residuals."""
    return sum((law.at(workers) / rate - 1.0) ** 2 for workers, rate in points)


def _misfit(points: Sequence[Point], law: Law) -> float:
    """Sum of squares, infinite for coefficients below 0."""
    if law.rate <= 0 or law.contention < 0 or law.coherency < 0:
        return math.inf
    return _squares(points, law)


def _closed_form(points: Sequence[Point], free: tuple[str, ...], law: str) -> Law:
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
    solved = solve(matrix, right)
    if solved is None or solved[0] <= 0:
        return Law(law, 0.0, -1.0, -1.0)
    scaled = (coefficient / solved[0] for coefficient in solved[1:])
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
        best = min(best, candidate, key=partial(_misfit, points))
    return best


def _relative_mean(xs: Sequence[float]) -> float:
    """The constant c that minimises the sum of (c/x - 1)^2."""
    return sum(1 / x for x in xs) / sum(1 / x**2 for x in xs)


DRAWS = 500
_NORMAL = t95(math.inf)
# With more degrees of freedom the residuals themselves know the spread well enough.
_FEW = 10


@dataclass(frozen=True, slots=True)
class LawInterval(Written):
    """The coefficients of a law with intervals; None for those that the law does not have."""

    description = "by bootstrap"

    rate: Annotated[Estimate, called("rate_per_s"), "value with its 95 % interval"]
    contention: Annotated[Estimate | None, "value with its 95 % interval"]
    coherency: Annotated[Estimate | None, "value with its 95 % interval"]
    ceiling: Annotated[Estimate | None, called("ceiling_per_s"), "value with its 95 % interval"]
    peak: Annotated[Estimate | None, called("peak_workers"), "value with its 95 % interval"]


def law_interval(
    law: Law,
    points: Sequence[Point],
    chance: Chance,
    *,
    spreads: Sequence[float] | None = None,
    draws: int = DRAWS,
) -> LawInterval | None:
    """Intervals of `law` as it was fitted to `points`; None when the points are not more than its
    parameters.

    spreads: relative standard deviation of each point, where known, as for `choose`.
    """
    freedom = len(points) - PARAMETERS[law.name]
    if freedom < 1:
        return None
    noise = _noise(law, points, freedom, chance, spreads)
    laws = []
    for _ in range(draws):
        drawn = [(n, law.at(n) * math.exp(noise(index))) for index, (n, _) in enumerate(points)]
        laws.append(fit(law.name, drawn))

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
    spreads: Sequence[float] | None,
) -> Callable[[int], float]:
    """A function that draws the logarithm of a deviation for the point of that index."""
    residuals = [math.log(rate / law.at(workers)) for workers, rate in points]
    unsure = t95(freedom) / _NORMAL
    if spreads is None or freedom >= _FEW:
        widened = [residual * unsure * math.sqrt(len(points) / freedom) for residual in residuals]
        return lambda index: chance.choice(widened)
    scatter = math.sqrt(sum(residual**2 for residual in residuals) / freedom)
    allowed = math.sqrt(sum(spread**2 for spread in spreads) / len(spreads))
    least = scatter * unsure if scatter > allowed else 0.0
    return lambda index: chance.gauss(0.0, max(spreads[index], least))


def _middle(fitted: float, drawn: Sequence[float]) -> Estimate:
    """The fitted coefficient with the middle 95 % of those drawn.

    The ends are drawn ones, since no number lies between a finite one and infinity.
    """
    ordered = sorted(drawn)
    outside = int(0.025 * len(ordered))
    low, high = ordered[outside], ordered[-1 - outside]
    return Estimate(fitted, min(fitted, low), max(fitted, high))


LAWS_WITH = {"contention": ("amdahl", "usl"), "coherency": ("usl",)}


def coefficients(
    points: Sequence[Point], chance: Chance, spreads: Sequence[float] | None = None
) -> dict[str, Estimate]:
    """Contention and coherency by name; one is missing where the points are too few for every law
    that has it.

    spreads: relative standard deviation of each point, where known, as for `choose`.
    """
    choice = choose(points, spreads)
    if choice is None:
        return {}
    estimates: dict[str, Estimate] = {}
    for name, laws in LAWS_WITH.items():
        law = _best(laws, choice)
        if law:
            # a fit that ends at 0 is called linear; its interval is wanted all the same
            fitted = replace(fit(law, points), name=law)
            estimate = getattr(law_interval(fitted, points, chance, spreads=spreads), name, None)
            if estimate is not None:
                estimates[name] = estimate
    return estimates


def _best(laws: Sequence[str], choice: Choice) -> str:
    """The chosen law if it is one of these, else the first that is as good; "" for none."""
    if choice.law.name in laws:
        return choice.law.name
    fitted = {law: choice.criteria[law] for law in laws if law in choice.criteria}
    limit = min(fitted.values(), default=0.0) + EQUALLY_GOOD
    return next((law for law, criterion in fitted.items() if criterion <= limit), "")

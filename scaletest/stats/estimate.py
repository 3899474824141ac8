"""Values with their 95 % intervals: quantiles of Student's t, exact percentiles, and a rank test.

Of repeated measurements the repetitions are the units: the variation from one to the next is in the
interval of their mean, the variation within one is not used.

`Estimate` is the type of ratios, coefficients and fractions. Intervals of ratios are built on
the logarithm (delta method), where the relative errors of independent rates add in squares and no
interval reaches below 0.

Quantiles of Student's t for any real number of degrees of freedom, as in Welch's formula.

From 3 degrees on: G. W. Hill, Algorithm 396, Communications of the ACM 13 (1970), 619, which scipy
finds right to 2e-5 of the value. It is not made for fewer (1e-3 off at 2.01, 17 % at 1.01): there
the closed forms of 1 and 2 degrees serve, and between them bisection of the tail probability, to
1e-9.

Percentiles have intervals by order statistics: how many of n independent values lie below the true
p-quantile is binomial (n, p), whatever their distribution. So the l-th and the u-th smallest value
enclose it with probability P(l <= B < u). The tails are 2.5 % each where the sample allows; where
even the largest value leaves more than that above it, the lower end takes what is left of the 5 %.

A percentile is given only where the extreme value lies beyond it with 95 %: n >= ln(0.05) / ln(p),
which is 299 for p99 and 2995 for p99.9. Values that follow each other closely (waiting times in a
queue) carry less than n independent ones would, so their intervals are too narrow. Percentiles of
groups must never be averaged: join the values.

Mann and Whitney's U test (1947): whether values of one sample tend to be larger than those of
another.

Two-sided by the normal approximation, with the correction for ties and for continuity; good from
about eight values each. It supposes independent values; requests that follow each other are not
quite, so small p-values are too small.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Annotated, Protocol, TypeVar

from scaletest.model.declared import INNER, Count, Unbounded
from scaletest.model.writing import Written

_T = TypeVar("_T")


class Chance(Protocol):
    """The part of random.Random that resampling and simulations use."""

    def choice(self, seq: Sequence[_T], /) -> _T:
        """A member of the sequence, each equally likely."""

    def expovariate(self, lambd: float, /) -> float:
        """An exponential variable with this rate."""

    def gauss(self, mu: float, sigma: float, /) -> float:
        """A normal variable."""

    def lognormvariate(self, mu: float, sigma: float, /) -> float:
        """A log-normal variable."""

    def random(self) -> float:
        """From 0 to 1, 1 excluded."""


# exp() of more overflows, and so wide an interval is useless.
_WIDEST = 700.0


@dataclass(frozen=True, slots=True)
class Estimate(Written):
    """A value with the ends of its 95 % interval; infinite ends when nothing is known."""

    description = "value with its 95 % interval"

    value: Unbounded
    low: Unbounded
    high: Unbounded

    def scaled(self, factor: float) -> Estimate:
        """The estimate of `factor` > 0 times the value."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    @property
    def inverse(self) -> Estimate:
        """The estimate of 1 / value, of a value above 0."""
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low if self.low else math.inf)

    def at_least(self, floor: float) -> Estimate:
        """The estimate of what is above `floor`; all that is below counts as that."""
        return Estimate(*(max(floor, end) for end in (self.value, self.low, self.high)))


@dataclass(frozen=True, slots=True)
class Summary(Written):
    """A summary of repeated measurements."""

    count: int
    mean: Unbounded
    half_width: Annotated[
        Unbounded, "of the 95 % interval of their mean by Student's t; infinite for a single one."
    ]
    deviation: Unbounded
    least: Unbounded
    median: Unbounded
    most: Unbounded

    @property
    def estimate(self) -> Estimate:
        """The mean with its interval, of values of which none lies below 0."""
        low = max(0.0, self.mean - self.half_width)
        return Estimate(self.mean, low, self.mean + self.half_width)


def summarise(values: Sequence[float]) -> Summary:
    """The summary of one value or more."""
    count, mean = len(values), statistics.fmean(values)
    deviation, half = 0.0, math.inf
    if count > 1:
        deviation = statistics.stdev(values)
        half = t95(count - 1) * deviation / math.sqrt(count)
    return Summary(
        count, mean, half, deviation, min(values), statistics.median(values), max(values)
    )


def gathered(rows: Sequence[tuple[int, Mapping[str, float]]]) -> dict[int, dict[str, list[float]]]:
    """Values by permutation and headline. rows: (permutation, headlines) of each repetition."""
    by_permutation: dict[int, dict[str, list[float]]] = {}
    for number, headlines in rows:
        for name, measured in headlines.items():
            by_permutation.setdefault(number, {}).setdefault(name, []).append(measured)
    return by_permutation


def within(value: float, relative: float) -> Estimate:
    """The estimate from value / e^relative to value * e^relative.

    relative: half-width of the logarithm, about half-width over value.
    """
    if relative >= _WIDEST:
        return Estimate(value, 0.0, math.inf)
    return Estimate(value, value * math.exp(-relative), value * math.exp(relative))


_NORMAL = statistics.NormalDist()


def t95(freedom: float) -> float:
    """The 0.975 quantile, for two-sided 95 % intervals; infinity below one degree of freedom."""
    return t_quantile(0.975, freedom)


@lru_cache(maxsize=4096)
def t_quantile(p: float, freedom: float) -> float:
    """The value that a t variable with `freedom` degrees stays below with probability p.

    Below one degree of freedom nothing is known: infinity with the sign of p - 1/2. Infinitely many
    degrees give the normal quantile. ValueError for p outside (0, 1).
    """
    if not 0.0 < p < 1.0:
        raise ValueError(f"a probability between 0 and 1 is needed, not {p!r}")
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -t_quantile(1.0 - p, freedom)
    tails = 2.0 * (1.0 - p)
    if freedom < 1:
        return math.inf
    if math.isinf(freedom):
        return _NORMAL.inv_cdf(p)
    if freedom == 1:
        return 1.0 / math.tan(tails * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2.0 / (tails * (2.0 - tails)) - 2.0)
    if freedom >= 3:
        return _hill(tails, freedom)
    return _bisect(tails, freedom)


def _hill(tails: float, n: float) -> float:
    """Algorithm 396, with its own names: the value that |t| exceeds with probability `tails`."""
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * tails) ** (2 / n)
    if y > 0.05 + a:
        x = _NORMAL.inv_cdf(tails / 2)
        y = x * x
        if n < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = (
            (1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1
        ) * (n + 1) / (n + 2) + 1 / y
    return math.sqrt(n * y)


def _bisect(tails: float, freedom: float) -> float:
    """Bisection between the normal quantile and that of 1 degree, which enclose all others."""
    low, high = -_NORMAL.inv_cdf(tails / 2), 1.0 / math.tan(tails * math.pi / 2)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if _tails(middle, freedom) > tails:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _tails(t: float, freedom: float) -> float:
    """P(|T| > t): the regularised incomplete beta function I_x(n/2, 1/2) at x = n / (n + t^2)."""
    x, y = freedom / (freedom + t * t), t * t / (freedom + t * t)
    if x < 0.5:
        return _beta_ratio(freedom / 2, 0.5, x)
    return 1.0 - _beta_ratio(0.5, freedom / 2, y)


def _beta_ratio(a: float, b: float, x: float) -> float:
    """I_x(a, b) for x <= 1/2: x^a / (a B(a, b)) times the sum of (1 - b)_k a x^k / (k! (a + k))."""
    term, total, k = 1.0, 1.0, 0
    while abs(term) > 1e-16:
        k += 1
        term *= (k - b) / k * x
        total += term * a / (a + k)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front + a * math.log(x)) / a * total


def spread_bound(freedom: int) -> float:
    """Upper bound of a standard deviation over its estimate, wrong in one of twenty cases.

    freedom: degrees of freedom of the estimate, 1 or more. sqrt(f / q), q the 0.05 quantile of chi
    square: that of one degree is 0.00393, of two 0.1026; else as `chi_square_limit`, which is right
    to 4 % here.
    """
    exact = {1: 15.95, 2: 4.415}.get(freedom)
    return exact or math.sqrt(freedom / chi_square_limit(freedom, 0.95))


def chi_square_limit(freedom: int, error: float) -> float:
    """The number that chi square exceeds with that probability (Wilson, Hilferty 1931; to 2 %)."""
    part = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - part + _NORMAL.inv_cdf(1.0 - error) * math.sqrt(part)) ** 3


def welch(errors: Sequence[float], freedoms: Sequence[float]) -> float:
    """Degrees of freedom of a sum of independent estimates (Welch 1947, Satterthwaite 1946).

    errors: the standard error of each. At least 1; the sum of all freedoms where nothing varies.
    """
    below = sum(
        error**4 / max(1.0, freedom) for error, freedom in zip(errors, freedoms, strict=True)
    )
    if below <= 0:
        return max(1.0, sum(freedoms))
    return max(1.0, sum(error**2 for error in errors) ** 2 / below)


_BEYOND = 0.05


@dataclass(frozen=True, slots=True)
class Percentile(Written):
    """A p-quantile; low and high are None without enough values for an interval."""

    description = "null when there are too few values"

    p: Annotated[float, INNER]
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Distribution(Written):
    """How values spread, in their own unit; None where they are too few for a percentile."""

    count: Count
    mean: float | None
    min: float | None
    p50: Annotated[Percentile | None, "null when there are too few values"]
    p90: Annotated[Percentile | None, "null when there are too few values"]
    p95: Annotated[Percentile | None, "null when there are too few values"]
    p99: Annotated[Percentile | None, "null when there are too few values"]
    p99_9: Annotated[Percentile | None, "null when there are too few values"]
    max: float | None


def summary(values: Iterable[float]) -> Distribution:
    """Count, mean, extremes and percentiles of values in any order."""
    ordered = sorted(values)
    return Distribution(
        count=len(ordered),
        mean=statistics.fmean(ordered) if ordered else None,
        min=next(iter(ordered), None),
        p50=percentile(ordered, 0.5),
        p90=percentile(ordered, 0.9),
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99),
        p99_9=percentile(ordered, 0.999),
        max=next(reversed(ordered), None),
    )


def percentile(ordered: Sequence[float], p: float) -> Percentile | None:
    """The p-quantile of ascending values; None for fewer than `samples_needed(p)`."""
    count = len(ordered)
    if count < samples_needed(p):
        return None
    ranks = _ranks(count, p)
    if ranks is None:
        return Percentile(p, quantile(ordered, p), None, None)
    low, high = ordered[ranks[0] - 1], ordered[ranks[1] - 1]
    return Percentile(p, quantile(ordered, p), low, high)


def samples_needed(p: float) -> int:
    """The fewest values whose extreme lies beyond the p-quantile with 95 %; 0 < p < 1."""
    return math.ceil(math.log(_BEYOND) / math.log(max(p, 1.0 - p)))


def quantile(ordered: Sequence[float], p: float) -> float:
    """Linear around rank (n - 1) p: type 7 of Hyndman and Fan (1996), numpy's default."""
    rank = (len(ordered) - 1) * p
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


@lru_cache(maxsize=1024)
def _ranks(count: int, p: float) -> tuple[int, int] | None:
    """Ranks, counted from 1, of the ends of the 95 % interval; None when there are none."""
    first, masses = binomial(count, p)
    low = _lower(first, masses, _BEYOND / 2)
    high = count + 1 - _lower(count - first - len(masses) + 1, masses[::-1], _BEYOND / 2)
    if high > count:
        high, low = count, _lower(first, masses, _BEYOND - p**count)
    elif low < 1:
        left = _BEYOND - (1 - p) ** count
        low, high = 1, count + 1 - _lower(count - first - len(masses) + 1, masses[::-1], left)
    if 1 <= low < high <= count:
        return (low, high)
    return None


def _lower(first: int, masses: Sequence[float], tail: float) -> int:
    """The largest l with P(B < l) <= `tail`, where masses are those of B = first, first + 1, ..."""
    return first + bisect_right(list(accumulate(masses)), tail)


def binomial(count: int, p: float) -> tuple[int, list[float]]:
    """The smallest number of successes with a mass above 1e-18, and the masses from there on.

    Exact for every n by recurrence from the mode: 9 standard deviations on each side, 2 ms for a
    million values.
    """
    mode = min(int((count + 1) * p), count)
    log = math.lgamma(count + 1) - math.lgamma(mode + 1) - math.lgamma(count - mode + 1)
    peak = math.exp(log + mode * math.log(p) + (count - mode) * math.log1p(-p))
    odds = p / (1 - p)
    upward, downward = [peak], []
    k, mass = mode, peak
    while k < count and mass > 1e-18:
        mass *= (count - k) / (k + 1) * odds
        k += 1
        upward.append(mass)
    k, mass = mode, peak
    while k > 0 and mass > 1e-18:
        mass *= k / (count - k + 1) / odds
        k -= 1
        downward.append(mass)
    return k, [*reversed(downward), *upward]


FEWEST = 8


@dataclass(frozen=True, slots=True)
class RankTest(Written):
    """The result of the test."""

    u: Annotated[float, "Mann and Whitney's U of the candidate's values"]
    larger: Annotated[float, "part of all pairs in which the candidate's is larger"]
    p: Annotated[float, "of so uneven a split by chance"]


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> RankTest | None:
    """The test of two samples in any order; None with fewer than eight values in either."""
    m, n = len(first), len(second)
    if min(m, n) < FEWEST:
        return None
    tagged = sorted([(measured, 1) for measured in first] + [(measured, 0) for measured in second])
    rank_sum, ties, below = 0.0, 0.0, 0
    for _, group in groupby(tagged, key=lambda pair: pair[0]):
        members = [tag for _, tag in group]
        size = len(members)
        rank_sum += sum(members) * (below + (size + 1) / 2)
        ties += size**3 - size
        below += size
    u = rank_sum - m * (m + 1) / 2
    total = m + n
    variance = m * n / 12 * (total + 1 - ties / (total * (total - 1)))
    distance = max(0.0, abs(u - m * n / 2) - 0.5)
    # 2 cdf(-z), since 1 - cdf(z) would be 0 far out
    p = 2 * _NORMAL.cdf(-distance / math.sqrt(variance)) if variance > 0 else 1.0
    return RankTest(u, u / (m * n), min(1.0, p))


def interval_of(percentile: Percentile) -> Estimate:
    """A percentile with its interval; too few values leave an end unknown."""
    high = math.inf if percentile.high is None else percentile.high
    return Estimate(percentile.value, percentile.low or 0.0, high)


def exactly(figure: float) -> Estimate:
    """A figure that was counted, and has no interval."""
    return Estimate(figure, figure, figure)


def mean_of(samples: Sequence[float]) -> Estimate:
    """The mean of values of which none lies below 0, by Student's t; of a single one nothing more
    is known.
    """
    return summarise(samples).estimate

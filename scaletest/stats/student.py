"""Quantiles of Student's t, for any real number of degrees of freedom, and of what spreads need.

From 3 degrees on: G. W. Hill, Algorithm 396, Communications of the ACM 13 (1970), 619, which scipy
finds right to 2e-5 of the value. It is not made for fewer (1e-3 off at 2.01, 17 % at 1.01): there
bisection of the tail probability serves, to 1e-9.
"""

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

NORMAL = statistics.NormalDist()
# The middle 95 % of a normal distribution reach so many standard deviations.
NORMAL_95 = 1.96


def t95(freedom: float) -> float:
    """Return the 0.975 quantile, for two-sided 95 % intervals; infinity below one degree."""
    return t_quantile(0.975, freedom)


@lru_cache(maxsize=4096)
def t_quantile(p: float, freedom: float) -> float:
    """Return the value that a t variable with `freedom` degrees stays below with probability p.

    p: above 1/2 and below 1. Below one degree of freedom nothing is known: infinity. Infinitely
    many degrees give the normal quantile.
    """
    tails = 2.0 * (1.0 - p)  # the probability that |t| is larger
    if freedom < 1:
        return math.inf
    if math.isinf(freedom):
        return NORMAL.inv_cdf(p)
    if freedom >= 3:
        return _hill(tails, freedom)
    return _bisect(tails, freedom)


def _hill(tails: float, n: float) -> float:
    """Return the value that |t| exceeds with probability `tails`: algorithm 396, with its names."""
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * tails) ** (2 / n)
    if y > 0.05 + a:
        x = NORMAL.inv_cdf(tails / 2)
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
    """Bisect between the normal quantile and that of 1 degree, which enclose all others."""
    low, high = -NORMAL.inv_cdf(tails / 2), 1.0 / math.tan(tails * math.pi / 2)
    while high - low > 1e-9 * high:
        t = (low + high) / 2
        # P(|T| > t) is the regularised incomplete beta function I_x(n/2, 1/2) at n / (n + t^2)
        x, y = freedom / (freedom + t * t), t * t / (freedom + t * t)
        if x < 0.5:
            tail = _beta_ratio(freedom / 2, 0.5, x)
        else:
            tail = 1.0 - _beta_ratio(0.5, freedom / 2, y)
        if tail > tails:
            low = t
        else:
            high = t
    return (low + high) / 2


def _beta_ratio(a: float, b: float, x: float) -> float:
    """Return I_x(a, b) for x <= 1/2.

    It is x^a / (a B(a, b)) times the sum of (1 - b)_k a x^k / (k! (a + k)).
    """
    term, total, k = 1.0, 1.0, 0
    while abs(term) > 1e-16:
        k += 1
        term *= (k - b) / k * x
        total += term * a / (a + k)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front + a * math.log(x)) / a * total


def spread_bound(freedom: int) -> float:
    """Return the upper bound of a standard deviation over its estimate, wrong once in twenty cases.

    freedom: degrees of freedom of the estimate, 1 or more. sqrt(f / q), q the 0.05 quantile of chi
    square: that of one degree is 0.00393, of two 0.1026; else as `chi_square_limit`, which is right
    to 4 % here.
    """
    exact = {1: 15.95, 2: 4.415}.get(freedom)
    return exact or math.sqrt(freedom / chi_square_limit(freedom, 0.95))


def chi_square_limit(freedom: int, error: float) -> float:
    """Return the number that chi square exceeds with that probability, right to 2 %.

    The approximation is Wilson's and Hilferty's (1931).
    """
    variance = 2.0 / (9.0 * freedom)  # of the cube root of chi square over freedom
    return freedom * (1.0 - variance + NORMAL.inv_cdf(1.0 - error) * math.sqrt(variance)) ** 3


def welch_freedom(errors: Sequence[float], freedoms: Sequence[float]) -> float:
    """Return the degrees of freedom of a sum of independent estimates.

    The formula is Welch's (1947) and Satterthwaite's (1946).

    errors: the standard error of each. At least 1; the sum of all freedoms where nothing varies.
    """
    below = sum(
        error**4 / max(1.0, freedom) for error, freedom in zip(errors, freedoms, strict=True)
    )
    if below <= 0:
        return max(1.0, sum(freedoms))
    return max(1.0, sum(error**2 for error in errors) ** 2 / below)

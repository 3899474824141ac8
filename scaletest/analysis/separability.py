"""Whether a plan is enough to separate contention from coherency, which both bend the curve.

N/X = p + q (N - 1) + r N (N - 1) is fitted with relative noise s, so the covariance of (p, q, r) is
s^2 (A'WA)^-1 with weights (X/N)^2, known before anything is measured once a truth is assumed:
contention 0.03 and coherency 0.005. The delta method turns it into that of a = q / p and b = r / p.
Simulated fits scatter as computed: b by 0.0011 where 0.0010 is computed for N = 1..8 three times
with 2 % noise, and by 0.0007, as computed, for N = 1, 2, 4, 8, 16 five times with 5 %.

b must stand out by three standard errors: two for Akaike's criterion to prefer the universal law to
Amdahl's when the noise of the points is known, the rest so that it does so in two runs of three.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.estimate import finite
from scaletest.analysis.law import Law
from scaletest.analysis.law_requirements import PARAMETERS
from scaletest.analysis.linear_equations import solve

REFERENCE = Law("usl", 1.0, 0.03, 0.005)
EXPECTED_NOISE = 0.02
STANDS_OUT = 3.0
# From this correlation on one coefficient can stand for the other, as for N = 1, 2, 4 at any noise.
STRONGEST_CORRELATION = 0.97
_COEFFICIENTS = (
    "contention (waiting for what workers share) from coherency (keeping it in agreement)"
)
_MOST_WORKERS = 4096
_MOST_REPEATS = 50


@dataclass(frozen=True, slots=True)
class Separability:
    """Whether a plan separates the two coefficients.

    The standard errors are those of the assumed truth, infinite when unknown. limit: the largest
    number of workers that suffices with the same repeats, repeats: those that suffice with the same
    steps; those of the plan when it separates them, None when no sensible number suffices.
    """

    separable: bool
    contention_error: float
    coherency_error: float
    correlation: float
    limit: int | None
    repeats: int | None
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite is null."""
        return asdict(self) | {
            "contention_error": finite(self.contention_error),
            "coherency_error": finite(self.coherency_error),
        }


def separability(
    workers: Sequence[int],
    repeats: int = 1,
    noise: float = EXPECTED_NOISE,
    truth: Law = REFERENCE,
    who: str = "workers",
) -> Separability:
    """Judge a plan of these numbers of workers, each measured `repeats` times.

    noise: relative standard error of each measurement. truth: the law that is assumed. who: the
    noun in the sentence. A plan separates the two when the coherency stands out from its standard
    error and they are not correlated too strongly.
    """
    steps = sorted(set(workers))
    errors = _errors(steps, repeats, noise, truth)
    good = _separates(steps, repeats, noise, truth)
    limit = steps[-1] if good else _limit(steps, repeats, noise, truth)
    enough = repeats if good else _repeats(steps, repeats, noise, truth)
    often = f"{repeats} times"
    if repeats == 1:
        often = "once"
    plan = f"{who} up to {steps[-1]}, {often} each, with {100 * noise:g}% noise"
    if good:
        sentence = f"{plan}: enough to separate {_COEFFICIENTS}"
    else:
        remedies = []
        if limit:
            remedies.append(f"go up to {limit} {who}")
        if enough:
            remedies.append(f"measure each step {enough} times")
        remedy = " or ".join(remedies) or "measure with less noise"
        sentence = f"{plan}: not enough to separate {_COEFFICIENTS}; for that {remedy}"
    return Separability(good, *errors, limit, enough, sentence)


def _separates(steps: Sequence[int], repeats: int, noise: float, truth: Law) -> bool:
    if len(steps) * repeats < PARAMETERS["usl"] + 2:
        return False
    _, error, correlation = _errors(steps, repeats, noise, truth)
    return error * STANDS_OUT <= truth.coherency and abs(correlation) <= STRONGEST_CORRELATION


def _limit(steps: Sequence[int], repeats: int, noise: float, truth: Law) -> int | None:
    """The least limit in doublings of the largest step that separates."""
    longer = [*steps, 2 * steps[-1]]
    while longer[-1] <= _MOST_WORKERS:
        if _separates(longer, repeats, noise, truth):
            return longer[-1]
        longer.append(2 * longer[-1])
    return None


def _repeats(steps: Sequence[int], repeats: int, noise: float, truth: Law) -> int | None:
    more = range(repeats + 1, _MOST_REPEATS + 1)
    return next((number for number in more if _separates(steps, number, noise, truth)), None)


def _errors(
    steps: Sequence[int], repeats: int, noise: float, truth: Law
) -> tuple[float, float, float]:
    """Standard errors of contention and coherency, and their correlation."""
    if len(steps) < 3:
        return math.inf, math.inf, -1.0
    covariances = _covariances(steps, truth)
    contention, coherency = [-truth.contention, 1.0, 0.0], [-truth.coherency, 0.0, 1.0]
    first = math.sqrt(_bilinear(contention, covariances, contention))
    second = math.sqrt(_bilinear(coherency, covariances, coherency))
    correlation = _bilinear(contention, covariances, coherency) / (first * second)
    scale = truth.rate * noise / math.sqrt(repeats)
    return scale * first, scale * second, correlation


def _covariances(steps: Sequence[int], truth: Law) -> list[list[float]]:
    """The inverse of the normal matrix of p, q and r (3 x 3); infinite where it has none."""
    equations = []
    for n in steps:
        weight = truth.at(n) / n
        equations.append([weight, weight * (n - 1.0), weight * (n * (n - 1.0))])
    normal = [[0.0] * 3 for _ in range(3)]
    for i, j in itertools.product(range(3), repeat=2):
        normal[i][j] = sum(equation[i] * equation[j] for equation in equations)
    columns = []
    for i in range(3):
        unit = [float(i == j) for j in range(3)]
        columns.append(solve(normal, unit) or [math.inf] * 3)
    return columns


def _bilinear(
    left: Sequence[float], matrix: Sequence[Sequence[float]], right: Sequence[float]
) -> float:
    """left' matrix right."""
    total = 0.0
    for i, j in itertools.product(range(3), repeat=2):
        total += left[i] * matrix[i][j] * right[j]
    return total

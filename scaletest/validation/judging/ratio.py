"""The ratio of the throughputs of two steps, with its 90 % interval.

The interval of a ratio is built on the logarithm, where the errors of the two throughputs add:
half-width of ln r = sqrt(rel(a)^2 + rel(b)^2), rel being half-width over rate. It is the 90 %
interval: each of its ends is wrong in at most 5 of 100 runs, and a verdict rests on one end only
(two one-sided tests, Schuirmann 1987).
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated

from scaletest.model import VerdictKind
from scaletest.model.declared import Unbounded, called, choice
from scaletest.model.verdict import JUDGEMENTS
from scaletest.model.writing import Written
from scaletest.validation.judging.throughput import Throughput

# 1.645 / 1.960: from the half-width of a two-sided 95 % interval to that of a 90 % one.
ONE_SIDED = 0.839
# A bound of a ratio is wrong in this part of all runs.
ERROR = 0.05
# Reasons why an interval is wider than the scatter of requests makes it.
WAYS, SLOW_REQUESTS = "ways", "slow requests"


@dataclass(frozen=True, slots=True)
class Ratio(Written):
    """Throughput over that of the step before, its 90 % interval, and the ratio that was wanted."""

    value: Annotated[float, "throughput over that of the step before"]
    low: Annotated[Unbounded, "of the 90 % interval"]
    high: Unbounded
    wanted: float
    most: Annotated[Unbounded, "upper bound for all doublings together, on which FAIL rests"]
    up: Annotated[
        float | None,
        "the ratio on the way up, by usual requests where some were slow; null without both",
    ] = None
    down: Annotated[float | None, "the same on the way down"] = None
    widened_by: Annotated[
        str,
        choice(("", WAYS, SLOW_REQUESTS)),
        "what widens the interval, besides the variation of requests",
    ] = ""

    @property
    def kind(self) -> Annotated[VerdictKind, choice(JUDGEMENTS), called("verdict")]:
        """The verdict of this ratio alone: PASS when all of the interval is high enough."""
        if self.low >= self.wanted:
            return VerdictKind.PASS
        if self.most < self.wanted:
            return VerdictKind.FAIL
        return VerdictKind.INVALID


def ratio(
    before: tuple[int, Throughput],
    after: tuple[int, Throughput],
    scale: float,
    wider: float = ONE_SIDED,
    doublings: int = 1,
) -> Ratio | None:
    """Return the ratio of (workers, throughput) pairs; None without a throughput on either side.

    scale: wanted per doubling; for a step that is no doubling the wanted ratio is scale^log2(N2 /
    N1). wider: factor on the half-width, from two-sided 95 % to the confidence wanted. doublings:
    of the whole run.
    """
    workers, base = before
    more, rate = after
    if base.per_s <= 0 or rate.per_s <= 0:
        return None
    quotient = rate.per_s / base.per_s
    spread = wider * math.hypot(base.relative, rate.relative)
    return around(
        math.log(quotient), spread, spread, scale ** math.log2(more / workers), family(doublings)
    )


def around(log_ratio: float, below: float, above: float, wanted: float, more: float) -> Ratio:
    """Return the ratio with that logarithm; infinite widths are bounds of 0 and infinity.

    below, above: half-widths of the logarithm. more: see `family`.
    """
    return Ratio(
        math.exp(log_ratio),
        math.exp(log_ratio - below),
        power(log_ratio + above),
        wanted,
        power(log_ratio + more * above),
    )


def power(exponent: float) -> float:
    """Return e to the power of the exponent; infinity where that is too large."""
    return math.exp(exponent) if exponent < 700.0 else math.inf


def family(doublings: int) -> float:
    """Return by how much a bound widens that may be wrong in 5 % / doublings instead of in 5 %."""
    return NormalDist().inv_cdf(1.0 - ERROR / max(1, doublings)) / NormalDist().inv_cdf(1.0 - ERROR)

"""The ratio of two steps' throughputs, its interval, and its verdict on the wanted ratio.

The interval is built on the logarithm, where the errors of the two throughputs add: half-width of
ln r = sqrt(rel(a)^2 + rel(b)^2), rel being half-width over rate. It is the 90 % interval: each of
its ends is wrong in at most 5 of 100 runs, and a verdict rests on one end only (two one-sided
tests, Schuirmann 1987).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from scaletest.analysis.estimate import finite
from scaletest.analysis.throughput import Throughput
from scaletest.model import VerdictKind

# 1.645 / 1.960: from the half-width of a two-sided 95 % interval to that of a 90 % one.
ONE_SIDED = 0.839
ERROR = 0.05


@dataclass(frozen=True, slots=True)
class Ratio:
    """Throughput over that of the step before, its 90 % interval, and the ratio that was wanted.

    most: upper bound that holds for all doublings of the run together: one that fails fails the
    run, so each may be wrong in its part of 5 % only (Bonferroni). up, down: the ratio on the way
    up and on the way down, where steps are measured on both. widened_by: why the interval is wider
    than the scatter of requests makes it, "" for no reason.
    """

    value: float
    low: float
    high: float
    wanted: float
    most: float
    up: float | None = None
    down: float | None = None
    widened_by: str = ""

    @property
    def kind(self) -> VerdictKind:
        """The verdict of this ratio alone: PASS when all of the interval is high enough."""
        if self.low >= self.wanted:
            return VerdictKind.PASS
        if self.most < self.wanted:
            return VerdictKind.FAIL
        return VerdictKind.INVALID

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite end is null."""
        document = asdict(self) | {"verdict": str(self.kind)}
        for name, figure in document.items():
            if isinstance(figure, float):
                document[name] = finite(figure)
        return document


def ratio(
    before: tuple[int, Throughput],
    after: tuple[int, Throughput],
    scale: float,
    wider: float = ONE_SIDED,
    doublings: int = 1,
) -> Ratio | None:
    """The ratio of (workers, throughput) pairs; None without a throughput on either side.

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
    """The ratio with that logarithm; infinite widths are bounds of 0 and infinity.

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
    """e to the power of the exponent; infinity where that is too large."""
    if exponent < 700.0:
        return math.exp(exponent)
    return math.inf


def family(doublings: int) -> float:
    """By how much a bound that is wrong in 5 % widens when it may be wrong in 5 % / doublings."""
    return NormalDist().inv_cdf(1.0 - ERROR / max(1, doublings)) / NormalDist().inv_cdf(1.0 - ERROR)

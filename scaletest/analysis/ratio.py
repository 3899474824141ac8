"""The ratio of two steps' throughputs, its interval, and what that says about the ratio wanted.

The interval is built on the logarithm, where the errors of the two throughputs add: half-width of
ln r = sqrt(rel(a)^2 + rel(b)^2), rel being half-width over rate. It is the 90 % interval: each of its ends is wrong in
at most 5 of 100 runs, and a verdict rests on one end only (two one-sided tests, Schuirmann 1987).
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
    """Throughput over that of the step before, its 90 % interval, and what was wanted.

    most: upper bound that holds for all doublings of the run together: one that fails fails the run, so each may be
    wrong in its part of 5 % only (Bonferroni). up, down: the ratio on the way up and on the way down, where steps are
    measured on both. widened_by: what makes the interval wider than the scatter of requests does, "" for nothing.
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
        """What this ratio alone says: PASS when the whole interval reaches what is wanted, FAIL when nothing does."""
        if self.low >= self.wanted:
            return VerdictKind.PASS
        return VerdictKind.FAIL if self.most < self.wanted else VerdictKind.INVALID

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite end is null."""
        row = {name: finite(value) if isinstance(value, float) else value for name, value in asdict(self).items()}
        return {**row, "verdict": str(self.kind)}


def ratio(
    before: tuple[int, Throughput],
    after: tuple[int, Throughput],
    scale: float,
    wider: float = ONE_SIDED,
    doublings: int = 1,
) -> Ratio | None:
    """The ratio of (workers, throughput) pairs; None without a throughput on either side.

    scale: wanted per doubling; for a step that is no doubling what is wanted shrinks with it: scale^log2(N2 / N1).
    wider: factor on the half-width, from two-sided 95 % to the confidence wanted. doublings: of the whole run.
    """
    workers, base = before
    more, rate = after
    if base.per_s <= 0 or rate.per_s <= 0:
        return None
    value = rate.per_s / base.per_s
    spread = wider * math.hypot(base.relative, rate.relative)
    return around(math.log(value), spread, spread, scale ** math.log2(more / workers), family(doublings))


def around(value: float, below: float, above: float, wanted: float, more: float) -> Ratio:
    """The ratio of that logarithm; infinite widths are bounds of 0 and infinity. more: see `family`."""
    return Ratio(math.exp(value), math.exp(value - below), power(value + above), wanted, power(value + more * above))


def power(value: float) -> float:
    """e to the power of the value, infinity where that is too large."""
    return math.exp(value) if value < 700.0 else math.inf


def family(doublings: int) -> float:
    """By how much a bound that is wrong in 5 % is wider when it may be wrong in 5 % / doublings."""
    return NormalDist().inv_cdf(1.0 - ERROR / max(1, doublings)) / NormalDist().inv_cdf(1.0 - ERROR)

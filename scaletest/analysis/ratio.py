"""The ratio of two steps' throughputs, its interval, and what that says about the ratio wanted.

The interval is built on the logarithm, where the errors of the two throughputs add: half-width of
ln r = sqrt(rel(a)^2 + rel(b)^2), rel being half-width over rate. It is the 90 % interval: each of its ends is wrong in
at most 5 of 100 runs, and a verdict rests on one end only (two one-sided tests, Schuirmann 1987).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.throughput import Throughput
from scaletest.model import VerdictKind

# 1.645 / 1.960: from the half-width of a two-sided 95 % interval to that of a 90 % one.
ONE_SIDED = 0.839


@dataclass(frozen=True, slots=True)
class Ratio:
    """Throughput over that of the step before, its 90 % interval, and what was wanted."""

    value: float
    low: float
    high: float
    wanted: float

    @property
    def kind(self) -> VerdictKind:
        """What this ratio alone says: PASS when the whole interval reaches what is wanted, FAIL when nothing does."""
        if self.low >= self.wanted:
            return VerdictKind.PASS
        return VerdictKind.FAIL if self.high < self.wanted else VerdictKind.INVALID

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite end is null."""
        row = {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}
        return {**row, "verdict": str(self.kind)}


def ratio(
    before: tuple[int, Throughput], after: tuple[int, Throughput], scale: float, wider: float = ONE_SIDED
) -> Ratio | None:
    """The ratio of (workers, throughput) pairs; None without a throughput on either side.

    scale: wanted per doubling; for a step that is no doubling what is wanted shrinks with it: scale^log2(N2 / N1).
    wider: factor on the half-width, from two-sided 95 % to the confidence wanted.
    """
    workers, base = before
    more, rate = after
    if base.per_s <= 0 or rate.per_s <= 0:
        return None
    value = rate.per_s / base.per_s
    spread = wider * math.hypot(base.relative, rate.relative)
    wanted = scale ** math.log2(more / workers)
    try:
        return Ratio(value, value * math.exp(-spread), value * math.exp(spread), wanted)
    except OverflowError:
        return Ratio(value, 0.0, math.inf, wanted)

"""Mann and Whitney's U test (1947): whether values of one sample tend to be larger than those of
another.

Two-sided by the normal approximation, with the correction for ties and for continuity; good from
about eight values each. It supposes independent values; requests that follow each other are not
quite, so small p-values are too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist

FEWEST = 8


@dataclass(frozen=True, slots=True)
class RankTest:
    """The result of the test.

    u: pairs in which the first sample's value is the larger one, a tie counting half. larger: u as
    a part of all pairs; 0.5 when neither tends to be larger. p: the probability of such a split by
    chance.
    """

    u: float
    larger: float
    p: float

    def to_dict(self) -> dict[str, float]:
        """Plain values for JSON."""
        return {"u": self.u, "larger": self.larger, "p": self.p}


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
    p = 1.0
    if variance > 0:
        p = 2 * NormalDist().cdf(-distance / math.sqrt(variance))
    return RankTest(u, u / (m * n), min(1.0, p))

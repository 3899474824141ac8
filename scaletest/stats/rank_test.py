"""Mann and Whitney's U test (1947): whether one sample tends to have larger values than another.

It is two-sided, by the normal approximation with the corrections for ties and for continuity, which
is good from about eight values each. It supposes independent values. Requests that follow each
other are not quite independent, so small p-values are too small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

from scaletest.model.writing import Written
from scaletest.stats.student import NORMAL

# With at least so many values of each sample the normal approximation is good.
LEAST_SAMPLES = 8


@dataclass(frozen=True, slots=True)
class RankTest(Written):
    """The result of the test."""

    larger: Annotated[float, "part of all pairs in which the candidate's is larger"]
    p: Annotated[float, "of so uneven a split by chance"]


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> RankTest | None:
    """Test two samples in any order; None with fewer than eight values in either."""
    m, n = len(first), len(second)
    if min(m, n) < LEAST_SAMPLES:
        return None
    # the sum of the ranks of the first sample, tagged 1; equal values share their mean rank
    tagged = sorted([(value, 1) for value in first] + [(value, 0) for value in second])
    rank_sum, tie_term, ranked = 0.0, 0.0, 0
    for _, group in groupby(tagged, key=lambda pair: pair[0]):
        tags = [tag for _, tag in group]
        size = len(tags)
        rank_sum += sum(tags) * (ranked + (size + 1) / 2)
        tie_term += size**3 - size
        ranked += size
    u = rank_sum - m * (m + 1) / 2
    total = m + n
    variance = m * n / 12 * (total + 1 - tie_term / (total * (total - 1)))
    distance = max(0.0, abs(u - m * n / 2) - 0.5)
    # 2 cdf(-z), since 1 - cdf(z) would be 0 far out
    p = 2 * NORMAL.cdf(-distance / math.sqrt(variance)) if variance > 0 else 1.0
    return RankTest(larger=u / (m * n), p=min(1.0, p))

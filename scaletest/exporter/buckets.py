"""Conversion from scaletest's fine buckets to a few Prometheus buckets, cheap to keep for years."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import accumulate
from operator import mul

from scaletest.model import histogram

# Upper bounds in seconds. A fine bucket always belongs to the first bound that its middle does not
# exceed, so that no count ever moves from one bucket to another.
_SHORT_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5)
_SECONDS_BOUNDS = (1.0, 2.5, 5.0, 10.0, 30.0)
_MINUTES_BOUNDS = (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0)
_LONG_BOUNDS = (*_SECONDS_BOUNDS, *_MINUTES_BOUNDS)
BOUNDS = (*_SHORT_BOUNDS, *_LONG_BOUNDS)
_SHORT_LABELS = (f"{bound:g}" for bound in _SHORT_BOUNDS)
_LONG_LABELS = (f"{bound:.1f}" for bound in _LONG_BOUNDS)
_LABELS = (*_SHORT_LABELS, *_LONG_LABELS, "+Inf")
_MIDDLES = tuple(histogram.middle(index) for index in range(histogram.LAST_BUCKET + 1))
# The first fine bucket beyond each bound.
_EDGES = tuple(bisect_right(_MIDDLES, bound) for bound in BOUNDS)


def cumulative(counts: Mapping[int, int]) -> tuple[list[tuple[str, float]], float]:
    """Cumulative counts by upper bound, and the sum of all durations in seconds, within 1 %.

    The sum is rounded once, at its end: otherwise it could become smaller when a count grows.
    """
    indices = sorted(counts)
    if indices and not 0 <= indices[0] <= indices[-1] <= histogram.LAST_BUCKET:
        indices = [index for index in indices if 0 <= index <= histogram.LAST_BUCKET]
    values = [counts[index] for index in indices]
    sums = [0, *accumulate(values)]
    within = [float(sums[bisect_left(indices, edge)]) for edge in _EDGES]
    total_s = math.fsum(map(mul, values, map(_MIDDLES.__getitem__, indices)))
    return list(zip(_LABELS, [*within, float(sums[-1])], strict=True)), total_s

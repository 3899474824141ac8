"""Buckets for durations. They are geometric, so that a value read back is within 1 % of the truth.

Bucket i holds durations of GROWTH**i to GROWTH**(i + 1) microseconds; bucket 0 also holds shorter
ones. The value read back is the geometric middle, sqrt(GROWTH) away from either edge:
sqrt(1.02) - 1 = 0.995 %. Broker, exporter and reports all use these buckets, so that their
histograms add up.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from functools import cache
from itertools import accumulate
from operator import mul

GROWTH = 1.02
# 30 days, the longest time limit, in microseconds
LAST_BUCKET = int(math.log(30 * 86400 * 1e6) / math.log(GROWTH))

_SCALE = 1.0 / math.log(GROWTH)
_log = math.log


def bucket(seconds: float) -> int:
    """Return the bucket of a duration in seconds."""
    micros = seconds * 1e6
    if micros < 1.0:
        return 0
    index = int(_log(micros) * _SCALE)
    return index if index < LAST_BUCKET else LAST_BUCKET


def middle(index: float) -> float:
    """Return the duration in seconds that a bucket stands for: its geometric middle."""
    return float(GROWTH ** (index + 0.5)) / 1e6


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the duration in seconds below which `share` (0 to 1) of the counts lie, or None."""
    if not any(counts.values()):
        return None
    indexes = sorted(counts)
    sums = list(accumulate(map(counts.__getitem__, indexes)))
    return middle(indexes[bisect_left(sums, max(1, math.ceil(share * sums[-1])))])


@cache
def _middles() -> tuple[float, ...]:
    return tuple(map(middle, range(LAST_BUCKET + 1)))


@cache
def _edges(bounds: tuple[float, ...]) -> tuple[int, ...]:
    """Return the first bucket beyond each bound."""
    return tuple(bisect_right(_middles(), bound) for bound in bounds)


def cumulative(counts: Mapping[int, int], bounds: tuple[float, ...]) -> list[tuple[str, float]]:
    """Return cumulative counts by upper bound in seconds, as Prometheus wants them.

    A bucket always belongs to the first bound that its middle does not exceed, so that no count
    ever moves from one bound to another.
    """
    indices = _known(counts)
    sums = [0, *accumulate(map(counts.__getitem__, indices))]
    within = [float(sums[bisect_left(indices, edge)]) for edge in _edges(bounds)]
    return list(zip([*map(repr, bounds), "+Inf"], [*within, float(sums[-1])], strict=True))


def total_s(counts: Mapping[int, int]) -> float:
    """Return the sum of all durations in seconds, within 1 %.

    It is rounded once, at its end: otherwise it could become smaller when a count grows.
    """
    indices = _known(counts)
    middles = map(_middles().__getitem__, indices)
    return math.fsum(map(mul, map(counts.__getitem__, indices), middles))


def _known(counts: Mapping[int, int]) -> list[int]:
    """Return the buckets in their order, without those that do not exist."""
    indices = sorted(counts)
    if indices and not 0 <= indices[0] <= indices[-1] <= LAST_BUCKET:
        return [index for index in indices if 0 <= index <= LAST_BUCKET]
    return indices

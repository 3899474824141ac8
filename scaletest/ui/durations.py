"""Wait and run times of a queue's requests: percentiles and a histogram, from its buckets. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from scaletest.model import histogram
from scaletest.render import numbers
from scaletest.render.svg import Axis, Chart, ceiling

SHARES = {"median": 0.5, "90 %": 0.9, "95 %": 0.95, "99 %": 0.99}
BARS = 48
# Buckets that an axis has at least, a factor of four: nearly equal times stand in its middle.
LEAST_BUCKETS = 70
POWERS = [10.0**exponent for exponent in range(-6, 8)]
# First digits of marks: the finest of these that has so few of them.
MOST_MARKS = 5
LADDERS = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5, 7), (1, 2, 5), (1,))
WIDTH, HEIGHT = 460.0, 190.0


@dataclass(frozen=True, slots=True)
class Durations:
    """Times of the requests that ended. counts: by bucket of model/histogram.py."""

    key: str
    title: str
    counts: Mapping[int, int]

    @property
    def total(self) -> int:
        """How many requests ended."""
        return sum(self.counts.values())

    @property
    def mean_s(self) -> float | None:
        """Their mean in seconds; None when none ended."""
        return histogram.total_s(self.counts) / self.total if self.total else None

    @property
    def percentiles_s(self) -> dict[str, float | None]:
        """Percentiles in seconds by their names."""
        return {name: histogram.quantile(self.counts, share) for name, share in SHARES.items()}

    def chart(self) -> Chart:
        """How they spread; the axis of times is logarithmic. At least one request ended."""
        known = {bucket: count for bucket, count in self.counts.items() if count}
        first, last = min(known), max(known)
        missing = max(0, LEAST_BUCKETS - (last - first + 1))
        first, last = max(0, first - missing // 2), last + missing - missing // 2
        width = math.ceil((last - first + 1) / BARS)
        bars = Counter[int]()
        for bucket, count in known.items():
            bars[(bucket - first) // width] += count
        low_s, high_s = edge_s(first), edge_s(first + width * math.ceil((last + 1 - first) / width))
        marks = round_times(low_s, high_s)
        chart = Chart(
            f"chart-{self.key}",
            self.title,
            f"How many requests took how long. {numbers.plural(self.total, 'request')} ended.",
            Axis("", low_s, high_s, "log2", marks, [numbers.seconds(mark) for mark in marks]),
            Axis("", 0.0, ceiling(max(bars.values()), 4), most=4),
            WIDTH,
            HEIGHT,
        )
        for number, count in sorted(bars.items()):
            start_s, end_s = edge_s(first + number * width), edge_s(first + (number + 1) * width)
            span = f"from {numbers.seconds(start_s)} to {numbers.seconds(end_s)}"
            chart.bar(start_s, end_s, count, "c-bar", f"{numbers.plural(count, 'request')} {span}")
        return chart


def edge_s(bucket: int) -> float:
    """The shortest duration of a bucket, in seconds."""
    return histogram.middle(bucket - 0.5)


def round_times(low_s: float, high_s: float) -> list[float]:
    """Round durations between these two; of too many rounder ones."""
    within = list[float]()
    for digits in LADDERS:
        every = (power * digit for power, digit in product(POWERS, digits))
        within = [mark for mark in every if low_s <= mark <= high_s]
        if len(within) <= MOST_MARKS:
            break
    return within

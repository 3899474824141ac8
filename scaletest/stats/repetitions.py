"""Summaries of repeated measurements.

The repetitions are the units: the variation from one to the next is in the interval of their mean,
the variation within one is not used.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Unbounded
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate
from scaletest.stats.student import t95


@dataclass(frozen=True, slots=True)
class Summary(Written):
    """A summary of repeated measurements."""

    count: int
    mean: Unbounded
    half_width: Annotated[
        Unbounded, "of the 95 % interval of their mean by Student's t; infinite for a single one."
    ]
    deviation: Unbounded
    least: Unbounded
    median: Unbounded
    most: Unbounded

    @property
    def estimate(self) -> Estimate:
        """The mean with its interval, of values of which none lies below 0."""
        low = max(0.0, self.mean - self.half_width)
        return Estimate(self.mean, low, self.mean + self.half_width)


def summarise_repetitions(values: Sequence[float]) -> Summary:
    """Summarise one value or more."""
    count, mean = len(values), statistics.fmean(values)
    deviation, half = 0.0, math.inf
    if count > 1:
        deviation = statistics.stdev(values)
        half = t95(count - 1) * deviation / math.sqrt(count)
    return Summary(
        count, mean, half, deviation, min(values), statistics.median(values), max(values)
    )


def group_by_permutation(
    rows: Sequence[tuple[int, Mapping[str, float]]],
) -> dict[int, dict[str, list[float]]]:
    """Group values by permutation and headline.

    rows: (permutation, headlines) of each repetition.
    """
    by_permutation: dict[int, dict[str, list[float]]] = {}
    for number, headlines in rows:
        for name, measured in headlines.items():
            by_permutation.setdefault(number, {}).setdefault(name, []).append(measured)
    return by_permutation


def mean_estimate(samples: Sequence[float]) -> Estimate:
    """Return the mean of values of which none lies below 0, by Student's t.

    Of a single one nothing more is known.
    """
    return summarise_repetitions(samples).estimate

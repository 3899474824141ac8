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
    count = len(values)
    deviation = 0.0
    half_width = math.inf
    if count > 1:
        deviation = statistics.stdev(values)
        half_width = t95(count - 1) * deviation / math.sqrt(count)
    return Summary(
        count=count,
        mean=statistics.fmean(values),
        half_width=half_width,
        deviation=deviation,
        least=min(values),
        median=statistics.median(values),
        most=max(values),
    )


def group_by_permutation(
    rows: Sequence[tuple[int, Mapping[str, float]]],
) -> dict[int, dict[str, list[float]]]:
    """Group values by permutation and headline.

    rows: (permutation, headlines) of each repetition.
    """
    by_permutation: dict[int, dict[str, list[float]]] = {}
    for permutation, headlines in rows:
        for name, value in headlines.items():
            by_permutation.setdefault(permutation, {}).setdefault(name, []).append(value)
    return by_permutation


def mean_estimate(samples: Sequence[float]) -> Estimate:
    """Return the mean of values of which none lies below 0, with its interval by Student's t.

    The interval of a single value reaches from 0 to infinity.
    """
    return summarise_repetitions(samples).estimate

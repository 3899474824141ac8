"""Repeated measurements: their mean with its interval.

The repetitions are the units: the variation from one to the next is in the interval, the variation
within one is not used.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.analysis.estimate import t95
from scaletest.model.declared import Unbounded, Written


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


def summarise(values: Sequence[float]) -> Summary:
    """The summary of one value or more."""
    count, mean = len(values), statistics.fmean(values)
    deviation = 0.0
    if count > 1:
        deviation = statistics.stdev(values)
    half = math.inf
    if count > 1:
        half = t95(count - 1) * deviation / math.sqrt(count)
    return Summary(
        count, mean, half, deviation, min(values), statistics.median(values), max(values)
    )


def gathered(rows: Sequence[tuple[int, Mapping[str, float]]]) -> dict[int, dict[str, list[float]]]:
    """Values by permutation and headline. rows: (permutation, headlines) of each repetition."""
    by_permutation: dict[int, dict[str, list[float]]] = {}
    for number, headlines in rows:
        for name, measured in headlines.items():
            by_permutation.setdefault(number, {}).setdefault(name, []).append(measured)
    return by_permutation

"""Measures: the named numbers of a run, with their intervals. Runs of one type are compared by
them.

Of repeated measurements the repetitions are the units: the variation from one to the next is in the
interval of their mean, the variation within one is not used.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.analysis.estimate import Distribution, Estimate, Percentile, t95
from scaletest.model.declared import INNER, Unbounded, Written, called
from scaletest.model.texts import short


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


def summarise(values: Sequence[float]) -> Summary:
    """The summary of one value or more."""
    count, mean = len(values), statistics.fmean(values)
    deviation, half = 0.0, math.inf
    if count > 1:
        deviation = statistics.stdev(values)
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


Place = Mapping[str, str | int | float]
NOWHERE: Place = {}


@dataclass(frozen=True, slots=True)
class Measure(Written):
    """One number of a run."""

    name: Annotated[str, called("measure"), 'its name with its statistic, as in "run.p95"']
    where: Annotated[Place, "of what in the run, as in workers: 8"]
    estimate: Annotated[
        Estimate,
        INNER,
        "with its 95 % interval; infinite ends where that is unknown, equal ones where it was "
        "counted.",
    ]
    unit: Annotated[
        str, 'the base unit, as in s, 1/s, B/s, x; "" for a plain number or a part of 1.'
    ]
    more_is_better: Annotated[bool | None, INNER, "None where neither is."]
    samples: Annotated[
        Sequence[float], INNER, "the single values behind it, if there are any."
    ] = ()
    repeats: Annotated[
        Sequence[float], INNER, "what each repeat measured, where the estimate is their mean."
    ] = ()
    freedom: Annotated[
        int, INNER, "degrees of freedom behind the interval, 0 where they are unknown."
    ] = 0
    resolution: Annotated[float, INNER, "of its clock, in its unit."] = 0.0
    reason: Annotated[str, INNER, 'why it may not be judged, "" when it may.'] = ""
    decides: Annotated[bool, "whether the verdict rests on it"] = False

    @property
    def key(self) -> tuple[object, ...]:
        """What it is in any run."""
        return self.name, *sorted(self.where.items(), key=str)

    @property
    def text(self) -> str:
        """Name and place in words."""
        return f"{self.name} ({place_text(self.where)})" if self.where else self.name

    @property
    def is_counted(self) -> bool:
        """Whether its number has no interval because nothing about it is left to chance."""
        return self.estimate.low == self.estimate.high and not self.reason

    @property
    def is_median(self) -> bool:
        """Whether it is the median of its samples."""
        return self.name.endswith(".p50")


def _shown(setting: str | int | float) -> str:
    return short(setting) if isinstance(setting, float) else str(setting)


def place_text(where: Place) -> str:
    """A place in words; "" for the whole run."""
    return ", ".join(f"{key} {_shown(setting)}" for key, setting in where.items())


def percentiles(
    name: str,
    where: Place,
    spread: Distribution,
    samples: Sequence[float] = (),
    resolution_s: float = 0.0,
) -> list[Measure]:
    """The percentiles of durations in s that are known, and their mean where there are samples."""
    known = {"p50": spread.p50, "p95": spread.p95, "p99": spread.p99}
    estimates = {
        statistic: interval_of(percentile)
        for statistic, percentile in known.items()
        if percentile is not None
    }
    if samples:
        estimates = {"mean": mean_of(samples)} | estimates
    return [
        Measure(
            f"{name}.{statistic}", where, estimate, "s", False, samples, resolution=resolution_s
        )
        for statistic, estimate in estimates.items()
    ]


def interval_of(percentile: Percentile) -> Estimate:
    """A percentile with its interval; too few values leave an end unknown."""
    high = math.inf if percentile.high is None else percentile.high
    return Estimate(percentile.value, percentile.low or 0.0, high)


def exactly(figure: float) -> Estimate:
    """A figure that was counted, and has no interval."""
    return Estimate(figure, figure, figure)


def mean_of(samples: Sequence[float]) -> Estimate:
    """The mean of values of which none lies below 0, by Student's t; of a single one nothing more
    is known.
    """
    return summarise(samples).estimate

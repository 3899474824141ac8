"""Three knees: numbers of workers from which more workers bring less. Each goes by its own name.

    kneedle      where the curve lies farthest above the straight line between its ends (Satopaa et
                 al. 2011): depends on the numbers tested
    efficiency   the last number of workers at 80 % efficiency or more: depends on the base's
                 throughput
    marginal     the last number before a step with less than half of the ideal gain: by one step
                 only

They are three common definitions of the same idea, and may differ. A hard ceiling at 4 workers is a
knee at 4 to kneedle and marginal, but one worker more still has 80 % efficiency. A straight line
has no knee, and efficiency then reports that it was not reached. The crossing of two fitted
straight lines is not offered: it finds a knee in every third straight line.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.estimate import Estimate, within
from scaletest.analysis.scaling import MeasuredThroughput, scaling, usable

WANTED_EFFICIENCY = 0.8
WANTED_GAIN = 0.5
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Knee:
    """A knee by one method.

    workers: the knee, None when there is none. low, high: the smallest and the largest knee that
    the intervals of the throughputs allow, None when unknown. reached: False when the knee lies at
    or beyond the largest number of workers tested, as far as is known.
    """

    method: str
    workers: int | None
    low: int | None
    high: int | None
    reached: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def knees(measured: Iterable[MeasuredThroughput]) -> tuple[Knee, Knee, Knee]:
    """The knees by kneedle, efficiency and marginal gain."""
    rows = usable(measured)
    return kneedle(rows), efficiency_knee(rows), marginal_knee(rows)


def kneedle(measured: Iterable[MeasuredThroughput], sensitivity: float = 1.0) -> Knee:
    """Kneedle for concave increasing curves, offline, unsmoothed: the first knee, or none.

    Both axes are scaled to [0, 1]; the knee is a local maximum of y - x from which the difference
    falls by `sensitivity` mean distances of neighbouring x before it rises again. It has no
    intervals.
    """
    rates = usable(measured)
    without = Knee("kneedle", None, None, None, False)
    if len(rates) < 3 or len({rate.per_s for rate in rates}) == 1:
        return without
    xs = _unit([float(rate.workers) for rate in rates])
    ys = _unit([rate.per_s for rate in rates])
    above = [y - x for x, y in zip(xs, ys, strict=True)]
    fall = sensitivity / (len(rates) - 1)
    candidate = None
    for before, here in itertools.pairwise(range(len(rates) - 1)):
        neighbours = (above[before], above[here + 1])
        if above[here] >= max(neighbours):
            candidate = here
        elif above[here] <= min(neighbours):
            candidate = None
        if candidate is not None and above[here + 1] < above[candidate] - fall - _ROUNDING:
            return Knee("kneedle", rates[candidate].workers, None, None, True)
    return without


def efficiency_knee(
    measured: Iterable[MeasuredThroughput], wanted: float = WANTED_EFFICIENCY
) -> Knee:
    """The last number of workers whose efficiency is `wanted` or more.

    low and high: the same by the ends of the interval of the efficiency.
    """
    steps = scaling(measured)
    if len(steps) < 2:
        return Knee("efficiency", None, None, None, False)

    def last(efficiencies: Sequence[float]) -> int:
        pairs = zip(steps, efficiencies, strict=True)
        return max(step.workers for step, reached in pairs if reached >= wanted - _ROUNDING)

    knee = last([step.efficiency.value for step in steps])
    low = last([step.efficiency.low for step in steps])
    high = last([step.efficiency.high for step in steps])
    return Knee("efficiency", knee, low, high, knee < steps[-1].workers)


def marginal_knee(measured: Iterable[MeasuredThroughput], wanted: float = WANTED_GAIN) -> Knee:
    """The first number of workers from which the next step certainly gains less than `wanted`.

    The gain of a step from N to M is (X(M)/X(N) - 1) / (M/N - 1): 1 is ideal, for a doubling
    X(M) = 2 X(N). Only a step whose whole interval lies below counts, since with noise of 5 % every
    seventh straight line had a knee.
    """
    rows = usable(measured)
    steps = [(before.workers, _gain(before, after)) for before, after in itertools.pairwise(rows)]
    low = next((workers for workers, gain in steps if gain.low < wanted), None)
    knee = next((workers for workers, gain in steps if gain.high < wanted), None)
    return Knee("marginal", knee, low, knee, knee is not None)


def _gain(before: MeasuredThroughput, after: MeasuredThroughput) -> Estimate:
    ratio = within(after.per_s / before.per_s, (before.relative**2 + after.relative**2) ** 0.5)
    ideal = after.workers / before.workers - 1
    return Estimate((ratio.value - 1) / ideal, (ratio.low - 1) / ideal, (ratio.high - 1) / ideal)


def _unit(numbers: Sequence[float]) -> list[float]:
    """Numbers scaled to the range from 0 to 1."""
    least, most = min(numbers), max(numbers)
    return [(number - least) / (most - least) for number in numbers]

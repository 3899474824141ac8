"""Three knees: where more workers begin to pay less. They disagree by design, so each goes by its own name.

    kneedle      the point farthest above the chord of the whole curve (Satopaa et al. 2011): depends on what was tested
    efficiency   the last number of workers at 80 % efficiency or more: depends on the throughput of the base
    marginal     the last number before a step that brings less than half of the ideal gain: looks at one step only

A hard ceiling at 4 workers is a knee at 4 to kneedle and marginal, but one worker more still has 80 % efficiency.
A straight line has no knee at all, and efficiency then says that it was not reached. The hinge of two fitted
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
    """method: its name. workers: the knee, None when there is none.

    low, high: the smallest and the largest knee that the intervals of the throughputs allow, None when unknown.
    reached: False when the knee lies at or beyond the largest number of workers tested, as far as can be told.
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
    """All three, by kneedle, efficiency and marginal gain."""
    rows = usable(measured)
    return kneedle(rows), efficiency_knee(rows), marginal_knee(rows)


def kneedle(measured: Iterable[MeasuredThroughput], sensitivity: float = 1.0) -> Knee:
    """Kneedle for concave increasing curves, offline, unsmoothed: the first knee, or none.

    Both axes are scaled to [0, 1]; the knee is a local maximum of y - x from which the difference falls by
    `sensitivity` mean distances of neighbouring x before it rises again. It knows no intervals.
    """
    rows = usable(measured)
    none = Knee("kneedle", None, None, None, False)
    if len(rows) < 3 or min(row.per_s for row in rows) == max(row.per_s for row in rows):
        return none
    xs = _unit([float(row.workers) for row in rows])
    ys = _unit([row.per_s for row in rows])
    above = [y - x for x, y in zip(xs, ys, strict=True)]
    fall = sensitivity / (len(rows) - 1)
    candidate = None
    for before, here in itertools.pairwise(range(len(rows) - 1)):
        following = above[here + 1]
        if above[here] >= above[before] and above[here] >= following:
            candidate = here
        elif above[here] <= above[before] and above[here] <= following:
            candidate = None
        if candidate is not None and following < above[candidate] - fall - _ROUNDING:
            return Knee("kneedle", rows[candidate].workers, None, None, True)
    return none


def efficiency_knee(measured: Iterable[MeasuredThroughput], wanted: float = WANTED_EFFICIENCY) -> Knee:
    """The last number of workers whose efficiency is `wanted` or more; low and high by the ends of its interval."""
    rows = scaling(measured)
    if len(rows) < 2:
        return Knee("efficiency", None, None, None, False)

    def last(values: Sequence[float]) -> int:
        return max(row.workers for row, value in zip(rows, values, strict=True) if value >= wanted - _ROUNDING)

    found = last([row.efficiency.value for row in rows])
    low = last([row.efficiency.low for row in rows])
    high = last([row.efficiency.high for row in rows])
    return Knee("efficiency", found, low, high, found < rows[-1].workers)


def marginal_knee(measured: Iterable[MeasuredThroughput], wanted: float = WANTED_GAIN) -> Knee:
    """The first number of workers from which the next step gains less than `wanted` of the ideal, surely.

    The gain of a step from N to M is (X(M)/X(N) - 1) / (M/N - 1): 1 is ideal, for a doubling X(M) = 2 X(N). Only a
    step whose whole interval lies below counts, since with noise of 5 % every seventh straight line had a knee.
    """
    rows = usable(measured)
    steps = [(before.workers, _gain(before, after)) for before, after in itertools.pairwise(rows)]
    low = next((workers for workers, gain in steps if gain.low < wanted), None)
    found = next((workers for workers, gain in steps if gain.high < wanted), None)
    return Knee("marginal", found, low, found, found is not None)


def _gain(before: MeasuredThroughput, after: MeasuredThroughput) -> Estimate:
    ratio = within(after.per_s / before.per_s, (before.relative**2 + after.relative**2) ** 0.5)
    ideal = after.workers / before.workers - 1
    return Estimate((ratio.value - 1) / ideal, (ratio.low - 1) / ideal, (ratio.high - 1) / ideal)


def _unit(values: Sequence[float]) -> list[float]:
    least, most = min(values), max(values)
    return [(value - least) / (most - least) for value in values]

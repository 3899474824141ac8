"""Speed-up and efficiency of every step, each with a 95 % interval, and the knee of the curve.

    S(N) = X(N) / X(1)        E(N) = S(N) / N

When the least number of workers is not 1, it is the base and N counts multiples of it. Intervals
come from the log delta method: the relative errors of the two throughputs add in squares. The base
compared with itself is exactly 1.

The knee is the number of workers from which more workers bring less. It lies where the curve is
farthest above the straight line between its ends (Kneedle, Satopaa et al. 2011). It depends on the
numbers tested, and a straight line has none. The crossing of two fitted straight lines is not
offered: it finds a knee in every third straight line.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Positive
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate, estimate_within

# Differences below this are rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class MeasuredThroughput:
    """The throughput of one number of workers, repeats already joined."""

    workers: int
    per_s: float  # requests
    relative: float = math.inf  # half-width of the 95 % interval over it; infinity when unknown


@dataclass(frozen=True, slots=True)
class Scaled(Written):
    """Speed-up and efficiency of one step."""

    workers: Positive
    speedup: Annotated[
        Estimate, "throughput over that of the fewest workers, with its 95 % interval"
    ]
    efficiency: Annotated[Estimate, "speed-up over the multiple of workers"]


def usable_steps(measured: Iterable[MeasuredThroughput]) -> list[MeasuredThroughput]:
    """Return steps by workers, ascending, without those that had no throughput.

    ValueError when a number of workers comes twice.
    """
    rows = sorted((step for step in measured if step.per_s > 0), key=lambda step: step.workers)
    if len({step.workers for step in rows}) < len(rows):
        raise ValueError("join the repeats of a number of workers first")
    return rows


def scaling_figures(rows: Sequence[MeasuredThroughput]) -> list[Scaled]:
    """Return speed-up and efficiency of usable steps over the first of them."""
    return [scaling_over(step, rows[0]) for step in rows]


def scaling_over(step: MeasuredThroughput, base: MeasuredThroughput) -> Scaled:
    """Return speed-up and efficiency of a step over another with a throughput."""
    if step.workers == base.workers:
        exactly_1 = Estimate(1.0, 1.0, 1.0)
        return Scaled(step.workers, exactly_1, exactly_1)
    speedup = throughput_ratio(step, base)
    return Scaled(step.workers, speedup, speedup.scaled(base.workers / step.workers))


def throughput_ratio(step: MeasuredThroughput, base: MeasuredThroughput) -> Estimate:
    """Return the throughput of a step over that of another."""
    return estimate_within(step.per_s / base.per_s, math.hypot(step.relative, base.relative))


def find_knee(rates: Sequence[MeasuredThroughput]) -> int | None:
    """Return the first knee of a concave increasing curve, None without one.

    Both axes are scaled to [0, 1]. The knee is a local maximum of y - x from which the difference
    falls by the mean distance of neighbouring x before it rises again. This is Kneedle's offline
    variant without smoothing.
    """
    if len(rates) < 3 or len({rate.per_s for rate in rates}) == 1:
        return None
    xs = _scale_to_unit([float(rate.workers) for rate in rates])
    ys = _scale_to_unit([rate.per_s for rate in rates])
    heights = [y - x for x, y in zip(xs, ys, strict=True)]
    least_fall = 1.0 / (len(rates) - 1) + _ROUNDING
    knee = None
    # the last local maximum is a knee when the curve falls enough after it
    for index in range(1, len(rates) - 1):
        neighbours = (heights[index - 1], heights[index + 1])
        if heights[index] >= max(neighbours):
            knee = index
        elif heights[index] <= min(neighbours):
            knee = None
        if knee is not None and heights[index + 1] < heights[knee] - least_fall:
            return rates[knee].workers
    return None


def _scale_to_unit(numbers: Sequence[float]) -> list[float]:
    """Scale numbers to the range from 0 to 1."""
    lowest, highest = min(numbers), max(numbers)
    return [(number - lowest) / (highest - lowest) for number in numbers]

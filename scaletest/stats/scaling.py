"""Figures of scaling: speed-up, efficiency, knee and peak.

Speed-up and efficiency of every step, each with a 95 % interval.

    S(N) = X(N) / X(1)        E(N) = S(N) / N

When the least number of workers is not 1, it is the base and N counts multiples of it. Intervals
come from the log delta method: the relative errors of the two throughputs add in squares. The base
compared with itself is exactly 1.

The knee is the number of workers from which more workers bring less: where the curve lies farthest
above the straight line between its ends (Kneedle, Satopaa et al. 2011). It depends on the numbers
tested, and a straight line has none. The crossing of two fitted straight lines is not offered: it
finds a knee in every third straight line.

The number of workers with the highest throughput, N* = sqrt((1 - a) / b), or why there is none.

A peak that was measured, by a throughput that certainly fell after it, is reported whatever the
laws say. A fitted one is named only when the interval of the coherency b excludes 0, marked as
extrapolated when it lies beyond the largest number of workers tested, and refused beyond twice
that: a curve says little about numbers so far beyond its points.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Positive, Unbounded
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate, within
from scaletest.stats.law import Law, LawInterval


@dataclass(frozen=True, slots=True)
class MeasuredThroughput:
    """The throughput of one number of workers, repeats already joined.

    per_s: requests/s. relative: half-width of the 95 % interval over the throughput; infinity when
    unknown.
    """

    workers: int
    per_s: float
    relative: float = math.inf


@dataclass(frozen=True, slots=True)
class Scaled(Written):
    """Speed-up and efficiency of one step."""

    workers: Positive
    speedup: Annotated[
        Estimate, "throughput over that of the fewest workers, with its 95 % interval"
    ]
    efficiency: Annotated[Estimate, "speed-up over the multiple of workers"]


def usable(measured: Iterable[MeasuredThroughput]) -> list[MeasuredThroughput]:
    """Steps by workers, ascending, without those that had no throughput.

    ValueError when a number of workers comes twice.
    """
    rows = sorted((step for step in measured if step.per_s > 0), key=lambda step: step.workers)
    if len({step.workers for step in rows}) < len(rows):
        raise ValueError("join the repeats of a number of workers first")
    return rows


def scaling(rows: Sequence[MeasuredThroughput]) -> list[Scaled]:
    """Figures of usable steps relative to the first of them."""
    return [scaled(step, rows[0]) for step in rows]


def scaled(step: MeasuredThroughput, base: MeasuredThroughput) -> Scaled:
    """Speed-up and efficiency of a step over another with a throughput."""
    if step.workers == base.workers:
        exactly_1 = Estimate(1.0, 1.0, 1.0)
        return Scaled(step.workers, exactly_1, exactly_1)
    speedup = _over(step, base)
    return Scaled(step.workers, speedup, speedup.scaled(base.workers / step.workers))


def _over(step: MeasuredThroughput, base: MeasuredThroughput) -> Estimate:
    """The ratio of two throughputs."""
    return within(step.per_s / base.per_s, math.hypot(step.relative, base.relative))


_ROUNDING = 1e-9


def kneedle(rates: Sequence[MeasuredThroughput]) -> int | None:
    """Return the first knee of a concave increasing curve, offline, unsmoothed; None without one.

    Both axes are scaled to [0, 1]; the knee is a local maximum of y - x from which the difference
    falls by the mean distance of neighbouring x before it rises again.
    """
    if len(rates) < 3 or len({rate.per_s for rate in rates}) == 1:
        return None
    xs = _unit([float(rate.workers) for rate in rates])
    ys = _unit([rate.per_s for rate in rates])
    above = [y - x for x, y in zip(xs, ys, strict=True)]
    fall = 1.0 / (len(rates) - 1)
    candidate = None
    for before, here in itertools.pairwise(range(len(rates) - 1)):
        neighbours = (above[before], above[here + 1])
        if above[here] >= max(neighbours):
            candidate = here
        elif above[here] <= min(neighbours):
            candidate = None
        if candidate is not None and above[here + 1] < above[candidate] - fall - _ROUNDING:
            return rates[candidate].workers
    return None


def _unit(numbers: Sequence[float]) -> list[float]:
    """Numbers scaled to the range from 0 to 1."""
    least, most = min(numbers), max(numbers)
    return [(number - least) / (most - least) for number in numbers]


_FARTHEST = 2.0


@dataclass(frozen=True, slots=True)
class Peak(Written):
    """Where throughput is highest."""

    workers: Annotated[float | None, "where throughput is highest; null when that cannot be said"]
    low: Annotated[
        float | None,
        "its 95 % interval when fitted (high may be infinite), the steps that enclose it when "
        "measured.",
    ]
    high: Annotated[
        Unbounded | None,
        "its 95 % interval when fitted (high may be infinite), the steps that enclose it when "
        "measured.",
    ]
    extrapolated: Annotated[bool, "whether it lies beyond the measured steps"]
    measured: Annotated[bool, "whether it was measured, not fitted"]
    reason: Annotated[str, "how it was determined, or why it was refused."]


def find_peak(
    rows: Sequence[MeasuredThroughput], law: Law | None, interval: LawInterval | None
) -> Peak:
    """The peak of a run: fitted when law and data agree on it, else measured, else refused.

    rows: usable steps. law, interval: the chosen law, None
    without one.
    """
    measured_peak = _measured(rows)
    most = max((step.workers for step in rows), default=0)
    fitted = _fitted(law, interval, float(most))
    if measured_peak and (fitted.workers is None or fitted.extrapolated):
        return measured_peak
    return fitted


def _fitted(law: Law | None, interval: LawInterval | None, most: float) -> Peak:
    if law is None:
        return _refused("no law was chosen")
    if interval is None or interval.coherency is None or interval.peak is None:
        return _refused(f"throughput never falls by the {law.name} law")
    if interval.coherency.low <= 0 or law.peak is None:
        return _refused("the interval of the coherency includes 0: it may never fall")
    if law.peak > _FARTHEST * most:
        return _refused(f"it lies beyond twice the {most:g} workers tested")
    low, high = interval.peak.low, interval.peak.high
    if law.peak <= most:
        return Peak(law.peak, low, high, False, False, "fitted within the range tested")
    return Peak(
        law.peak, low, high, True, False, f"extrapolated: at most {most:g} workers were tested"
    )


def _measured(rows: Sequence[MeasuredThroughput]) -> Peak | None:
    """The step with the highest throughput, when a later one is certainly lower.

    The nearest steps that are certainly lower enclose it.
    """
    if not rows:
        return None
    best = max(rows, key=lambda step: step.per_s)
    lower = [step for step in rows if _over(step, best).high < 1]
    after = next((step.workers for step in lower if step.workers > best.workers), None)
    if after is None:
        return None
    before = [step.workers for step in lower if step.workers < best.workers]
    reason = f"measured: {after} workers do less than {best.workers}"
    low = before[-1] if before else rows[0].workers
    return Peak(best.workers, low, after, False, True, reason)


def _refused(reason: str) -> Peak:
    return Peak(None, None, None, False, False, reason)

"""Figures of scaling: speed-up, efficiency, the serial fraction and its trend, knees and peak.

Speed-up, efficiency and the serial fraction of every step, each with a 95 % interval.

    S(N) = X(N) / X(1)        E(N) = S(N) / N        e(N) = (1/S - 1/N) / (1 - 1/N)

The last is the serial fraction of Karp and Flatt (1990).

When the least number of workers is not 1, it is the base and N counts multiples of it. Intervals
come from the log delta method: the relative errors of the two throughputs add in squares. The base
compared with itself is exactly 1.

Trend of the serial fraction: a constant one is a serial part, a rising one is growing overhead.

Under the Universal Scalability Law the serial fraction of Karp and Flatt is e(N) = a + b N exactly,
so a straight line is fitted and its slope judged. All fractions share the base throughput, which is
why the variance of the line is computed from the throughputs and not from the intervals of the
fractions: with g = 1 / (S (1 - 1/N)), de = g (dlnX(1) - dlnX(N)).

Noise must not classify. Per cent of 1000 simulated runs, N = 1, 2, 4, 8, 16 once each, half-widths
known:

    truth                noise   rising  flat  falling  none  unclear
    linear               0.5 %      2.5   0      2.7    92.6     2.2
    linear               5 %        3.4   0      2.1    92.9     1.6
    a = .05              0.5 %      2.2  95.2    2.6     0       0
    a = .05              2 %        2.3  72.1    2.2     0      23.4
    a = .05              5 %        3.2   0      1.7     0      95.1
    a = .03, b = .005    2 %      100     0      0       0       0
    a = .03, b = .005    5 %       87.5   0.3    0       0      12.2

Three knees: numbers of workers from which more workers bring less. Each goes by its own name.

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
from enum import StrEnum
from typing import Annotated

from scaletest.analysis.estimate import Estimate, within
from scaletest.analysis.law import Law, LawInterval
from scaletest.model.declared import Positive, Unbounded, Written
from scaletest.render.numbers import plural


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
    serial_fraction: Annotated[Estimate | None, "of Karp and Flatt"]


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
        return Scaled(step.workers, exactly_1, exactly_1, None)
    multiple = step.workers / base.workers
    speedup = _over(step, base)
    serial = Estimate(
        _serial(speedup.value, multiple),
        _serial(speedup.high, multiple),
        _serial(speedup.low, multiple),
    )
    return Scaled(step.workers, speedup, speedup.scaled(1 / multiple), serial)


def _over(step: MeasuredThroughput, base: MeasuredThroughput) -> Estimate:
    """The ratio of two throughputs."""
    return within(step.per_s / base.per_s, math.hypot(step.relative, base.relative))


def _serial(speedup: float, multiple: float) -> float:
    """Karp and Flatt's serial fraction; 0 for perfect scaling, below 0 for better than perfect."""
    if speedup <= 0:
        return math.inf
    return (1 / speedup - 1 / multiple) / (1 - 1 / multiple)


# A change of the fraction is worth a sentence if it moves the largest step's throughput by this.
_NOTICEABLE = 0.02


class FractionTrend(StrEnum):
    """How the serial fraction behaves as workers are added."""

    RISING = "rising"
    FLAT = "flat"
    FALLING = "falling"
    NONE = "none"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class SerialTrend(Written):
    """The trend in one word and in one sentence, where points are per cent of the whole."""

    course: Annotated[FractionTrend, "how it changes as workers are added"]
    sentence: str
    level: Annotated[Estimate | None, "mean"]
    rise: Annotated[Estimate | None, "from the first step to the last"]


def serial_trend(rows: Sequence[MeasuredThroughput]) -> SerialTrend:
    """Classify the trend of the serial fraction; needs three usable steps, better five."""
    if len(rows) < 3:
        return SerialTrend(
            FractionTrend.UNCLEAR,
            "the trend of the serial fraction needs three steps or more",
            None,
            None,
        )
    fractions = [step.serial_fraction.value for step in scaling(rows)[1:] if step.serial_fraction]
    multiples = [step.workers / rows[0].workers for step in rows[1:]]
    gains = [
        rows[0].per_s / step.per_s / (1 - 1 / n)
        for step, n in zip(rows[1:], multiples, strict=True)
    ]
    weights = [1 / gain**2 for gain in gains]
    total = sum(weights)
    centre = sum(w * n for w, n in zip(weights, multiples, strict=True)) / total
    spread = sum(w * (n - centre) ** 2 for w, n in zip(weights, multiples, strict=True))
    span = multiples[-1] - multiples[0]

    def line(coefficients: Sequence[float]) -> Estimate:
        weighted = sum(c * e for c, e in zip(coefficients, fractions, strict=True))
        own = (
            c * g * step.relative for c, g, step in zip(coefficients, gains, rows[1:], strict=True)
        )
        shared = sum(c * g for c, g in zip(coefficients, gains, strict=True)) * rows[0].relative
        half = math.hypot(shared, *own)
        return Estimate(weighted, weighted - half, weighted + half)

    level = line([w / total for w in weights])
    rise = line([span * w * (n - centre) / spread for w, n in zip(weights, multiples, strict=True)])
    course = _course(level, rise, multiples[-1])
    return SerialTrend(course, _sentence(course, level, rise, rows), level, rise)


def _course(level: Estimate, rise: Estimate, multiple: float) -> FractionTrend:
    """The trend: each effect against its interval, and in throughput of the largest step."""
    if not math.isfinite(level.low):
        return FractionTrend.UNCLEAR
    lost = (multiple - 1) / (1 + max(level.value, 0.0) * (multiple - 1))
    if rise.low > 0 and rise.value * lost > _NOTICEABLE:
        return FractionTrend.RISING
    if rise.high < 0 and rise.value * lost < -_NOTICEABLE:
        return FractionTrend.FALLING
    if level.low <= 0 or level.value * lost < _NOTICEABLE:
        return FractionTrend.NONE
    if max(rise.high, -rise.low) <= level.value / 2:
        return FractionTrend.FLAT
    return FractionTrend.UNCLEAR


def _sentence(
    course: FractionTrend, level: Estimate, rise: Estimate, rows: Sequence[MeasuredThroughput]
) -> str:
    about = f"{level.value:.1%}"
    reach = f"from {rows[1].workers} to {rows[-1].workers} workers"
    return {
        FractionTrend.RISING: (
            f"the serial fraction rises by {100 * rise.value:.1f} points {reach}: "
            "overhead grows with the workers"
        ),
        FractionTrend.FLAT: (
            f"the serial fraction stays at {about} {reach}: a part of each request runs alone"
        ),
        FractionTrend.FALLING: (
            f"the serial fraction falls by {-100 * rise.value:.1f} points {reach}:"
            f" {plural(rows[0].workers, 'worker')} may have been measured too fast, or workers help"
            " each other (warm caches)"
        ),
        FractionTrend.NONE: f"no serial part stands out from the noise {reach}",
        FractionTrend.UNCLEAR: (
            f"a serial fraction of about {about}, too uncertain to say whether it grows {reach}"
        ),
    }[course]


WANTED_EFFICIENCY = 0.8
WANTED_GAIN = 0.5
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Knee(Written):
    """A knee by one method."""

    method: str
    workers: Annotated[Positive | None, "the knee, None when there is none."]
    low: Annotated[Positive | None, "least that the intervals allow"]
    high: Annotated[
        Positive | None,
        "the smallest and the largest knee that the intervals of the throughputs allow, None "
        "when unknown.",
    ]
    reached: Annotated[bool, "whether it lies within the measured steps"]


def knees(rows: Sequence[MeasuredThroughput]) -> tuple[Knee, Knee, Knee]:
    """The knees of usable steps by kneedle, efficiency and marginal gain."""
    return kneedle(rows), efficiency_knee(rows), marginal_knee(rows)


def kneedle(rates: Sequence[MeasuredThroughput]) -> Knee:
    """Kneedle for concave increasing curves, offline, unsmoothed: the first knee, or none.

    Both axes are scaled to [0, 1]; the knee is a local maximum of y - x from which the difference
    falls by the mean distance of neighbouring x before it rises again. It has no intervals.
    """
    without = Knee("kneedle", None, None, None, False)
    if len(rates) < 3 or len({rate.per_s for rate in rates}) == 1:
        return without
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
            return Knee("kneedle", rates[candidate].workers, None, None, True)
    return without


def efficiency_knee(rows: Sequence[MeasuredThroughput]) -> Knee:
    """The last number of workers whose efficiency is 80 % or more.

    low and high: the same by the ends of the interval of the efficiency.
    """
    steps = scaling(rows)
    if len(steps) < 2:
        return Knee("efficiency", None, None, None, False)
    least = WANTED_EFFICIENCY - _ROUNDING

    def last(efficiencies: Sequence[float]) -> int:
        pairs = zip(steps, efficiencies, strict=True)
        return max(step.workers for step, reached in pairs if reached >= least)

    knee = last([step.efficiency.value for step in steps])
    low = last([step.efficiency.low for step in steps])
    high = last([step.efficiency.high for step in steps])
    return Knee("efficiency", knee, low, high, knee < steps[-1].workers)


def marginal_knee(rows: Sequence[MeasuredThroughput]) -> Knee:
    """The first number of workers from which the next step certainly gains less than half.

    The gain of a step from N to M is (X(M)/X(N) - 1) / (M/N - 1): 1 is ideal, for a doubling
    X(M) = 2 X(N). Only a step whose whole interval lies below counts, since with noise of 5 % every
    seventh straight line had a knee.
    """
    steps = [(before.workers, _gain(before, after)) for before, after in itertools.pairwise(rows)]
    low = next((workers for workers, gain in steps if gain.low < WANTED_GAIN), None)
    knee = next((workers for workers, gain in steps if gain.high < WANTED_GAIN), None)
    return Knee("marginal", knee, low, knee, knee is not None)


def _gain(before: MeasuredThroughput, after: MeasuredThroughput) -> Estimate:
    ratio = _over(after, before)
    ideal = after.workers / before.workers - 1
    return Estimate((ratio.value - 1) / ideal, (ratio.low - 1) / ideal, (ratio.high - 1) / ideal)


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

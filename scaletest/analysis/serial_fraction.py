"""Trend of the serial fraction: a constant one is a serial part, a rising one is growing overhead.

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
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scaletest.analysis.cause_text import workers_text
from scaletest.analysis.estimate import Estimate
from scaletest.analysis.scaling import MeasuredThroughput, scaling, usable

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
class SerialTrend:
    """The trend in one word and in one sentence, where points are per cent of the whole.

    level: the mean fraction. rise: its change from the second step to the last.
    """

    course: FractionTrend
    sentence: str
    level: Estimate | None
    rise: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "course": str(self.course),
            "sentence": self.sentence,
            "level": self.level.to_dict() if self.level else None,
            "rise": self.rise.to_dict() if self.rise else None,
        }


def serial_trend(measured: Iterable[MeasuredThroughput]) -> SerialTrend:
    """Classify the trend of the serial fraction; needs three numbers of workers, better five."""
    rows = usable(measured)
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
            f" {workers_text(rows[0].workers)} may have been measured too fast, or workers help"
            " each other (warm caches)"
        ),
        FractionTrend.NONE: f"no serial part stands out from the noise {reach}",
        FractionTrend.UNCLEAR: (
            f"a serial fraction of about {about}, too uncertain to say whether it grows {reach}"
        ),
    }[course]

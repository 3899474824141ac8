"""A value with its 95 % interval: the type of ratios, coefficients and fractions.

Intervals of ratios are built on the logarithm (delta method), where the relative errors of
independent rates add in squares and no interval reaches below 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# exp() of more overflows, and so wide an interval is useless.
_WIDEST = 700.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the ends of its 95 % interval; infinite ends when nothing is known."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Estimate:
        """The estimate of `factor` > 0 times the value."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def to_dict(self) -> dict[str, float | None]:
        """Plain values for JSON; what is infinite is null."""
        return {"value": finite(self.value), "low": finite(self.low), "high": finite(self.high)}


def within(value: float, relative: float) -> Estimate:
    """The estimate from value / e^relative to value * e^relative.

    relative: half-width of the logarithm, about half-width over value.
    """
    if relative >= _WIDEST:
        return Estimate(value, 0.0, math.inf)
    return Estimate(value, value * math.exp(-relative), value * math.exp(relative))


def finite(value: float) -> float | None:
    """The value for JSON, which has no infinity: None instead."""
    if math.isfinite(value):
        return value
    return None

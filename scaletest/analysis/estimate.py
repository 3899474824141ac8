"""A value with its 95 % interval: the shape in which ratios, coefficients and fractions leave this room.

Intervals of ratios are built on the logarithm (delta method), where the relative errors of independent rates add in
squares and no interval reaches below 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# exp() of more overflows; an interval that wide says nothing anyway.
_WIDEST = 700.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """value, and the ends of its 95 % interval; infinite ends when nothing is known."""

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
    """value times or over e^relative; `relative` is the half-width of the logarithm, about half-width over value."""
    if relative >= _WIDEST:
        return Estimate(value, 0.0, math.inf)
    return Estimate(value, value * math.exp(-relative), value * math.exp(relative))


def finite(value: float) -> float | None:
    """The value for JSON, which knows no infinity."""
    return value if math.isfinite(value) else None

"""Values with their 95 % intervals: the type of ratios, coefficients and fractions.

Intervals of ratios are built on the logarithm (delta method), where the relative errors of
independent rates add in squares and no interval reaches below 0.
"""

import math
from dataclasses import dataclass

from scaletest.model.declared import Unbounded
from scaletest.model.writing import Written

# exp() of more overflows, and so wide an interval is useless.
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class Estimate(Written):
    """A value with the ends of its 95 % interval; infinite ends when nothing is known."""

    description = "value with its 95 % interval"

    value: Unbounded
    low: Unbounded
    high: Unbounded

    def scaled(self, factor: float) -> "Estimate":
        """Return the estimate of `factor` > 0 times the value."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    @property
    def inverse(self) -> "Estimate":
        """The estimate of 1 / value, of a value above 0."""
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low if self.low else math.inf)

    def at_least(self, floor: float) -> "Estimate":
        """Return the estimate with value and ends raised to `floor` where they lie below it."""
        return Estimate(*(max(floor, end) for end in (self.value, self.low, self.high)))


def estimate_within(value: float, relative: float) -> Estimate:
    """Return the estimate from value / e^relative to value * e^relative.

    relative: half-width of the logarithm, about half-width over value.
    """
    if relative >= LARGEST_EXPONENT:
        return Estimate(value, 0.0, math.inf)
    return Estimate(value, value * math.exp(-relative), value * math.exp(relative))


def exact_estimate(figure: float) -> Estimate:
    """Return the estimate of a figure that was counted: its interval has no width."""
    return Estimate(figure, figure, figure)

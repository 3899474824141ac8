"""An axis of a chart: where a number stands on it, and its marks.

Marks are at 1, 2 and 5 times powers of ten, or at powers of two.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


def round_marks(low: float, high: float, max_marks: int = 6) -> list[float]:
    """Return at most `max_marks` evenly spaced round numbers in [low, high]."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / max(1, max_marks - 1)))
    # the epsilons here keep marks that rounding errors would push over an end
    shortest = (high - low) / (max_marks - 1 + 1e-9)
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= shortest)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def marks_up_to(high: float, max_marks: int = 6) -> list[float]:
    """Return marks of an axis from 0, the last one at or above `high`."""
    if high <= 0:
        return [0.0, 1.0]
    marks = round_marks(0.0, high, max_marks)
    if len(marks) == 1:
        # the first round number lies above
        return round_marks(0.0, 2 * high, max_marks)[:2]
    return marks if marks[-1] >= high else [*marks, marks[-1] + marks[1]]


def axis_end(high: float, max_marks: int = 6) -> float:
    """Return the end of an axis from 0 that shows `high` with a mark at or above it."""
    return marks_up_to(high, max_marks)[-1]


def powers_of_two(low: float, high: float, max_marks: int = 8) -> list[float]:
    """Return powers of two in [low, high]; of too many every second or third. low > 0."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / max_marks))
    return [2.0**exponent for exponent in range(first, last + 1, stride)]


def decades(low: float, high: float, max_marks: int = 8) -> list[float]:
    """Return 1, 2 and 5 times powers of ten in [low, high]; of too many every second or third.

    Round numbers where these are fewer than two. low > 0.
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [factor * 10.0**exponent for exponent in exponents for factor in (1, 2, 5)]
    marks = [number for number in numbers if low <= number <= high]
    if len(marks) < 2:
        return round_marks(low, high, max_marks)
    return marks[:: math.ceil(len(marks) / max_marks)]


def label_marks(marks: Sequence[float]) -> list[str]:
    """Label the marks, all with the same decimals, thousands as k, millions as M."""
    largest = max(map(abs, marks), default=0.0)
    size, unit = 1.0, ""
    if largest >= 1e6:
        size, unit = 1e6, "M"
    elif largest >= 1e4:
        size, unit = 1e3, "k"
    scaled = [mark / size for mark in marks]
    # as few decimals as show every mark
    places = 0
    while places < 9 and any(abs(round(mark, places) - mark) > 1e-6 * abs(mark) for mark in scaled):
        places += 1
    return [f"{mark:.{places}f}{unit}" if mark else "0" for mark in scaled]


# How the marks of an axis are chosen, by its kind.
MARKS: Mapping[str, Callable[[float, float, int], list[float]]] = {
    "linear": round_marks,
    "log2": powers_of_two,
    "log10": decades,
}


@dataclass(frozen=True)
class Axis:
    """An axis from a low to a high end."""

    label: str
    low: float
    high: float
    kind: str = "linear"  # or "log2" or "log10"
    marks: Sequence[float] | None = None  # None for round numbers
    names: Sequence[str] | None = None  # of the marks; None for their numbers
    max_marks: int = 6  # where `marks` does not name them

    @cached_property
    def labelled_marks(self) -> list[tuple[float, str]]:
        """The marks with their labels."""
        marks = self.marks or MARKS[self.kind](self.low, self.high, self.max_marks)
        return list(zip(marks, self.names or label_marks(marks), strict=True))

    def position(self, number: float) -> float:
        """Return where a number stands, from 0 at the low end to 1; at most 0.5 outside."""
        low, high = self.low, self.high
        if self.kind != "linear":
            # a number of 0 or less has no logarithm, and lies far below the low end
            number = math.log2(max(number, low / 1024))
            low, high = math.log2(low), math.log2(high)
        position = (number - low) / (high - low) if high > low else 0.5
        return min(1.5, max(-0.5, position))

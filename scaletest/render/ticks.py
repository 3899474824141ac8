"""Positions of an axis's marks: 1, 2 and 5 times powers of ten, or powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence


def nice(low: float, high: float, most: int = 6) -> list[float]:
    """At most `most` evenly spaced round numbers in [low, high]."""
    if not high > low:
        return [low]
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    shortest = (high - low) / (most - 1 + 1e-9)
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= shortest)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def ceiling(high: float, most: int = 6) -> float:
    """The end of an axis from 0 that shows `high` with a mark at or above it."""
    marks = nice(0.0, high, most)
    step = marks[1] - marks[0] if len(marks) > 1 else high or 1.0
    return marks[-1] if marks[-1] >= high > 0 else marks[-1] + step


def powers(low: float, high: float, most: int = 8) -> list[float]:
    """Powers of two in [low, high], or every second, third, ... of too many. low > 0."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / most))
    return [2.0**exponent for exponent in range(first, last + 1, every)]


def labels(marks: Sequence[float]) -> list[str]:
    """Labels of the marks, all with the same decimals, thousands as k, millions as M."""
    largest = max(map(abs, marks), default=0.0)
    size, unit = 1.0, ""
    if largest >= 1e6:
        size, unit = 1e6, "M"
    elif largest >= 1e4:
        size, unit = 1e3, "k"
    scaled = [mark / size for mark in marks]
    places = next((count for count in range(9) if _fit(scaled, count)), 9)
    return [_label(mark, places, unit) for mark in scaled]


def _label(mark: float, places: int, unit: str) -> str:
    return f"{mark:.{places}f}{unit}" if mark else "0"


def _fit(numbers: Sequence[float], places: int) -> bool:
    """Whether this many decimals are enough for all numbers."""
    return all(abs(round(number, places) - number) <= 1e-6 * abs(number) for number in numbers)

"""Where the marks of an axis stand: 1, 2 and 5 times powers of ten, or powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence


def nice(low: float, high: float, most: int = 6) -> list[float]:
    """At most `most` round numbers that enclose nothing but what lies in [low, high]."""
    if not high > low:
        return [low]
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * power) <= most - 1 + 1e-9)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def ceiling(high: float, most: int = 6) -> float:
    """The end of an axis from 0 that shows `high` with a mark at or above it."""
    marks = nice(0.0, high, most)
    step = marks[1] - marks[0] if len(marks) > 1 else high or 1.0
    return marks[-1] if marks[-1] >= high > 0 else marks[-1] + step


def powers(low: float, high: float, most: int = 8) -> list[float]:
    """Powers of two in [low, high]; every second, third, ... when they are too many. low > 0."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / most))
    return [2.0**exponent for exponent in range(first, last + 1, every)]


def labels(marks: Sequence[float]) -> list[str]:
    """The marks in words, all with the same decimals, thousands as k, millions as M."""
    largest = max(map(abs, marks), default=0.0)
    size, unit = next(((s, u) for s, u in ((1e6, "M"), (1e4, "k")) if largest >= s), (1.0, ""))
    size = 1e3 if unit == "k" else size
    scaled = [mark / size for mark in marks]
    places = next((n for n in range(9) if all(abs(round(m, n) - m) <= 1e-6 * abs(m) for m in scaled)), 9)
    return [f"{mark:.{places}f}{unit}" if mark else "0" for mark in scaled]

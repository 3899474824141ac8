"""Quantities with a prefix: 37.6 Gbit/s, 1.25 GB/s, 812 k/s. Prefixes are powers of 1000."""

from __future__ import annotations

import math

from scaletest.render.numbers import NOTHING, measured, significant

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def quantity(number: float, unit: str, digits: int = 4) -> str:
    """A number with three or four digits and its unit; "" is the unit of a plain number."""
    if not math.isfinite(number):
        return NOTHING
    if unit == "" and number == int(number) and abs(number) < 1e15:
        return str(int(number))
    size, name = scale(number, unit, digits)
    if number:
        return f"{significant(number / size, digits)} {name}".strip()
    return f"0 {name}".strip()


def quantity_measured(number: float, half_width: float, unit: str) -> str:
    """A number ± its half-width, with one unit; without an interval the number alone."""
    if not (math.isfinite(number) and math.isfinite(half_width)) or half_width == 0:
        return quantity(number, unit)
    length, name = scale(number, unit, 4)
    return f"{measured(number / length, half_width / length)} {name}".strip()


def scale(number: float, unit: str, digits: int = 4) -> tuple[float, str]:
    """The factor and the unit with its prefix; what rounds up to 1000 has the next prefix."""
    if unit == "":
        return 1.0, ""
    if unit == "s":
        # never larger than seconds, as kiloseconds are unusual; down to nanoseconds, for latencies
        return next(
            (
                (size, name)
                for size, name in _TIMES
                if abs(number) >= size * (1 - 0.5 * 10.0**-digits)
            ),
            _TIMES[-1],
        )
    power = 0
    while power < len(_PREFIXES) - 1 and abs(number) / 1000**power >= 1000 * (
        1 - 0.5 * 10.0**-digits
    ):
        power += 1
    base = "/s" if unit == "1/s" else unit
    return 1000.0**power, f"{_PREFIXES[power]}{base}"

"""Quantities with a prefix that people read at once: 37.6 Gbit/s, 1.25 GB/s, 812 k/s. Prefixes are powers of 1000."""

from __future__ import annotations

import math

from scaletest.render.numbers import NOTHING, measured, significant

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def quantity(value: float, unit: str, digits: int = 4) -> str:
    """The value with three or four digits and its unit; "" for a plain number."""
    if not math.isfinite(value):
        return NOTHING
    if unit == "" and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    size, name = scale(value, unit, digits)
    return f"{significant(value / size, digits)} {name}".strip() if value else f"0 {name}".strip()


def quantity_measured(value: float, half_width: float, unit: str) -> str:
    """value ± half-width in the value's unit; without an interval the value alone."""
    if not (math.isfinite(value) and math.isfinite(half_width)) or half_width == 0:
        return quantity(value, unit)
    length, name = scale(value, unit, 4)
    return f"{measured(value / length, half_width / length)} {name}".strip()


def scale(value: float, unit: str, digits: int = 4) -> tuple[float, str]:
    """The factor and the unit with its prefix. What rounds up to 1000 already has the next prefix."""
    if unit == "":
        return 1.0, ""
    if unit == "s":
        # never more than seconds: nobody reads kiloseconds; and to the nanosecond, for latencies
        return next(
            ((size, name) for size, name in _TIMES if abs(value) >= size * (1 - 0.5 * 10.0**-digits)), _TIMES[-1]
        )
    power = 0
    while power < len(_PREFIXES) - 1 and abs(value) / 1000**power >= 1000 * (1 - 0.5 * 10.0**-digits):
        power += 1
    base = "/s" if unit == "1/s" else unit
    return 1000.0**power, f"{_PREFIXES[power]}{base}"

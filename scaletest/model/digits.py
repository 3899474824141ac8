"""Numbers in sentences: a few significant digits, and no exponent, which nobody reads at a glance."""

from __future__ import annotations

# What is smaller is the noise of floating point.
SMALLEST = 1e-9


def short(value: float, digits: int = 3) -> str:
    """At most so many significant digits: 0.5, 12.3, 12300 and 0.00012, not 1.23e+04 nor 1.2e-04. Noise is 0."""
    if abs(value) < SMALLEST:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    places = max(0, digits - 1 - int(text.partition("e")[2]))
    return f"{float(text):.{places}f}"

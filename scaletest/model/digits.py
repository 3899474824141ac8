"""Numbers in sentences: a few significant digits and no exponent."""

from __future__ import annotations

# A smaller number is floating-point noise.
SMALLEST = 1e-9


def short(number: float, digits: int = 3) -> str:
    """At most `digits` significant digits: 0.5, 12.3, 12300, 0.00012; noise is 0."""
    if abs(number) < SMALLEST:
        return "0"
    text = f"{number:.{digits}g}"
    if "e" not in text:
        return text
    places = max(0, digits - 1 - int(text.partition("e")[2]))
    return f"{float(text):.{places}f}"

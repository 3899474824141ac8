"""Bar charts of text, for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL, EMPTY, IDEAL = "█", "░", "│"
WIDTH = 24


class Bar(NamedTuple):
    """One bar. name: before it. value: its length. text: behind it. ideal: the length that is
    marked where the bar is shorter; 0 for none.
    """

    name: str
    value: float
    text: str
    ideal: float = 0.0


def bar_lines(bars: Sequence[Bar], most: float, width: int = WIDTH) -> Iterator[str]:
    """A line for each bar. most: the value of a bar of `width` characters; longer ones are cut."""
    widest = max((len(bar.name) for bar in bars), default=0)
    for bar in bars:
        drawn = f"{_drawn(bar.value / most, width):<{width}}"
        mark = min(width, round(width * bar.ideal / most)) - 1
        if mark >= 0 and drawn[mark] == " ":
            drawn = f"{drawn[:mark]}{IDEAL}{drawn[mark + 1 :]}"
        yield f"{bar.name:>{widest}}  {drawn}  {bar.text}"


def _drawn(part: float, width: int) -> str:
    eighths = round(8 * width * min(1.0, max(0.0, part)))
    whole, rest = divmod(eighths, 8)
    return FULL * whole + EIGHTHS[rest].strip()


def meter(part: float, width: int) -> str:
    """A bar of `width` characters, of which `part`, from 0 to 1, is full."""
    return f"{_drawn(part, width):{EMPTY}<{width}}"

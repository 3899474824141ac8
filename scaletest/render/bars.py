"""Bar charts of text, for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"
WIDTH = 24


class Bar(NamedTuple):
    """One bar. name: before it. value: its length. text: behind it."""

    name: str
    value: float
    text: str


def bar_lines(bars: Sequence[Bar], most: float, width: int = WIDTH) -> Iterator[str]:
    """A line for each bar. most: the value of a bar of `width` characters; longer ones are cut."""
    widest = max((len(bar.name) for bar in bars), default=0)
    for bar in bars:
        yield f"{bar.name:>{widest}}  {_drawn(bar.value / most, width):<{width}}  {bar.text}"


def _drawn(part: float, width: int) -> str:
    eighths = round(8 * width * min(1.0, max(0.0, part)))
    whole, rest = divmod(eighths, 8)
    return FULL * whole + EIGHTHS[rest].strip()

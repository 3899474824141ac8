"""Bar charts of text, for terminals."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

FULL, EMPTY, IDEAL = "█", "░", "│"


class Bar(NamedTuple):
    """One bar."""

    name: str  # before it
    value: float  # its length
    text: str  # behind it
    ideal: float = 0.0  # the length that is marked where the bar is shorter; 0 for none


def bar_lines(bars: Sequence[Bar], most: float, width: int = 24) -> Iterator[str]:
    """Yield a line for each bar.

    most: the value of a bar of `width` characters; longer ones are cut.
    """
    widest = max((len(bar.name) for bar in bars), default=0)
    for bar in bars:
        line = f"{_fill(bar.value / most, width):<{width}}"
        mark = min(width, round(width * bar.ideal / most)) - 1
        if mark >= 0 and line[mark] == " ":
            line = f"{line[:mark]}{IDEAL}{line[mark + 1 :]}"
        yield f"{bar.name:>{widest}}  {line}  {bar.text}"


def _fill(part: float, width: int) -> str:
    eighths = round(8 * width * min(1.0, max(0.0, part)))
    full, part_of_one = divmod(eighths, 8)
    return FULL * full + " ▏▎▍▌▋▊▉"[part_of_one].strip()


def meter(part: float, width: int) -> str:
    """Return a bar of `width` characters, of which `part`, from 0 to 1, is full."""
    return f"{_fill(part, width):{EMPTY}<{width}}"

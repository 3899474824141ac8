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


def bar_lines(bars: Sequence[Bar], full_value: float, width: int = 24) -> Iterator[str]:
    """Yield a line for each bar.

    full_value: that of a bar of `width` characters; longer ones are cut.
    """
    widest = max((len(bar.name) for bar in bars), default=0)
    for bar in bars:
        line = f"{_draw_blocks(bar.value / full_value, width):<{width}}"
        mark = min(width, round(width * bar.ideal / full_value)) - 1
        if mark >= 0 and line[mark] == " ":
            line = f"{line[:mark]}{IDEAL}{line[mark + 1 :]}"
        yield f"{bar.name:>{widest}}  {line}  {bar.text}"


def _draw_blocks(share: float, width: int) -> str:
    """Fill this share of the width, to the eighth of a character."""
    full, eighths = divmod(round(8 * width * min(1.0, max(0.0, share))), 8)
    return FULL * full + " ▏▎▍▌▋▊▉"[eighths].strip()


def draw_meter(share: float, width: int) -> str:
    """Return a bar of `width` characters, of which `share`, from 0 to 1, is full."""
    return f"{_draw_blocks(share, width):{EMPTY}<{width}}"

"""Charts drawn on the server, for browsers without script and builds without uPlot. Pure.

Colours and fonts come from the style sheet, because the page's policy forbids inline styles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

WIDTH, HEIGHT = 640, 200
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 26

Values = Sequence[float | None]


class PlotLine(NamedTuple):
    """One line of a chart; `style` is a class of the style sheet."""

    name: str
    style: str
    values: Values


def chart(
    label: str,
    xs: Sequence[float],
    lines: Sequence[PlotLine],
    show: Callable[[float], str],
    band: Sequence[Values] = (),
) -> Markup:
    """Lines over elapsed seconds `xs`. show: text of a y mark. band: lower and upper values."""
    highest = _highest([*(line.values for line in lines), *band])
    step = nice_step(highest / 4) if highest else 1.0
    top = step * max(1, math.ceil(highest / step - 1e-9))
    first, last = (xs[0], max(xs[-1], xs[0] + 1)) if xs else (0.0, 1.0)

    def x(at: float) -> str:
        return f"{LEFT + (at - first) / (last - first) * (WIDTH - LEFT - RIGHT):.1f}"

    def y(level: float) -> str:
        return f"{HEIGHT - BOTTOM - level / top * (HEIGHT - TOP - BOTTOM):.1f}"

    parts = [_grid(top, step, y, show), _times(first, last, x)]
    if band and xs:
        parts.append(_band(xs, band, x, y))
    for line in lines:
        parts += [_run(line.style, run, x, y) for run in _runs(xs, line.values)]
    return Markup(
        '<svg class="plot" role="img" aria-label="{}" viewBox="0 0 {} {}">{}</svg>'
    ).format(escape(label), WIDTH, HEIGHT, Markup("").join(parts))


def _highest(lines: Sequence[Values]) -> float:
    return max((max(filter(None, values), default=0.0) for values in lines), default=0.0)


def _band(
    xs: Sequence[float],
    band: Sequence[Values],
    x: Callable[[float], str],
    y: Callable[[float], str],
) -> Markup:
    low, high = band
    edge = [f"{x(at)},{y(level or 0)}" for at, level in zip(xs, high, strict=True)]
    edge += [f"{x(at)},{y(level or 0)}" for at, level in reversed(list(zip(xs, low, strict=True)))]
    return Markup('<polygon class="band" points="{}"/>').format(" ".join(edge))


def _run(
    style: str, run: list[tuple[float, float]], x: Callable[[float], str], y: Callable[[float], str]
) -> Markup:
    """An unbroken stretch of a line; a dot when it has only one point."""
    if len(run) == 1:
        at, level = run[0]
        return Markup('<circle class="{}" cx="{}" cy="{}" r="2"/>').format(style, x(at), y(level))
    points = " ".join(f"{x(at)},{y(level)}" for at, level in run)
    return Markup('<polyline class="{}" points="{}"/>').format(style, points)


def nice_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(
        (factor * power for factor in (1, 2, 5) if factor * power >= least * (1 - 1e-9)), 10 * power
    )


def elapsed(seconds: float) -> str:
    """Time since the first point, short."""
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def _grid(
    top: float, step: float, y: Callable[[float], str], show: Callable[[float], str]
) -> Markup:
    parts = []
    for number in range(round(top / step) + 1):
        mark_at = number * step
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/><text class="y" x="{}"'
                ' y="{}">{}</text>'
            ).format(
                LEFT, WIDTH - RIGHT, y(mark_at), y(mark_at), LEFT - 6, y(mark_at), show(mark_at)
            )
        )
    return Markup("").join(parts)


def _times(first: float, last: float, x: Callable[[float], str]) -> Markup:
    parts = []
    for part in range(5):
        at = first + (last - first) * part / 4
        anchor = ("start", "middle", "middle", "middle", "end")[part]
        mark = Markup('<text class="x" text-anchor="{}" x="{}" y="{}">{}</text>')
        parts.append(mark.format(anchor, x(at), HEIGHT - 6, elapsed(at - first)))
    return Markup("").join(parts)


def _runs(xs: Sequence[float], values: Values) -> list[list[tuple[float, float]]]:
    """Unbroken stretches of known values."""
    runs: list[list[tuple[float, float]]] = [[]]
    for at, level in zip(xs, values, strict=True):
        if level is None:
            runs.append([])
        else:
            runs[-1].append((at, level))
    return [run for run in runs if run]

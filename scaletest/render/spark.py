"""Spark lines: the course of one number, as small as a word, without axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from scaletest.render.text import Markup, element

WIDTH, HEIGHT = 100.0, 20.0
# Space for half of the line's width at the top and the bottom.
MARGIN = 1.5
# More points than these cannot be told apart.
MOST_POINTS = 120


def spark(values: Sequence[float], title: str) -> Markup:
    """A line through these values, evenly spaced, from 0 to the largest one.

    title: what is shown, for readers who cannot see it and under the pointer. Where a value is not
    finite the line breaks; of very many values the largest of each stretch is drawn.
    """
    points = _thinned(values)
    finite = [value for value in points if math.isfinite(value)]
    low, high = min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)
    span = high - low or 1.0
    step = WIDTH / max(1, len(points) - 1)
    places = [
        (step * number, HEIGHT - MARGIN - (value - low) / span * (HEIGHT - 2 * MARGIN))
        for number, value in enumerate(points)
    ]
    return element(
        "svg",
        element("title", title),
        *map(_line, _stretches(places)),
        class_="spark",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=title,
    )


def _thinned(values: Sequence[float]) -> list[float]:
    """At most MOST_POINTS values, each the largest of its stretch."""
    size = math.ceil(len(values) / MOST_POINTS)
    if size <= 1:
        return list(values)
    return [_largest(values[start : start + size]) for start in range(0, len(values), size)]


def _largest(stretch: Sequence[float]) -> float:
    """The largest finite value; not a number where there is none."""
    return max((value for value in stretch if math.isfinite(value)), default=math.nan)


def _stretches(places: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The places in a row that have finite heights."""
    parts = groupby(places, key=lambda place: math.isfinite(place[1]))
    return [list(part) for is_finite, part in parts if is_finite]


def _line(places: Sequence[tuple[float, float]]) -> Markup:
    """A path through these places; a single one is a short stroke."""
    first, *others = (f"{x:.1f} {y:.1f}" for x, y in places)
    path = f"M{first}" + ("L" + " ".join(others) if others else "h1")
    return element("path", d=path, class_="c-spark")

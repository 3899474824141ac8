"""Spark lines: the course of one number, as small as a word, without axes."""

import math
from collections.abc import Sequence
from itertools import chain, groupby

from scaletest.render.text import Markup, html_element

WIDTH, HEIGHT = 100.0, 20.0
# Space for half of the line's width at the top and the bottom.
MARGIN = 1.5
# More points than these cannot be told apart.
MOST_POINTS = 120


def sparkline(values: Sequence[float], title: str, ideal: Sequence[float] = ()) -> Markup:
    """Draw a line through these values, evenly spaced, from 0 to the largest one.

    title: what is shown, for readers who cannot see it and under the pointer. ideal: what the
    values would be at best, as a broken line. Where a value is not finite the line breaks; of very
    many values the largest of each stretch is drawn.
    """
    lines = {"c-ideal": _thin(ideal), "c-spark": _thin(values)}
    finite = [0.0, *filter(math.isfinite, chain.from_iterable(lines.values()))]
    low = min(finite)
    span = max(finite) - low or 1.0
    paths = []
    for css, points in lines.items():
        step = WIDTH / max(1, len(points) - 1)
        places = [
            (step * number, HEIGHT - MARGIN - (value - low) / span * (HEIGHT - 2 * MARGIN))
            for number, value in enumerate(points)
        ]
        for is_finite, stretch in groupby(places, key=lambda place: math.isfinite(place[1])):
            if is_finite:
                first, *others = (f"{x:.1f} {y:.1f}" for x, y in stretch)
                # a single value is a short stroke
                path = f"M{first}" + ("L" + " ".join(others) if others else "h1")
                paths.append(html_element("path", d=path, class_=css))
    return html_element(
        "svg",
        html_element("title", title),
        *paths,
        class_="spark",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=title,
    )


def _thin(values: Sequence[float]) -> list[float]:
    size = max(1, math.ceil(len(values) / MOST_POINTS))
    return [
        max(filter(math.isfinite, values[start : start + size]), default=math.nan)
        for start in range(0, len(values), size)
    ]

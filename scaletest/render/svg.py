"""Charts as SVG: a plot with two axes, and marks drawn in the order of the calls.

An axis has its marks at 1, 2 and 5 times powers of ten, or at powers of two. Marks are clipped at
the frame. The ends of an interval stay visible beside its point, however short it is.

Colours and fonts come from the classes in `style`, so that dark pages and paper look right. Every
chart has a title and a description for people who cannot see it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from scaletest.render.text import Markup, element


def nice(low: float, high: float, most: int = 6) -> list[float]:
    """At most `most` evenly spaced round numbers in [low, high]."""
    if not high > low:
        return [low]
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    shortest = (high - low) / (most - 1 + 1e-9)
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= shortest)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def up_to(high: float, most: int = 6) -> list[float]:
    """Marks of an axis from 0, the last one at or above `high`."""
    if high <= 0:
        return [0.0, 1.0]
    marks = nice(0.0, high, most)
    if len(marks) == 1:
        # the first round number lies above
        return nice(0.0, 2 * high, most)[:2]
    return marks if marks[-1] >= high else [*marks, marks[-1] + marks[1]]


def ceiling(high: float, most: int = 6) -> float:
    """The end of an axis from 0 that shows `high` with a mark at or above it."""
    return up_to(high, most)[-1]


def powers(low: float, high: float, most: int = 8) -> list[float]:
    """Powers of two in [low, high], or every second, third, ... of too many. low > 0."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / most))
    return [2.0**exponent for exponent in range(first, last + 1, every)]


def decades(low: float, high: float, most: int = 8) -> list[float]:
    """Powers of ten with their 2- and 5-fold in [low, high]; only the powers, or every second,
    third, ... of too many, and round numbers of too few. low > 0.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1,)):
        pairs = itertools.product(range(first, last + 1), factors)
        every = [factor * 10.0**exponent for exponent, factor in pairs]
        marks = [mark for mark in every if low <= mark <= high]
        if len(marks) <= most:
            break
    if len(marks) < 2:
        return nice(low, high, most)
    return marks[:: math.ceil(len(marks) / most)]


def labels(marks: Sequence[float]) -> list[str]:
    """Labels of the marks, all with the same decimals, thousands as k, millions as M."""
    largest = max(map(abs, marks), default=0.0)
    size, unit = 1.0, ""
    if largest >= 1e6:
        size, unit = 1e6, "M"
    elif largest >= 1e4:
        size, unit = 1e3, "k"
    scaled = [mark / size for mark in marks]
    places = next((count for count in range(9) if _fit(scaled, count)), 9)
    return [_label(mark, places, unit) for mark in scaled]


def _label(mark: float, places: int, unit: str) -> str:
    return f"{mark:.{places}f}{unit}" if mark else "0"


def _fit(numbers: Sequence[float], places: int) -> bool:
    """Whether this many decimals are enough for all numbers."""
    return all(abs(round(number, places) - number) <= 1e-6 * abs(number) for number in numbers)


# How the marks of an axis are chosen, by its kind.
MARKS: Mapping[str, Callable[[float, float, int], list[float]]] = {
    "linear": nice,
    "log2": powers,
    "log10": decades,
}
Point = tuple[float, float]
CHARACTER = 6.6  # mean width of a character of 12 px, in px
LEGEND_LINE = 19.0
# A mark beyond this part of an axis has its label over the end of the plot.
NEAR_END = 0.97
# The sample of a text in the legend, with the space around both.
LEGEND_SAMPLE = 44.0
# Half of the width of an interval's ends, in px: they are wider than a point.
CAP = 8.0
# What the names of marks need below the frame, and what a label needs, in px.
BELOW, BELOW_FOR_LABEL = 26.0, 16.0


@dataclass(frozen=True)
class Axis:
    """An axis.

    kind: "linear", "log2" or "log10". marks: None for round numbers. names: of the marks.
    """

    label: str
    low: float
    high: float
    kind: str = "linear"
    marks: Sequence[float] | None = None
    names: Sequence[str] | None = None
    most: int = 6

    @cached_property
    def labelled(self) -> list[tuple[float, str]]:
        """The marks with their labels."""
        marks = self.marks or MARKS[self.kind](self.low, self.high, self.most)
        return list(zip(marks, self.names or labels(marks), strict=True))

    def part(self, number: float) -> float:
        """Position of a number, from 0 at the low end to 1 at the high end; at most 0.5 outside."""
        low, high, at = self.low, self.high, number
        if self.kind != "linear":
            low, high, at = math.log2(low), math.log2(high), math.log2(max(number, low / 1024))
        share = (at - low) / (high - low) if high > low else 0.5
        return min(1.5, max(-0.5, share))


class Mark(NamedTuple):
    """Something that is drawn, as data.

    shape: line, band, bar, error, dot or dots. points: in the units of the axes. text: shown when
    the pointer is on it. size: the radius of a dot, in px.
    """

    shape: str
    points: Sequence[Point]
    css: str
    text: str = ""
    size: float = 0.0


@dataclass
class Chart:
    """One chart. id: unique on its page. width, height: px at full size; it shrinks to fit.

    marks: what is drawn, in this order. explained: the legend, as (text, class, shape).
    """

    id: str
    title: str
    description: str
    x: Axis
    y: Axis
    width: float = 720.0
    height: float = 380.0
    marks: list[Mark] = field(default_factory=list)
    explained: list[tuple[str, str, str]] = field(default_factory=list)

    @cached_property
    def _left(self) -> float:
        return 34.0 + CHARACTER * max((len(name) for _, name in self.y.labelled), default=1)

    @cached_property
    def _right(self) -> float:
        """The end of the plot, with room for half of a long label of a mark at the end."""
        ends = [name for mark, name in self.x.labelled if self.x.part(mark) > NEAR_END]
        return self.width - max(14.0, 1.0 + CHARACTER / 2 * max(map(len, ends), default=0))

    @property
    def _bottom(self) -> float:
        return self.height - BELOW - BELOW_FOR_LABEL * bool(self.x.label)

    @property
    def _rows(self) -> list[list[tuple[str, str, str]]]:
        """The legend, broken into lines that fit."""
        rows: list[list[tuple[str, str, str]]] = []
        used = math.inf
        for explained in self.explained:
            wide = LEGEND_SAMPLE + CHARACTER * len(explained[0])
            if used + wide > self._right - self._left:
                rows.append([])
                used = 0.0
            rows[-1].append(explained)
            used += wide
        return rows

    @property
    def _top(self) -> float:
        return 12.0 + LEGEND_LINE * len(self._rows)

    @property
    def x_marks(self) -> list[tuple[float, str]]:
        """The marks of the axis across; fewer, with the last one, where their names would touch."""
        marks = self.x.labelled
        widest = CHARACTER * (2 + max((len(name) for _, name in marks), default=0))
        every = math.ceil(len(marks) * widest / (self._right - self._left))
        return marks[:: -max(1, every)][::-1]

    def legend(self, text: str, css: str, shape: str = "line") -> None:
        """Explain a class. shape: line, dot or area."""
        self.explained.append((text, css, shape))

    def line(self, points: Sequence[Point], css: str, tip: str = "") -> None:
        """A line through points; it breaks where a value is not finite."""
        if points:
            self.marks.append(Mark("line", points, css, tip))

    def stairs(self, edges: Sequence[float], values: Sequence[float], css: str) -> None:
        """A line that stays at each value from one edge to the next."""
        starts = zip(edges, values, strict=False)
        ends = zip(edges[1:], values, strict=True)
        self.line(list(itertools.chain.from_iterable(zip(starts, ends, strict=True))), css)

    def band(self, points: Sequence[tuple[float, float, float]], css: str) -> None:
        """An area between (x, low, high)."""
        around = [(x, high) for x, _, high in points] + [(x, low) for x, low, _ in reversed(points)]
        # it has no gaps: points that are unknown are left out
        self.marks.append(Mark("band", [at for at in around if math.isfinite(at[1])], css))

    def shade(self, low: float, high: float, css: str) -> None:
        """An area of the whole height from one x to another."""
        if high > low:
            self.bar(low, high, self.y.high, css, bottom=self.y.low)

    def bar(
        self, low: float, high: float, top: float, css: str, tip: str = "", bottom: float = 0.0
    ) -> None:
        """A bar from low to high and from bottom to top. tip: shown when the pointer is on it."""
        self.marks.append(Mark("bar", [(low, bottom), (high, top)], css, tip))

    def error(self, x: float, low: float, high: float, css: str) -> None:
        """An error bar: an interval of y, with caps."""
        self.marks.append(Mark("error", [(x, low), (x, high)], css))

    def dot(self, x: float, y: float, css: str, tip: str = "", radius: float = 4.5) -> None:
        """A point of the data."""
        self.marks.append(Mark("dot", [(x, y)], css, tip, radius))

    def dots(self, points: Sequence[Point], css: str) -> None:
        """Many points of the data, in one mark."""
        if points:
            self.marks.append(Mark("dots", points, css))

    def across(self, y: float, css: str) -> None:
        """A horizontal line over the whole width."""
        self.stroke(self.x.low, self.x.high, y, css)

    def upright(self, x: float, css: str, tip: str = "") -> None:
        """A vertical line over the whole height."""
        self.line([(x, self.y.high), (x, self.y.low)], css, tip)

    def stroke(self, low: float, high: float, y: float, css: str) -> None:
        """A horizontal line from one x to another."""
        self.line([(low, y), (high, y)], css)

    def _drawn(self, mark: Mark) -> Markup:
        """A mark as SVG."""
        places = [(self._px(x), self._py(y)) for x, y in mark.points]
        tip = [element("title", mark.text)] if mark.text else []
        match mark.shape, places:
            case "bar", [(x, y), (right, up)]:
                wide, tall = max(0.5, right - x), max(0.5, y - up)
                return element("rect", *tip, x=x, y=up, width=wide, height=tall, class_=mark.css)
            case "dot", [(x, y)]:
                return element("circle", *tip, cx=x, cy=y, r=mark.size, class_=mark.css)
            case "error", [(x, y), (_, up)]:
                left, cap = f"M{x - CAP:.1f}", f"h{2 * CAP:g}"
                path = f"{left} {up:.1f}{cap}M{x:.1f} {up:.1f}V{y:.1f}{left} {y:.1f}{cap}"
            case "dots", _:
                # a line of no length, whose round ends are a dot
                path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
            case "band", _:
                path = f"{_line(mark.points, places)}Z"
            case _:
                path = _line(mark.points, places)
        return element("path", *tip, d=path, class_=mark.css)

    def svg(self) -> Markup:
        """The whole chart."""
        clip = element(
            "clipPath",
            _rect(
                self._left - 1,
                self._top - 6,
                self._right - self._left + 8,
                self._bottom - self._top + 11,
            ),
            id=f"{self.id}-clip",
        )
        return element(
            "svg",
            element("title", self.title, id=f"{self.id}-title"),
            element("desc", self.description, id=f"{self.id}-desc"),
            clip,
            self._frame(),
            element("g", *map(self._drawn, self.marks), clip_path=f"url(#{self.id}-clip)"),
            *self._explained(),
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            class_="chart",
            role="img",
            aria_labelledby=f"{self.id}-title {self.id}-desc",
        )

    def _frame(self) -> Markup:
        left, right, bottom = f"{self._left:.1f}", f"{self._right:.1f}", f"{self._bottom:.1f}"
        parts = []
        for mark, name in self.y.labelled:
            at = self._py(mark)
            parts += [
                element("path", d=f"M{left} {at:.1f}H{right}", class_="c-grid"),
                _text(name, "c-tick", "end", x=self._left - 7, y=at + 4),
            ]
        for mark, name in self.x_marks:
            at = self._px(mark)
            parts += [
                element("path", d=f"M{at:.1f} {bottom}v5", class_="c-axis"),
                _text(name, "c-tick", x=at, y=self._bottom + 19),
            ]
        turn = f"translate(13 {(self._top + self._bottom) / 2:.1f}) rotate(-90)"
        centre = (self._left + self._right) / 2
        return element(
            "g",
            *parts,
            element("path", d=f"M{left} {bottom}H{right}", class_="c-axis"),
            _text(self.y.label, "c-label", transform=turn),
            _text(self.x.label, "c-label", x=centre, y=self.height - 5),
        )

    def _explained(self) -> list[Markup]:
        parts = []
        for number, line in enumerate(self._rows):
            at, y = self._left, 10.0 + LEGEND_LINE * number
            for text, css, shape in line:
                parts.append(_sample(at, y, css, shape))
                parts.append(element("text", text, x=at + 24, y=y + 4, class_="c-tick"))
                at += LEGEND_SAMPLE + CHARACTER * len(text)
        return parts

    def _px(self, x: float) -> float:
        return self._left + self.x.part(x) * (self._right - self._left)

    def _py(self, y: float) -> float:
        return self._bottom - self.y.part(y) * (self._bottom - self._top)


def _rect(x: float, y: float, width: float, height: float, css: str | None = None) -> Markup:
    return element("rect", x=x, y=y, width=width, height=height, class_=css)


def _text(text: str, css: str, anchor: str = "middle", **place: float | str) -> Markup:
    return element("text", text, **place, text_anchor=anchor, class_=css)


def _line(points: Sequence[Point], places: Sequence[Point]) -> str:
    """A path through these places, which lie at these points; it breaks where a value is not
    finite.
    """
    path = before_x = before_y = ""
    for (_, value), place in zip(points, places, strict=True):
        x, y = (f"{each:.1f}" for each in place)
        if not math.isfinite(value):
            x = y = ""
        elif not before_x:
            path += f"M{x} {y}"
        elif y == before_y:
            path += f"H{x}"
        else:
            path += f"V{y}" if x == before_x else f"L{x} {y}"
        before_x, before_y = x, y
    return path


def _sample(x: float, y: float, css: str, shape: str) -> Markup:
    if shape == "dot":
        return element("circle", cx=x + 10, cy=y, r=4.5, class_=css)
    if shape == "area":
        return _rect(x + 1, y - 5, 18.0, 10.0, css)
    return element("path", d=f"M{x:.1f} {y:.1f}h20", class_=css)


# Width and height of the bar of a cell, in px.
CELL_BAR = (120.0, 14.0)


def interval_bar(part: float, interval: tuple[float, float]) -> Markup:
    """A bar for a cell of a table, with the interval of its end; all as parts of its whole width.

    People who cannot see it read the text beside it.
    """
    width, height = CELL_BAR
    at, left, right = (min(width - 1.0, max(1.0, width * end)) for end in (part, *interval))
    middle = height / 2
    return element(
        "svg",
        _rect(0.0, 1.0, width, height - 2.0, "c-shade"),
        _rect(0.0, 1.0, at, height - 2.0, "c-bar"),
        element("path", d=f"M{left:.1f} {middle}H{right:.1f}", class_="c-interval"),
        element("path", d=f"M{left:.1f} 3v8M{right:.1f} 3v8", class_="c-interval"),
        viewBox=f"0 0 {width:g} {height:g}",
        class_="cell-bar",
        aria_hidden="true",
    )

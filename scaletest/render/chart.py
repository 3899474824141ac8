"""A chart as data: two axes, marks in the order in which they are drawn, and a legend."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from scaletest.render.axis import Axis

Point = tuple[float, float]
CHARACTER = 6.6  # mean width of a character of 12 px, in px


class Mark(NamedTuple):
    """Something that is drawn."""

    shape: str  # line, bar, error, dot or dots
    points: Sequence[Point]  # in the units of the axes
    css: str
    text: str = ""  # shown when the pointer is on it
    size: float = 0.0  # the radius of a dot, in px


class LegendEntry(NamedTuple):
    """What a class of marks means."""

    text: str
    css: str  # the class
    shape: str  # of its sample: line, dot or area


@dataclass
class Chart:
    """One chart, in the px of its full size; it shrinks to fit."""

    id: str  # unique on its page
    title: str
    description: str
    x: Axis
    y: Axis
    width: float = 720.0
    height: float = 380.0
    marks: list[Mark] = field(default_factory=list)  # in the order in which they are drawn
    explained: list[LegendEntry] = field(default_factory=list)

    @cached_property
    def left(self) -> float:
        """Where the plot begins, behind the labels of its marks."""
        return 34.0 + CHARACTER * max((len(name) for _, name in self.y.labelled_marks), default=1)

    @cached_property
    def right(self) -> float:
        """Where the plot ends, with room for half of a long label of a mark at the end."""
        # the label of a mark near the end of the axis reaches over the end of the plot
        ends = [name for mark, name in self.x.labelled_marks if self.x.position(mark) > 0.97]
        return self.width - max(14.0, 1.0 + CHARACTER / 2 * max(map(len, ends), default=0))

    @property
    def x_marks(self) -> list[tuple[float, str]]:
        """The marks of the axis across; fewer, with the last one, where their names would touch."""
        marks = self.x.labelled_marks
        widest = CHARACTER * (2 + max((len(name) for _, name in marks), default=0))
        every = math.ceil(len(marks) * widest / (self.right - self.left))
        return marks[:: -max(1, every)][::-1]

    def legend(self, text: str, css: str, shape: str = "line") -> None:
        """Explain a class. shape: line, dot or area."""
        self.explained.append(LegendEntry(text, css, shape))

    def line(self, points: Sequence[Point], css: str, tip: str = "") -> None:
        """Draw a line through points; it breaks where a value is not finite."""
        if points:
            self.marks.append(Mark("line", points, css, tip))

    def shade(self, low: float, high: float, css: str) -> None:
        """Fill an area of the whole height from one x to another."""
        if high > low:
            self.bar(low, high, self.y.high, css, bottom=self.y.low)

    def bar(
        self, low: float, high: float, top: float, css: str, tip: str = "", *, bottom: float = 0.0
    ) -> None:
        """Draw a bar from low to high and from bottom to top.

        tip: a text that is shown when the pointer is on it.
        """
        self.marks.append(Mark("bar", [(low, bottom), (high, top)], css, tip))

    def error(self, x: float, low: float, high: float, css: str) -> None:
        """Draw an interval of y, with caps."""
        self.marks.append(Mark("error", [(x, low), (x, high)], css))

    def dot(self, x: float, y: float, css: str, tip: str = "", radius: float = 4.5) -> None:
        """Draw a point of the data."""
        self.marks.append(Mark("dot", [(x, y)], css, tip, radius))

    def dots(self, points: Sequence[Point], css: str) -> None:
        """Draw many points of the data, in one mark."""
        if points:
            self.marks.append(Mark("dots", points, css))

    def vertical_line(self, x: float, css: str, tip: str = "") -> None:
        """Draw a vertical line over the whole height."""
        self.line([(x, self.y.high), (x, self.y.low)], css, tip)

    def stroke(self, low: float, high: float, y: float, css: str) -> None:
        """Draw a horizontal line from one x to another."""
        self.line([(low, y), (high, y)], css)

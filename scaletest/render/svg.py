"""Charts as SVG: a plot with two axes, and marks drawn in the order of the calls.

Colours and fonts come from the classes in `style`, so that dark pages and paper look right. Every
chart has a title and a description for people who cannot see it. Marks are clipped at the frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from scaletest.render import ticks
from scaletest.render.text import Markup, element

Point = tuple[float, float]
CHARACTER = 6.6  # mean width of a character of 12 px, in px
LEGEND_LINE = 19.0


@dataclass(frozen=True)
class Axis:
    """An axis. kind: "linear" or "log2"; marks: None for round numbers; names: of the marks."""

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
        if self.marks is not None:
            marks = list(self.marks)
        else:
            choose = ticks.powers if self.kind == "log2" else ticks.nice
            marks = choose(self.low, self.high, self.most)
        names = self.names if self.names is not None else ticks.labels(marks)
        return list(zip(marks, names, strict=True))

    def part(self, number: float) -> float:
        """Position of a number, from 0 at the low end to 1 at the high end; at most 0.5 outside."""
        low, high, at = self.low, self.high, number
        if self.kind == "log2":
            low, high, at = math.log2(low), math.log2(high), math.log2(max(number, low / 1024))
        share = (at - low) / (high - low) if high > low else 0.5
        return min(1.5, max(-0.5, share))


@dataclass
class Chart:
    """One chart. id: unique on its page. width, height: px at full size; it shrinks to fit."""

    id: str
    title: str
    description: str
    x: Axis
    y: Axis
    width: float = 720.0
    height: float = 380.0
    _marks: list[Markup] = field(default_factory=list)
    _legend: list[tuple[str, str, str]] = field(default_factory=list)

    @cached_property
    def _left(self) -> float:
        return 34.0 + CHARACTER * max((len(name) for _, name in self.y.labelled), default=1)

    @property
    def _right(self) -> float:
        return self.width - 14.0

    @property
    def _bottom(self) -> float:
        return self.height - 42.0

    @property
    def _rows(self) -> list[list[tuple[str, str, str]]]:
        """The legend, broken into lines that fit."""
        rows: list[list[tuple[str, str, str]]] = []
        used = math.inf
        for explained in self._legend:
            wide = 34.0 + CHARACTER * len(explained[0])
            if used + wide > self._right - self._left:
                rows.append([])
                used = 0.0
            rows[-1].append(explained)
            used += wide
        return rows

    @property
    def _top(self) -> float:
        return 12.0 + LEGEND_LINE * len(self._rows)

    def legend(self, text: str, css: str, shape: str = "line") -> None:
        """Explain a class. shape: line, dot or area. Call it first: it takes space."""
        self._legend.append((text, css, shape))

    def line(self, points: Sequence[Point], css: str) -> None:
        """A line through points; it breaks where a value is not finite."""
        parts, pen = [], "M"
        for x, y in points:
            if math.isfinite(y):
                parts.append(f"{pen}{self._px(x):.1f} {self._py(y):.1f}")
            pen = "L" if math.isfinite(y) else "M"
        self._add("path", d="".join(parts), class_=css)

    def band(self, points: Sequence[tuple[float, float, float]], css: str) -> None:
        """An area between (x, low, high)."""
        around = [(x, high) for x, _, high in points] + [(x, low) for x, low, _ in reversed(points)]
        path = "L".join(
            f"{self._px(x):.1f} {self._py(y):.1f}" for x, y in around if math.isfinite(y)
        )
        self._add("path", d=f"M{path}Z", class_=css)

    def shade(self, low: float, high: float, css: str) -> None:
        """An area of the whole height from one x to another."""
        left, right = self._px(low), self._px(high)
        self._add(
            "rect",
            x=left,
            y=self._top,
            width=max(0.0, right - left),
            height=self._bottom - self._top,
            class_=css,
        )

    def bar(
        self, low: float, high: float, top: float, css: str, tip: str = "", bottom: float = 0.0
    ) -> None:
        """A bar from low to high and from bottom to top. tip: shown when the pointer is on it."""
        left, up = self._px(low), self._py(top)
        wide, tall = max(0.5, self._px(high) - left), max(0.5, self._py(bottom) - up)
        self._add("rect", *_tip(tip), x=left, y=up, width=wide, height=tall, class_=css)

    def error(self, x: float, low: float, high: float, css: str) -> None:
        """An error bar: an interval of y, with caps."""
        at, down, up = self._px(x), self._py(low), self._py(high)
        caps = f"M{at - 5:.1f} {up:.1f}h10M{at:.1f} {up:.1f}V{down:.1f}M{at - 5:.1f} {down:.1f}h10"
        self._add("path", d=caps, class_=css)

    def dot(self, x: float, y: float, css: str, tip: str = "", radius: float = 4.5) -> None:
        """A point of the data."""
        self._add("circle", *_tip(tip), cx=self._px(x), cy=self._py(y), r=radius, class_=css)

    def across(self, y: float, css: str) -> None:
        """A horizontal line over the whole width."""
        self._add("path", d=f"M{self._left:.1f} {self._py(y):.1f}H{self._right:.1f}", class_=css)

    def upright(self, x: float, css: str, tip: str = "") -> None:
        """A vertical line over the whole height."""
        self._add(
            "path",
            *_tip(tip),
            d=f"M{self._px(x):.1f} {self._top:.1f}V{self._bottom:.1f}",
            class_=css,
        )

    def stroke(self, low: float, high: float, y: float, css: str) -> None:
        """A horizontal line from one x to another."""
        self._add(
            "path", d=f"M{self._px(low):.1f} {self._py(y):.1f}H{self._px(high):.1f}", class_=css
        )

    def note(
        self,
        x: float,
        y: float,
        text: str,
        anchor: str = "middle",
        up: float = 8.0,
        css: str = "c-note",
    ) -> None:
        """Text beside a point, `up` px above it."""
        self._add("text", text, x=self._px(x), y=self._py(y) - up, text_anchor=anchor, class_=css)

    def svg(self) -> Markup:
        """The whole chart."""
        clip = element(
            "clipPath",
            _rect(
                self._left - 1,
                self._top - 6,
                self._right - self._left + 8,
                self._bottom - self._top + 7,
            ),
            id=f"{self.id}-clip",
        )
        return element(
            "svg",
            element("title", self.title, id=f"{self.id}-title"),
            element("desc", self.description, id=f"{self.id}-desc"),
            clip,
            self._frame(),
            element("g", *self._marks, clip_path=f"url(#{self.id}-clip)"),
            *self._explained(),
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            class_="chart",
            role="img",
            aria_labelledby=f"{self.id}-title {self.id}-desc",
        )

    def _frame(self) -> Markup:
        parts = []
        for mark, name in self.y.labelled:
            at = self._py(mark)
            parts.append(
                element("path", d=f"M{self._left:.1f} {at:.1f}H{self._right:.1f}", class_="c-grid")
            )
            parts.append(
                element(
                    "text", name, x=self._left - 7, y=at + 4, text_anchor="end", class_="c-tick"
                )
            )
        for mark, name in self.x.labelled:
            at = self._px(mark)
            parts.append(element("path", d=f"M{at:.1f} {self._bottom:.1f}v5", class_="c-axis"))
            parts.append(
                element(
                    "text", name, x=at, y=self._bottom + 19, text_anchor="middle", class_="c-tick"
                )
            )
        parts.append(
            element(
                "path", d=f"M{self._left:.1f} {self._bottom:.1f}H{self._right:.1f}", class_="c-axis"
            )
        )
        middle = (self._top + self._bottom) / 2
        turn = f"translate(13 {middle:.1f}) rotate(-90)"
        parts.append(
            element("text", self.y.label, transform=turn, text_anchor="middle", class_="c-label")
        )
        centre = (self._left + self._right) / 2
        parts.append(
            element(
                "text",
                self.x.label,
                x=centre,
                y=self.height - 5,
                text_anchor="middle",
                class_="c-label",
            )
        )
        return element("g", *parts)

    def _explained(self) -> list[Markup]:
        parts = []
        for number, line in enumerate(self._rows):
            at, y = self._left, 10.0 + LEGEND_LINE * number
            for text, css, shape in line:
                parts.append(_sample(at, y, css, shape))
                parts.append(element("text", text, x=at + 24, y=y + 4, class_="c-tick"))
                at += 34.0 + CHARACTER * len(text)
        return parts

    def _add(self, name: str, /, *children: object, **attributes: object) -> None:
        self._marks.append(element(name, *children, **attributes))

    def _px(self, x: float) -> float:
        return self._left + self.x.part(x) * (self._right - self._left)

    def _py(self, y: float) -> float:
        return self._bottom - self.y.part(y) * (self._bottom - self._top)


def _rect(x: float, y: float, width: float, height: float, css: str | None = None) -> Markup:
    return element("rect", x=x, y=y, width=width, height=height, class_=css)


def _tip(text: str) -> list[Markup]:
    return [element("title", text)] if text else []


def _sample(x: float, y: float, css: str, shape: str) -> Markup:
    if shape == "dot":
        return element("circle", cx=x + 10, cy=y, r=4.5, class_=css)
    if shape == "area":
        return _rect(x + 1, y - 5, 18.0, 10.0, css)
    return element("path", d=f"M{x:.1f} {y:.1f}h20", class_=css)

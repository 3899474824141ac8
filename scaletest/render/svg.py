"""Charts as SVG.

Marks are clipped at the frame. The ends of an interval stay visible beside its point, however short
it is. Colours and fonts come from the classes in `style`, so that dark pages and paper look right.
Every chart has a title and a description for people who cannot see it.
"""

import math
from collections.abc import Iterator, Sequence

from scaletest.render.chart import CHARACTER, Chart, LegendEntry, Mark, Point
from scaletest.render.text import Markup, html_element

LEGEND_LINE = 19.0
# The sample of a text in the legend, with the space around both.
LEGEND_SAMPLE = 44.0
# Half of the width of an interval's ends, in px: they are wider than a point.
CAP = 8.0
# What the names of marks need below the frame, and what a label needs, in px.
BELOW, BELOW_FOR_LABEL = 26.0, 16.0


def draw_chart(chart: Chart) -> Markup:
    """Draw a chart with its frame, its marks and its legend."""
    plot = _Plot(chart)
    width, height = plot.right - plot.left, plot.bottom - plot.top
    return html_element(
        "svg",
        html_element("title", chart.title, id=f"{chart.id}-title"),
        html_element("desc", chart.description, id=f"{chart.id}-desc"),
        html_element(
            "clipPath",
            html_element(
                "rect", x=plot.left - 1, y=plot.top - 6, width=width + 8, height=height + 11
            ),
            id=f"{chart.id}-clip",
        ),
        plot.draw_frame(),
        html_element("g", *map(plot.draw_mark, chart.marks), clip_path=f"url(#{chart.id}-clip)"),
        *plot.draw_legend(),
        viewBox=f"0 0 {chart.width:g} {chart.height:g}",
        class_="chart",
        role="img",
        aria_labelledby=f"{chart.id}-title {chart.id}-desc",
    )


class _Plot:
    """The plot of a chart: turns its numbers into px, and draws its parts."""

    def __init__(self, chart: Chart) -> None:
        self.chart, self.left, self.right = chart, chart.left, chart.right
        self.bottom = chart.height - BELOW - BELOW_FOR_LABEL * bool(chart.x.label)
        # the legend, broken into lines that fit
        self.legend_lines: list[list[LegendEntry]] = []
        used_width = math.inf
        for entry in chart.explained:
            entry_width = LEGEND_SAMPLE + CHARACTER * len(entry.text)
            if used_width + entry_width > self.right - self.left:
                self.legend_lines.append([])
                used_width = 0.0
            self.legend_lines[-1].append(entry)
            used_width += entry_width
        self.top = 12.0 + LEGEND_LINE * len(self.legend_lines)

    def x(self, number: float) -> float:
        """Return the px of a number on the axis across."""
        return self.left + self.chart.x.position(number) * (self.right - self.left)

    def y(self, number: float) -> float:
        """Return the px of a number on the upright axis; 0 is the top of the chart."""
        return self.bottom - self.chart.y.position(number) * (self.bottom - self.top)

    def draw_mark(self, mark: Mark) -> Markup:
        """Draw a mark."""
        places = [(self.x(x), self.y(y)) for x, y in mark.points]
        tip = [html_element("title", mark.text)] if mark.text else []
        match mark.shape, places:
            case "bar", [(x, y), (right, up)]:
                wide, tall = max(0.5, right - x), max(0.5, y - up)
                return html_element(
                    "rect", *tip, x=x, y=up, width=wide, height=tall, class_=mark.css
                )
            case "dot", [(x, y)]:
                return html_element("circle", *tip, cx=x, cy=y, r=mark.size, class_=mark.css)
            case "error", [(x, y), (_, up)]:
                left, cap = f"M{x - CAP:.1f}", f"h{2 * CAP:g}"
                path = f"{left} {up:.1f}{cap}M{x:.1f} {up:.1f}V{y:.1f}{left} {y:.1f}{cap}"
            case "dots", _:
                # a line of no length, whose round ends are a dot
                path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
            case _:
                path = _line_path(mark.points, places)
        return html_element("path", *tip, d=path, class_=mark.css)

    def draw_frame(self) -> Markup:
        """Draw the axes with their marks and labels."""
        chart, left, bottom = self.chart, f"{self.left:.1f}", f"{self.bottom:.1f}"
        right = f"{self.right:.1f}"
        parts = []
        # a line across the whole plot at each mark of the upright axis
        for mark, name in chart.y.labelled_marks:
            y = self.y(mark)
            parts += [
                html_element("path", d=f"M{left} {y:.1f}H{right}", class_="c-grid"),
                _draw_label(name, "c-tick", "end", x=self.left - 7, y=y + 4),
            ]
        # a short stroke at each mark of the axis across
        for mark, name in chart.x_marks:
            x = self.x(mark)
            parts += [
                html_element("path", d=f"M{x:.1f} {bottom}v5", class_="c-axis"),
                _draw_label(name, "c-tick", x=x, y=self.bottom + 19),
            ]
        turn = f"translate(13 {(self.top + self.bottom) / 2:.1f}) rotate(-90)"
        return html_element(
            "g",
            *parts,
            html_element("path", d=f"M{left} {bottom}H{right}", class_="c-axis"),
            _draw_label(chart.y.label, "c-label", transform=turn),
            _draw_label(
                chart.x.label, "c-label", x=(self.left + self.right) / 2, y=chart.height - 5
            ),
        )

    def draw_legend(self) -> Iterator[Markup]:
        """Draw a sample of each class with its text."""
        for number, line in enumerate(self.legend_lines):
            x, y = self.left, 10.0 + LEGEND_LINE * number
            for text, css, shape in line:
                if shape == "dot":
                    yield html_element("circle", cx=x + 10, cy=y, r=4.5, class_=css)
                elif shape == "area":
                    yield html_element(
                        "rect", x=x + 1, y=y - 5, width=18.0, height=10.0, class_=css
                    )
                else:
                    yield html_element("path", d=f"M{x:.1f} {y:.1f}h20", class_=css)
                yield html_element("text", text, x=x + 24, y=y + 4, class_="c-tick")
                x += LEGEND_SAMPLE + CHARACTER * len(text)


def _draw_label(text: str, css: str, anchor: str = "middle", **place: float | str) -> Markup:
    """Draw a text. anchor: which part of it stands at its place: start, middle or end."""
    return html_element("text", text, **place, text_anchor=anchor, class_=css)


def _line_path(points: Sequence[Point], places: Sequence[Point]) -> str:
    """Return a path through places of points; it breaks where a value is not finite."""
    path, step = "", "M"
    for (_, value), (x, y) in zip(points, places, strict=True):
        if math.isfinite(value):
            path += f"{step}{x:.1f} {y:.1f}"
            step = "L"
        else:
            step = "M"
    return path

"""The main charts as a picture. matplotlib, of the extra `plot`, is imported only here."""

import io
from collections.abc import Sequence
from operator import attrgetter
from textwrap import wrap
from typing import Any

from scaletest.model.errors import UsageError
from scaletest.render.axis import Axis
from scaletest.render.blocks import Charts, Figure
from scaletest.render.chart import Chart, Mark
from scaletest.render.contents import Report
from scaletest.render.style import chart_properties
from scaletest.render.svg import CAP
from scaletest.render.text import clean_text

# A pixel of a chart in points, of which an inch has 72.
POINT = 0.75
PIXELS_PER_INCH = 96.0
# Characters of a line of the title.
LONGEST_LINE = 100
DOTS_PER_INCH = 160
# Of the dots in a legend, in px.
DOT_RADIUS = 4.5
# Between a title and its chart, for the legend, in points.
LEGEND_SPACE = 20.0


def render(report: Report) -> bytes:
    """Draw the whole file; UsageError without matplotlib, or where there is nothing to draw."""
    charts: list[Chart] = list(report.picture()) if report.picture else []
    if report.picture is None:
        for section in report.sections():
            for block in section.blocks:
                if isinstance(block, Figure):
                    charts.append(block.wide)
                elif isinstance(block, Charts):
                    charts += block.charts
            if charts:  # those of the first section that has any
                break
    head = report.head
    lines = [f"{clean_text(head.title, limit=70)}: {head.word}".replace("\n", " ")]
    for sentence in (head.sentence, *head.gains):
        lines += wrap(clean_text(sentence), LONGEST_LINE)
    return draw_picture(charts, "\n".join(lines))


def draw_picture(charts: Sequence[Chart], title: str) -> bytes:
    """Draw charts, two in a row, below a title; return the bytes of the PNG."""
    file = io.BytesIO()
    draw_figure(charts, title).savefig(file, format="png")
    return file.getvalue()


def draw_figure(charts: Sequence[Chart], title: str) -> Any:
    """Make a matplotlib figure of charts, two in a row; UsageError as for `render`."""
    if not charts:
        raise UsageError("the run has nothing to draw", hint="the other formats have its tables")
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise UsageError(
            "a PNG needs matplotlib, which is not installed",
            hint="install it: pip install 'scaletest[plot]'",
        ) from error
    columns = min(2, len(charts))
    rows = [charts[start : start + columns] for start in range(0, len(charts), columns)]
    heights = [max(map(attrgetter("height"), row)) for row in rows]
    width = columns * max(chart.width for chart in charts)
    figure = Canvas(
        figsize=(
            width / PIXELS_PER_INCH,
            0.3 + 0.2 * len(title.splitlines()) + sum(heights) / PIXELS_PER_INCH,
        ),
        dpi=DOTS_PER_INCH,
        layout="constrained",
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, parse_math=False)
    places = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights).flatten()
    for axes, chart in zip(places, charts, strict=False):
        _draw_axis(axes.xaxis, axes.set_xscale, axes.set_xlim, chart.x, chart.x_marks)
        _draw_axis(axes.yaxis, axes.set_yscale, axes.set_ylim, chart.y, chart.y.labelled_marks)
        axes.minorticks_off()
        axes.set_axisbelow(True)
        axes.grid(axis="y", color=chart_properties("c-grid")["stroke"])
        axes.spines[["top", "right"]].set_visible(False)
        _draw_marks(axes, chart.marks)
        _draw_legend(axes, chart)
        if len(charts) > 1:
            space = LEGEND_SPACE if chart.explained else None
            axes.set_title(chart.title, loc="left", fontsize=9, pad=space, parse_math=False)
    for axes in places[len(charts) :]:
        axes.set_axis_off()
    return figure


def _draw_legend(axes: Any, chart: Chart) -> None:
    """Draw what explains the classes of a chart, above it as in the SVG.

    matplotlib's search for a free place takes seconds.
    """
    for text, css, shape in chart.explained:
        if shape == "area":
            axes.fill_between([], [], label=text, **_area_style(css))
        elif shape == "dot":
            axes.plot([], [], label=text, **_dot_style(css, DOT_RADIUS))
        else:
            axes.plot([], [], label=text, **_line_style(css))
    if chart.explained:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=len(chart.explained),
            columnspacing=1,
            frameon=False,
            fontsize=8,
        )


def _draw_axis(
    side: Any, set_scale: Any, set_limits: Any, axis: Axis, marks: Sequence[tuple[float, str]]
) -> None:
    """Draw one axis with its marks and its label."""
    if axis.kind != "linear":
        set_scale("log", base={"log2": 2, "log10": 10}[axis.kind])
    side.set_ticks([mark for mark, _ in marks], [name for _, name in marks], parse_math=False)
    side.set_label_text(axis.label, parse_math=False)
    set_limits(axis.low, axis.high)


def _line_style(css: str) -> dict[str, Any]:
    """Return how a line of these classes looks."""
    style = chart_properties(css)
    width = float(style.get("stroke-width", "1")) * POINT
    pen: dict[str, Any] = {"color": style.get("stroke", style.get("fill")), "linewidth": width}
    if "stroke-dasharray" in style:
        # matplotlib scales dashes with the width of the line
        dashes = [float(part) * POINT / width for part in style["stroke-dasharray"].split()]
        pen["linestyle"] = (0, dashes)
    return pen


def _area_style(css: str) -> dict[str, Any]:
    """Return the fill and edge of an area with these classes."""
    style = chart_properties(css)
    return {
        "facecolor": style["fill"],
        "alpha": float(style["fill-opacity"]) if "fill-opacity" in style else None,
        "edgecolor": style.get("stroke", "none"),
    }


def _dot_style(css: str, radius: float) -> dict[str, Any]:
    area = _area_style(css)
    return {
        "marker": "o",
        "linestyle": "none",
        "markersize": 2 * radius * POINT,
        "markerfacecolor": area["facecolor"],
        "markeredgecolor": area["edgecolor"],
        "alpha": area["alpha"],
    }


def _draw_marks(axes: Any, marks: Sequence[Mark]) -> None:
    """Draw the marks of a chart as `render.svg` does, in the order of the list."""
    for mark in marks:
        columns = zip(*mark.points, strict=True)
        match mark.shape:
            case "line":
                axes.plot(*columns, **_line_style(mark.css))
            case "bar":
                (left, bottom), (right, top) = mark.points
                axes.bar(
                    left, top - bottom, right - left, bottom, align="edge", **_area_style(mark.css)
                )
            case "error":
                (x, low), (_, high) = mark.points
                axes.errorbar(
                    x,
                    low,
                    [[0.0], [high - low]],
                    capsize=CAP * POINT,
                    fmt="none",
                    ecolor=_line_style(mark.css)["color"],
                )
            case "dot":
                axes.plot(*mark.points[0], **_dot_style(mark.css, mark.size))
            case "dots":
                # the points of a line that has no width: its width is their size
                pen = _line_style(mark.css)
                size = pen.pop("linewidth")
                axes.plot(*columns, marker="o", markersize=size, linestyle="", **pen)

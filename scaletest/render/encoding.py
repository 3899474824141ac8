"""The head and sections of a report as JSON and back, so that a page elsewhere shows them.

The reader trusts nothing: what it returns can be drawn. Points that are not finite, at which lines
break, are null. What has no place in a page elsewhere is left out: folder, environment and plan,
which may name what is nobody's business there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from typing import Any, TypeVar

import msgspec

from scaletest.model import Verdict, wire
from scaletest.model.errors import InvalidValue
from scaletest.render.contents import (
    BLOCKS,
    Block,
    Cell,
    Charts,
    Facts,
    Figure,
    Report,
    Section,
    Share,
    Table,
    Text,
    Trend,
)
from scaletest.render.svg import Axis, Chart, Mark

MOST_BYTES = 512 * 1024
NAME = "a published report"
# What may stand in an attribute of the page, and what drawing knows.
CSS = re.compile(r"[a-z0-9_ -]{0,200}")
ID = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
# Shapes of marks with the number of their points.
MANY = -1
POINTS = {"line": MANY, "band": MANY, "bar": 2, "error": 2, "dot": 1, "dots": MANY, "note": 1}
SAMPLES = {"line", "dot", "area"}
ANCHORS = {"", "start", "middle", "end"}
SCALES = {"linear", "log2", "log10"}
# Coordinates reach to here, and pictures have so many pixels.
FARTHEST = 1e15
SMALLEST_SIZE, LARGEST_SIZE = 20.0, 4000.0
MOST_MARKS = 200
Place = tuple[float | None, float | None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HeadOutline:
    """The part of a head that is told elsewhere."""

    title: str
    verdict: Verdict
    name: str = ""
    conditions: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    facts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    word: str = ""
    alarming: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportOutline:
    """The part of a report that is told elsewhere."""

    head: HeadOutline
    sections: Sequence[Section]


def outline(report: Report) -> ReportOutline:
    """The head and the sections of a report."""
    head = {each.name: getattr(report.head, each.name) for each in fields(HeadOutline)}
    return ReportOutline(HeadOutline(**head), report.sections())


def encode(report: ReportOutline, most_bytes: int = MOST_BYTES) -> str:
    """The report as JSON; only its head where that would be longer."""
    sections = list(map(_section_row, report.sections))
    head = {"schema_version": wire.SCHEMA_VERSION, "head": _plain(asdict(report.head))}
    whole = wire.dump({**head, "sections": sections})
    if len(whole.encode()) > most_bytes:
        return wire.dump({**head, "sections": []})
    return whole


def decode(text: bytes) -> ReportOutline:
    """Read what `encode` wrote; InvalidValue for anything else, and for what cannot be drawn."""
    _require(len(text) <= MOST_BYTES, f"more than {MOST_BYTES} bytes")
    document = wire.load(text, NAME)
    head = _typed(document.get("head"), HeadOutline)
    _require(math.isfinite(head.elapsed_s), "a duration that is none")
    rows = _typed(document.get("sections"), list[dict[str, Any]])
    return ReportOutline(head, list(map(_section, rows)))


def _section_row(section: Section) -> dict[str, Any]:
    blocks = list(map(_tagged, section.blocks))
    return {"title": section.title, "leads": section.leads, "blocks": blocks}


def _tagged(block: Block) -> dict[str, Any]:
    return {"block": BLOCKS[type(block)], **_plain(asdict(block))}


def _plain(value: Any) -> Any:
    """Plain values for JSON; numbers that are not finite are null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return list(map(_plain, value))


def _section(row: Mapping[str, Any]) -> Section:
    blocks = _typed(row.get("blocks"), list[dict[str, Any]])
    title, leads = _typed(row.get("title"), str), _typed(row.get("leads", False), bool)
    return Section(title, list(map(_block, blocks)), leads=leads)


def _block(row: Mapping[str, Any]) -> Block:
    match row.get("block"):
        case "table":
            return _table(row)
        case "figure":
            width, height = _typed(row.get("narrow_size"), tuple[float, float])
            _check_size(width, height)
            return Figure(_chart(row.get("wide")), _typed(row.get("caption"), str), (width, height))
        case "charts":
            charts = _typed({**row, "charts": []}, Charts)
            _check_css(charts.columns)
            _check_size(*(charts.narrow_size or ()))
            drawn = _typed(row.get("charts"), list[dict[str, Any]])
            return replace(charts, charts=list(map(_chart, drawn)))
        case "text":
            return _typed(row, Text)
        case "facts":
            return _typed(row, Facts)
    raise InvalidValue(f"{NAME} holds a block of an unknown kind")


def _table(row: Mapping[str, Any]) -> Table:
    """A table whose rows have a cell for each title."""
    table = _typed(row, Table)
    _check_css(table.layout)
    is_even = all(len(cells) == len(table.titles) for cells in table.rows)
    _require(is_even, "a table whose rows differ in length")
    for cell in chain.from_iterable(table.rows):
        _check_cell(cell)
    return table


def _check_cell(cell: Cell) -> None:
    match cell:
        case Trend(values=values):
            _require(all(map(math.isfinite, values)), "a spark line of no numbers")
        case Share(part=part, interval=interval):
            is_finite = all(map(math.isfinite, (part, *(interval or ()))))
            _require(is_finite and 0 <= part <= 1, "a bar that is no part of 1")


def _chart(row: object) -> Chart:
    """A chart that can be drawn."""
    content = _typed(row, dict[str, Any])
    marks = _typed(content.get("marks"), list[tuple[str, list[Any], str, str, float, str]])
    chart = _typed({**content, "marks": []}, Chart)
    _require(ID.fullmatch(chart.id), "a chart without a plain id")
    _check_size(chart.width, chart.height)
    for axis in (chart.x, chart.y):
        _check_axis(axis)
    for _, css, shape in chart.explained:
        _check_css(css)
        _require(shape in SAMPLES, "a legend of an unknown shape")
    chart.marks = [_mark(*mark) for mark in marks]
    return chart


def _mark(
    shape: str, points: Sequence[object], css: str, text: str, size: float, anchor: str
) -> Mark:
    _check_css(css)
    _require(shape in POINTS and anchor in ANCHORS, "a mark of an unknown shape")
    _require(math.isfinite(size) and abs(size) <= LARGEST_SIZE, "a mark of an unknown size")
    places = [(_coordinate(x), _coordinate(y)) for x, y in _typed(points, list[Place])]
    wanted = POINTS[shape]
    _require(wanted in (MANY, len(places)), f"a {shape} of {len(places)} points")
    if wanted != MANY:
        _require(all(map(math.isfinite, chain.from_iterable(places))), f"a {shape} of no place")
    return Mark(shape, places, css, text, size, anchor)


def _coordinate(number: float | None) -> float:
    if number is None:
        return math.nan
    _require(abs(number) <= FARTHEST, "a number that is too large to be drawn")
    return number


def _check_axis(axis: Axis) -> None:
    _require(axis.kind in SCALES, "an axis of an unknown scale")
    ends = (axis.low, axis.high, *(axis.marks or ()))
    _require(all(abs(end) <= FARTHEST for end in ends), "an axis without ends")
    _require(axis.kind == "linear" or min(ends) > 0, "a logarithmic axis down to 0")
    _require(2 <= axis.most <= MOST_MARKS, "an axis of too many marks")
    marks = len(axis.marks or ())
    _require(marks <= MOST_MARKS, "an axis of too many marks")
    _require(not axis.names or len(axis.names) == marks, "an axis whose marks have no names")


def _check_size(*sizes: float) -> None:
    is_drawable = all(SMALLEST_SIZE <= size <= LARGEST_SIZE for size in sizes)
    _require(is_drawable, "a chart of a size that cannot be drawn")


def _check_css(css: str) -> None:
    _require(CSS.fullmatch(css), "a class that no report has")


def _typed(value: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        raise InvalidValue(f"{NAME} is damaged: {error}") from error


def _require(holds: object, problem: str) -> None:
    if not holds:
        raise InvalidValue(f"{NAME} holds {problem}")

"""The contents of a report as plain data, without markup. Each format shows them in its own way.

A block is a table, charts, texts or facts. Texts and cells may hold foreign text: formats escape
it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from scaletest.model import Verdict, VerdictKind
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.model.wording import as_options
from scaletest.render.numbers import plural
from scaletest.render.svg import Chart

Pairs = Sequence[tuple[str, str]]
Value = float | int | str | None
Row = TypeVar("Row")
# Digits of durations and rates in a sheet; no clock gives more.
CLOCK_DIGITS = 9


class Share(NamedTuple):
    """A cell with a bar. part: its length, as a part of the longest bar. interval: of its end."""

    part: float
    text: str
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        return self.text


Cell = str | Share


@dataclass(frozen=True, slots=True)
class Table:
    """Titles, and a cell of every row for each of them.

    texts: numbers of the columns that hold text, which stands to the left. foreign: numbers of the
    columns whose text is foreign as a whole, as paths and messages are. spare: titles of columns
    that a narrow terminal leaves out, the first ones first. layout: how a page fits it in: "causes"
    and "failures" make a card of each row on phones, "errors" and "failures" keep the lines of
    messages, "wrapped" wraps texts.
    folded: the line under which a page folds it; "" where it is open. note: explains it below.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    texts: Sequence[int] = ()
    foreign: Sequence[int] = ()
    spare: Sequence[str] = ()
    layout: str = ""
    title: str = ""
    folded: str = ""
    note: str = ""

    @classmethod
    def of_rows(
        cls,
        rows: Sequence[Mapping[str, Cell]],
        texts: Collection[str] = (),
        foreign: Collection[str] = (),
        blanks: Collection[str] = ("",),
        **options: Any,
    ) -> Self:
        """A table of rows that have the same titles, without columns in which all cells are blank.

        texts, foreign: titles. blanks: what a cell that says nothing holds.
        """
        if not rows:
            return cls((), ())
        cells = zip(*(row.values() for row in rows), strict=True)
        columns = {
            title: column
            for title, column in zip(rows[0], cells, strict=True)
            if not set(map(str, column)) <= set(blanks)
        }
        return cls(
            list(columns),
            list(zip(*columns.values(), strict=True)),
            [number for number, title in enumerate(columns) if title in texts],
            [number for number, title in enumerate(columns) if title in foreign],
            **options,
        )


Size = tuple[float, float]


def narrow(chart: Chart, size: Size) -> Chart:
    """A chart as phones show it. size: width and height."""
    width, height = size
    return replace(chart, id=f"{chart.id}-narrow", width=width, height=height)


@dataclass(frozen=True)
class Figure:
    """A chart with what it says. narrow_size: width and height of the same chart on phones."""

    wide: Chart
    caption: str
    narrow_size: Size = (360.0, 330.0)

    @property
    def narrow(self) -> Chart:
        """The chart for phones."""
        return narrow(self.wide, self.narrow_size)


@dataclass(frozen=True)
class Charts:
    """Charts side by side, or below each other.

    columns: "" for as many as fit, "one" or "two". note: explains them. narrow_size: as of a
    figure, where charts are too wide for phones.
    """

    charts: Sequence[Chart]
    columns: str = ""
    title: str = ""
    note: str = ""
    narrow_size: Size | None = None

    @property
    def narrow(self) -> list[Chart]:
        """The charts for phones; none where they are the same."""
        if self.narrow_size is None:
            return []
        return [narrow(chart, self.narrow_size) for chart in self.charts]


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of text.

    style: "plain", "soft" for explanations, "strong", "list", "code", "copy" for a command line,
    "chart" for one of characters, or "warning". label: what stands before each line in forms that
    have no headings. most: how many lines a summary shows; 0 for all. rest: what one line is called
    where some are left out.
    optional: whether a terminal leaves it out where the summary gets too long.
    """

    lines: Sequence[str]
    style: str = "plain"
    label: str = ""
    most: int = 0
    rest: str = "line"
    optional: bool = False
    title: str = ""

    @property
    def shown(self) -> list[str]:
        """The lines of a summary behind their label, and how many more there are."""
        label = f"{self.label}: " if self.label else ""
        most = self.most or len(self.lines)
        lines = [f"{label}{line}" for line in self.lines[:most]]
        if len(self.lines) > most:
            left_out = plural(len(self.lines) - most, f"more {self.rest}")
            lines.append(f"{left_out} in the report")
        return lines


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    pairs: Pairs
    title: str = ""


Block = Table | Figure | Charts | Text | Facts
# Their names in templates and in JSON.
BLOCKS: dict[type[Block], str] = {
    Table: "table",
    Figure: "figure",
    Charts: "charts",
    Text: "text",
    Facts: "facts",
}


def laid_out(blocks: Iterable[Block | None]) -> Iterator[Block]:
    """The blocks that have anything to show, texts without empty lines; the note of a table or of
    charts follows as a text.
    """
    for block in blocks:
        match block:
            case Table(titles=content, note=note) | Charts(charts=content, note=note) if content:
                yield _worded(block) if isinstance(block, Table) else block
                if note:
                    yield Text([as_options(note)], "soft", optional=True)
            case Text(lines=lines, style="code" | "copy") if any(lines):
                yield block
            case Text(lines=lines) if any(lines):
                yield replace(block, lines=list(map(as_options, filter(None, lines))))
            case Facts(pairs=content) if content:
                yield block
            case Figure():
                yield block


def _worded(table: Table) -> Table:
    """The table with settings named as options in what is no foreign text."""
    own = set(table.texts).difference(table.foreign)
    rows = [
        [
            as_options(cell) if column in own and isinstance(cell, str) else cell
            for column, cell in enumerate(row)
        ]
        for row in table.rows
    ]
    return replace(table, rows=rows)


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a page. leads: whether it stands at once below the verdict, in a box."""

    title: str
    blocks: Sequence[Block]
    leads: bool = False


def page(parts: Mapping[str, Iterable[Block | None]], leading: str = "") -> list[Section]:
    """The sections that have anything to show. parts: blocks by title. leading: the title of the
    one that stands first; "" for none.
    """
    sections = [
        Section(title, list(laid_out(blocks)), leads=title == leading)
        for title, blocks in parts.items()
    ]
    sections.sort(key=lambda section: not section.leads)
    return [section for section in sections if section.blocks]


class Case(NamedTuple):
    """A test case of JUnit; message is shown where it is not passed.

    group: what it belongs to; "" for the run. problem: what kind of problem it is; "" for the kind.
    output: what else is known of it, shown whether it passed or not.
    """

    name: str
    kind: VerdictKind
    message: str
    seconds: float = 0.0
    group: str = ""
    problem: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table for programs: base units, None where nothing is known.

    line_end: of each row. digits: significant ones of fractions; 0 for as many as there are.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[Value]]
    line_end: str = "\r\n"
    digits: int = 0

    @classmethod
    def of_columns(
        cls, columns: Mapping[str, Callable[[Row], Value]], rows: Sequence[Row], **options: Any
    ) -> Self:
        """A sheet whose columns are functions of what a row is about."""
        cells = [map(column, rows) for column in columns.values()]
        return cls(list(columns), list(zip(*cells, strict=True)), **options)


def at(path: str) -> Callable[[Any], Value]:
    """A column of a sheet: attributes or keys one after the other, as in step.ratio.low.

    None where one of them is None or missing in a mapping, and for what is not finite.
    """
    names = path.split(".")

    def cell(row: Any) -> Value:
        value = row
        for name in names:
            if value is None:
                return None
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
        is_unknown = isinstance(value, float) and not math.isfinite(value)
        return None if is_unknown else value

    return cell


class ThresholdLine(Protocol):
    """Whether a threshold holds, its text, and what was measured."""

    @property
    def kind(self) -> VerdictKind:
        """PASS, FAIL, or INVALID where it is undecided."""

    @property
    def text(self) -> str:
        """The threshold."""

    @property
    def reason(self) -> str:
        """What was measured, in its unit."""


def usual_settings(plan: type[Any]) -> dict[str, Any]:
    """What a plan of this class holds where nothing else is asked for."""
    known = {each.name: each.default for each in fields(plan) if each.default is not MISSING}
    return {**plan.constants, **known}


@dataclass(frozen=True)
class Head:
    """What every report begins and ends with.

    title: what was run. conditions: what was asked of it, in a few words each. facts: the few
    numbers beside the verdict, as (name, value). name: by which commands find the run. labels: what
    people call it. following: the command to try next. environment: where and how it was made.
    answer: the words before the reason where nothing is judged, instead of the verdict's kind.
    alarming: the names of facts that are bad news. usual: what the plan holds where nothing else
    was asked for.
    """

    title: str
    verdict: Verdict
    folder: str
    name: str = ""
    labels: Labels = UNLABELLED
    conditions: Sequence[str] = ()
    elapsed_s: float = 0.0
    facts: Pairs = ()
    warnings: Sequence[str] = ()
    thresholds: Sequence[ThresholdLine] = ()
    following: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    alarming: Collection[str] = ()
    answer: str = ""

    @property
    def word(self) -> str:
        """The words before the reason of the verdict."""
        return self.answer or str(self.verdict.kind)

    @property
    def reason(self) -> str:
        """That of the verdict, for people."""
        return as_options(self.verdict.reason)

    @property
    def remedy(self) -> str:
        """That of the verdict, for people."""
        return as_options(self.verdict.remedy)

    @property
    def began(self) -> str:
        """When it was run; "" when that is not on record."""
        return str(self.environment.get("began", ""))

    @property
    def machine(self) -> str:
        """Where it was run, in a few words; "" when that is not on record."""
        known = self.environment
        parts = [str(known[key]) for key in ("host", "processor") if known.get(key)]
        if known.get("cores"):
            parts.append(f"{known['cores']} cores")
        devices = known.get("devices")
        if isinstance(devices, list) and devices:
            parts.append(plural(len(devices), "device"))
        return ", ".join(parts)

    @property
    def command_line(self) -> str:
        """What was typed to make it, quoted for a shell; "" when that is not on record."""
        typed = self.environment.get("command_line")
        if not isinstance(typed, list) or not typed:
            return ""
        program, *arguments = map(str, typed)
        return shlex.join([Path(program).name, *arguments])


@dataclass(frozen=True)
class Report:
    """A run as all formats show it; a format calls only for the parts that it shows.

    summary: what a terminal shows between heading and verdict. comment: what a comment in CI shows
    below the verdict. sections: what a page shows. sheet: a row for each step, or for whatever the
    run has many of. cases: its parts as test cases, beside its verdict and its thresholds. data:
    all of it for programs, as plain values for JSON. picture: the main charts, for a file of their
    own; None for those of the first section that has any.
    """

    head: Head
    summary: Callable[[], Sequence[Block | None]]
    comment: Callable[[], Sequence[Block | None]]
    sections: Callable[[], Sequence[Section]]
    sheet: Callable[[], Sheet]
    cases: Callable[[], Sequence[Case]]
    data: Callable[[], Mapping[str, Any]]
    picture: Callable[[], Sequence[Chart]] | None = None


UNLIMITED = 10_000


def aligned(table: Table, width: int = UNLIMITED) -> Iterator[str]:
    """Titles and rows, texts to the left and numbers to the right, two blanks apart.

    width: characters of a line. Where that is too narrow, spare columns are left out, and else the
    columns are broken into several tables below each other.
    """
    columns = list(range(len(table.titles)))
    cells = [list(map(str, row)) for row in (table.titles, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for title in table.spare:
        if _wide(columns, widths) > width:
            columns = [column for column in columns if table.titles[column] != title]
    gap = "  "
    if width < _wide(columns, widths) <= width + len(columns) - 1:
        gap = " "
        groups = [columns]
    else:
        groups = _groups(columns, widths, width)
    for group in groups:
        for row in cells:
            padded = (_padded(table, row[column], column, widths[column]) for column in group)
            yield gap.join(padded).rstrip()


def _padded(table: Table, text: str, column: int, width: int) -> str:
    return text.ljust(width) if column in table.texts else text.rjust(width)


def _wide(columns: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[column] for column in columns) + 2 * (len(columns) - 1)


def _groups(columns: Sequence[int], widths: Sequence[int], width: int) -> list[list[int]]:
    """The columns, broken where they are too wide; each group begins with the first column."""
    first, *others = columns
    groups = [[first]]
    room = width - widths[first]
    for column in others:
        if room < widths[column] + 2 and len(groups[-1]) > 1:
            groups.append([first])
            room = width - widths[first]
        groups[-1].append(column)
        room -= widths[column] + 2
    return groups

"""The contents of a report as plain data, without markup. Each format shows them in its own way.

A block is a table, charts, texts or facts. Texts and cells may hold foreign text: formats escape
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scaletest.model import Verdict, VerdictKind
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.render.svg import Chart

Pairs = Sequence[tuple[str, str]]
# Digits of durations and rates in a sheet; no clock gives more.
CLOCK_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Share:
    """A cell with a bar. part: its length, as a part of the longest bar."""

    part: float
    text: str

    def __str__(self) -> str:
        return self.text


Cell = str | Share


@dataclass(frozen=True, slots=True)
class Table:
    """Titles, and a cell of every row for each of them.

    texts: numbers of the columns that hold text, which stands to the left. foreign: numbers of the
    columns whose text is foreign as a whole, as paths and messages are. spare: titles of columns
    that a narrow terminal leaves out, the first ones first. layout: how a page fits it in: "causes"
    makes a card of each row on phones, "errors" keeps the lines of messages, "wrapped" wraps texts.
    folded: the line under which a page folds it; "" where it is open.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    texts: Sequence[int] = ()
    foreign: Sequence[int] = ()
    spare: Sequence[str] = ()
    layout: str = ""
    title: str = ""
    folded: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart for wide pages and one for phones (the same when it is small anyway), and what it
    says.
    """

    wide: Chart
    narrow: Chart
    caption: str


@dataclass(frozen=True)
class Charts:
    """Charts side by side. columns: "" for as many as fit, "one" or "two"."""

    charts: Sequence[Chart]
    columns: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of text.

    style: "plain", "soft" for explanations, "strong", "list", "code", "copy" for a command line, or
    "warning". label: what stands before each line in forms that have no headings. most: how many
    lines a summary shows; 0 for all. rest: what one line is called where some are left out.
    optional: whether a terminal leaves it out where the summary gets too long.
    """

    lines: Sequence[str]
    style: str = "plain"
    label: str = ""
    most: int = 0
    rest: str = "line"
    optional: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    pairs: Pairs
    title: str = ""


Block = Table | Figure | Charts | Text | Facts


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a page."""

    title: str
    blocks: Sequence[Block]


class Case(NamedTuple):
    """A test case of JUnit; message is shown where it is not passed.

    group: what it belongs to; "" for the run. problem: what kind of problem it is; "" for the kind.
    """

    name: str
    kind: VerdictKind
    message: str
    seconds: float
    group: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table for programs: base units, None where nothing is known.

    line_end: of each row. digits: significant ones of fractions; 0 for as many as there are.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[float | int | str | None]]
    line_end: str = "\r\n"
    digits: int = 0


class ThresholdLine(NamedTuple):
    """Whether a threshold holds, its text, and what was measured."""

    kind: VerdictKind
    text: str
    measured: str


@dataclass(frozen=True)
class Head:
    """What every report begins and ends with.

    title: what was run. conditions: what was asked of it, in a few words each. machine, began:
    where and when; "" where that is not on record. facts: the few numbers beside the verdict, as
    (name, value). name: by which commands find the run. labels: what people call it. following: the
    command to try next.
    """

    title: str
    verdict: Verdict
    folder: str
    name: str = ""
    labels: Labels = UNLABELLED
    conditions: Sequence[str] = ()
    machine: str = ""
    began: str = ""
    elapsed_s: float = 0.0
    facts: Pairs = ()
    warnings: Sequence[str] = ()
    thresholds: Sequence[ThresholdLine] = ()
    command_line: str = ""
    following: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """A run as all formats show it; a format calls only for the parts that it shows.

    summary: what a terminal shows between heading and verdict. comment: what a comment in CI shows
    below the verdict. sections: what a page shows. sheet: a row for each step, or for whatever the
    run has many of. cases: the run as test cases. data: all of it for programs, as plain values for
    JSON. picture: the main charts, for a file of their own; None for those of the first section
    that has any.
    """

    head: Head
    summary: Callable[[], Sequence[Block]]
    comment: Callable[[], Sequence[Block]]
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

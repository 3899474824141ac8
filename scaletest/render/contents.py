"""The contents of a report as plain data, without markup. Each format shows them in its own way.

A block is a table, charts, texts or facts. Texts and cells may hold foreign text: formats escape
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scaletest.model import Verdict, VerdictKind
from scaletest.render.svg import Chart

Pairs = Sequence[tuple[str, str]]


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
    """A test case of JUnit; message is shown where it is not passed."""

    name: str
    kind: VerdictKind
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table for programs: base units, None where nothing is known. line_end: of each row."""

    titles: Sequence[str]
    rows: Sequence[Sequence[float | int | str | None]]
    line_end: str = "\r\n"


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
    (name, value). name: by which commands find the run. following: the command to try next.
    """

    title: str
    verdict: Verdict
    folder: str
    name: str = ""
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
    JSON. picture: writes the main chart as a PNG; None where there is none.
    """

    head: Head
    summary: Callable[[], Sequence[Block]]
    comment: Callable[[], Sequence[Block]]
    sections: Callable[[], Sequence[Section]]
    sheet: Callable[[], Sheet]
    cases: Callable[[], Sequence[Case]]
    data: Callable[[], Mapping[str, Any]]
    picture: Callable[[Path], None] | None = None

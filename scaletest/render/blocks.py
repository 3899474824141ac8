"""The blocks of a report's sections, as plain data that each format shows in its own way.

There is no markup in them. Texts and cells may hold foreign text: formats escape it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from scaletest.model.wording import as_options
from scaletest.render.chart import Chart
from scaletest.render.numbers import plural

Pairs = Sequence[tuple[str, str]]
Size = tuple[float, float]


class Share(NamedTuple):
    """A cell with a bar."""

    part: float  # its length, as a part of the longest bar
    text: str

    def __str__(self) -> str:
        return self.text


Cell = str | Share


@dataclass(frozen=True, slots=True)
class Table:
    """Titles, and a cell of every row for each of them."""

    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    # numbers of the columns that hold text, which stands to the left
    texts: Sequence[int] = ()
    # numbers of the columns whose text is foreign as a whole, as paths and messages are
    foreign: Sequence[int] = ()
    # titles of columns that a narrow terminal leaves out, the first ones first
    spare: Sequence[str] = ()
    # how a page fits it in: "causes" and "failures" make a card of each row on phones, "errors" and
    # "failures" keep the lines of messages, "wrapped" wraps texts
    layout: str = ""
    title: str = ""
    folded: str = ""  # the line under which a page folds it; "" where it is open
    note: str = ""  # explains it below

    @classmethod
    def of_rows(
        cls,
        rows: Sequence[Mapping[str, Cell]],
        texts: Collection[str] = (),
        foreign: Collection[str] = (),
        blanks: Collection[str] = ("",),
        **options: Any,
    ) -> Self:
        """Make a table of rows that have the same titles, without columns of blank cells.

        texts, foreign: titles. blanks: what a cell that says nothing holds.
        """
        if not rows:
            return cls((), ())
        columns: dict[str, tuple[Cell, ...]] = {}
        cells = zip(*(row.values() for row in rows), strict=True)
        for title, column in zip(rows[0], cells, strict=True):
            if not set(map(str, column)) <= set(blanks):
                columns[title] = column
        return cls(
            list(columns),
            list(zip(*columns.values(), strict=True)),
            [number for number, title in enumerate(columns) if title in texts],
            [number for number, title in enumerate(columns) if title in foreign],
            **options,
        )


def _for_phones(chart: Chart, size: Size) -> Chart:
    width, height = size
    return replace(chart, id=f"{chart.id}-narrow", width=width, height=height)


@dataclass(frozen=True)
class Figure:
    """A chart with what it says."""

    wide: Chart
    caption: str
    narrow_size: Size = (360.0, 330.0)  # of the same chart on phones

    @property
    def narrow(self) -> Chart:
        """The chart for phones."""
        return _for_phones(self.wide, self.narrow_size)


@dataclass(frozen=True)
class Charts:
    """Charts side by side, or below each other."""

    charts: Sequence[Chart]
    columns: str = ""  # "" for as many as fit, or "one" or "two"
    title: str = ""
    note: str = ""  # explains them
    narrow_size: Size | None = None  # as of a figure, where charts are too wide for phones

    @property
    def narrow(self) -> list[Chart]:
        """The charts for phones; none where they are the same."""
        size = self.narrow_size
        return [_for_phones(chart, size) for chart in self.charts] if size else []


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of text."""

    lines: Sequence[str]
    # "plain", "soft" for explanations, "strong", "list", "code", "copy" for a command line, "chart"
    # for one of characters, or "warning"
    style: str = "plain"
    label: str = ""  # what stands before each line in forms that have no headings
    most: int = 0  # how many lines a summary shows; 0 for all
    rest: str = "line"  # what one line is called where some are left out
    optional: bool = False  # whether a terminal leaves it out where the summary gets too long
    title: str = ""

    @property
    def summary_lines(self) -> list[str]:
        """The lines of a summary behind their label, at most `most`, and how many are left out."""
        label = f"{self.label}: " if self.label else ""
        most = self.most or len(self.lines)
        lines = [f"{label}{line}" for line in self.lines[:most]]
        if len(self.lines) > most:
            lines.append(f"{plural(len(self.lines) - most, f'more {self.rest}')} in the report")
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


def lay_out(blocks: Iterable[Block | None]) -> Iterator[Block]:
    """Yield the blocks that have anything to show, texts without empty lines.

    The note of a table or of charts follows as a text.
    """
    for block in blocks:
        match block:
            case Table(titles=content, note=note) | Charts(charts=content, note=note) if content:
                yield _name_options(block) if isinstance(block, Table) else block
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


def _name_options(table: Table) -> Table:
    """Name settings as options, in all texts but foreign ones."""
    rows = [list(row) for row in table.rows]
    for row in rows:
        for column in set(table.texts).difference(table.foreign):
            cell = row[column]
            if isinstance(cell, str):
                row[column] = as_options(cell)
    return replace(table, rows=rows)

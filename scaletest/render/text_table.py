"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scaletest.render.contents import Table

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

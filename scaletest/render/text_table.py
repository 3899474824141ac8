"""A table as lines of text, in columns that fit the width of a terminal."""

from collections.abc import Iterator, Sequence

from scaletest.render.blocks import Table

GAP = "  "


def align_table(table: Table, width: int = 10_000) -> Iterator[str]:
    """Yield titles and rows, texts to the left and numbers to the right, two blanks apart.

    width: characters of a line. Where that is too narrow, spare columns are left out, and else the
    columns are broken into several tables below each other.
    """
    columns = list(range(len(table.titles)))
    cells = [list(map(str, row)) for row in (table.titles, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for title in table.spare:
        if _total_width(columns, widths) > width:
            columns = [column for column in columns if table.titles[column] != title]
    # too many columns are broken into groups, each of which begins with the first column
    first, *other_columns = columns
    groups = [[first]]
    for column in other_columns:
        if _total_width([*groups[-1], column], widths) > width and len(groups[-1]) > 1:
            groups.append([first])
        groups[-1].append(column)
    for group in groups:
        for row in cells:
            padded = []
            for column in group:
                pad = str.ljust if column in table.texts else str.rjust
                padded.append(pad(row[column], widths[column]))
            yield GAP.join(padded).rstrip()


def _total_width(columns: Sequence[int], widths: Sequence[int]) -> int:
    """Return the width of these columns with a gap between them."""
    return sum(widths[column] for column in columns) + len(GAP) * (len(columns) - 1)

"""A run as CSV, for spreadsheets and scripts: base units, and empty where nothing is known.

The columns are part of the interface: docs/reference/reports.md describes them, and new ones come
at the end.
"""

import csv
import io
import re

from scaletest.render.contents import Report
from scaletest.render.text import csv_cell

# A duration may be below 0 where two clocks disagree; that is no formula.
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def render(report: Report) -> str:
    """Write titles and rows, quoted as RFC 4180 wants."""
    sheet = report.sheet()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=sheet.line_end)
    writer.writerow(sheet.titles)
    for row in sheet.rows:
        cells = list(row)
        for column, value in enumerate(cells):
            if isinstance(value, float) and sheet.digits:
                cells[column] = float(f"{value:.{sheet.digits}g}")
            elif isinstance(value, str) and not _NUMBER.fullmatch(value):
                cells[column] = csv_cell(value)
        writer.writerow(cells)
    return out.getvalue()

"""A run as CSV, for spreadsheets and scripts: base units, and empty where nothing is known.

The columns are part of the interface: docs/reference/reports.md describes them, and new ones come
at the end.
"""

from __future__ import annotations

import csv
import io
import re

from scaletest.render.contents import Report
from scaletest.render.text import cell

# A duration may be below 0 where two clocks disagree; that is no formula.
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def render(report: Report) -> str:
    """Titles and rows, quoted as RFC 4180 wants."""
    sheet = report.sheet()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=sheet.line_end)
    writer.writerow(sheet.titles)
    for row in sheet.rows:
        writer.writerow([_written(value, sheet.digits) for value in row])
    return out.getvalue()


def _written(value: float | int | str | None, digits: int) -> float | int | str | None:
    if isinstance(value, float) and digits:
        return float(f"{value:.{digits}g}")
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return cell(value)
    return value

"""A run as CSV, for spreadsheets and scripts: base units, and empty where nothing is known.

The columns are part of the interface: docs/reference/reports.md describes them, and new ones come
at the end.
"""

from __future__ import annotations

import csv
import io

from scaletest.render.contents import Report
from scaletest.render.text import cell


def render(report: Report) -> str:
    """Titles and rows, quoted as RFC 4180 wants."""
    sheet = report.sheet()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=sheet.line_end)
    writer.writerow(sheet.titles)
    for row in sheet.rows:
        writer.writerow(map(_written, row))
    return out.getvalue()


def _written(value: float | int | str | None) -> float | int | str | None:
    """Nine digits are more than any clock gives."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return cell(value) if isinstance(value, str) else value

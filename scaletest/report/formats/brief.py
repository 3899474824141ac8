"""A run in one line: verdict, what was run, and why the verdict is as it is."""

from scaletest.render.contents import Report
from scaletest.render.text import one_line


def render(report: Report) -> str:
    """Write one line, ended by a line feed."""
    head = report.head
    return one_line(f"{head.word}  {head.title}: {head.reason}") + "\n"

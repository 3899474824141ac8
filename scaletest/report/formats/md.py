"""A run as Markdown: verdict and table, short enough for a comment in CI. Foreign text stands in
code spans or is escaped.
"""

import re
from collections.abc import Iterator

from scaletest.model import VerdictKind
from scaletest.model.wording import as_options
from scaletest.render.blocks import Table, Text, lay_out
from scaletest.render.contents import Report
from scaletest.render.numbers import format_duration
from scaletest.render.text import clean_text, code_span, one_line

SIGNS = {
    VerdictKind.PASS: "✅",
    VerdictKind.FAIL: "❌",
    VerdictKind.INVALID: "⚠️",
    VerdictKind.RUNNING: "⏳",
}


def render(report: Report) -> str:
    """Write the whole text."""
    head = report.head
    verdict = head.verdict
    lines = [f"### {SIGNS[verdict.kind]} {head.word}: {plain(head.reason)}", ""]
    if head.remedy:
        lines += [f"**What to do:** {plain(head.remedy)}", ""]
    conditions = map(plain, head.conditions)
    elapsed = format_duration(head.elapsed_s) if head.elapsed_s else ""
    parts = [code_span(head.title), *conditions, plain(head.labels.called), elapsed]
    lines += [" · ".join(filter(None, parts)), ""]
    if head.labels.note:
        lines += [plain(head.labels.note), ""]
    for block in lay_out(report.comment()):
        if isinstance(block, Table):
            lines += _table(block)
        elif isinstance(block, Text):
            is_list = block.style in ("list", "warning")
            for line in block.shown:
                lines += [f"* {plain(line)}"] if is_list else [plain(line), ""]
    lines += [
        f"* {threshold.kind}: {code_span(threshold.text)}, {plain(as_options(threshold.reason))}"
        for threshold in head.thresholds
    ]
    lines += [f"* Warning: {plain(as_options(warning))}" for warning in head.warnings]
    return "\n".join(lines).rstrip() + "\n"


def plain(text: str) -> str:
    """Escape sentences with foreign names: no markup, no mention and no new line is left."""
    escaped = re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", one_line(text, limit=1000))
    return escaped.replace("@", "`@`")


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield from (f"**{table.title}**", "")
    yield _row([clean_text(title) for title in table.titles])
    sides = {True: ":--", False: "--:"}
    yield _row([sides[column in table.texts] for column in range(len(table.titles))])
    for row in table.rows:
        cells = []
        for column, text in enumerate(map(str, row)):
            if column in table.foreign:
                cells.append(code_span(text) if text else "")
            elif column in table.texts:
                cells.append(plain(text))
            else:
                cells.append(clean_text(text).replace("|", "\\|"))
        yield _row(cells)
    yield ""


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"

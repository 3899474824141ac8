"""A run as Markdown: verdict and table, short enough for a comment in CI.

Foreign text stands in code spans or is escaped.
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
    lines = [f"### {SIGNS[head.verdict.kind]} {head.word}: {escape_sentence(head.reason)}", ""]
    if head.sentence:
        gains = escape_sentence(" ".join(head.gains))
        lines += [f"**{escape_sentence(head.sentence)}** {gains}".rstrip(), ""]
    if head.remedy:
        lines += [f"**What to do:** {escape_sentence(head.remedy)}", ""]
    parts = [code_span(head.title), *map(escape_sentence, head.conditions)]
    parts.append(escape_sentence(head.labels.called))
    if head.elapsed_s:
        parts.append(format_duration(head.elapsed_s))
    lines += [" · ".join(filter(None, parts)), ""]
    if head.labels.note:
        lines += [escape_sentence(head.labels.note), ""]
    for block in lay_out(report.comment()):
        if isinstance(block, Table):
            lines += _table_lines(block)
        elif isinstance(block, Text):
            is_list = block.style in ("list", "warning")
            for line in block.summary_lines:
                lines += [f"* {escape_sentence(line)}"] if is_list else [escape_sentence(line), ""]
    for threshold in head.thresholds:
        reason = escape_sentence(as_options(threshold.reason))
        lines.append(f"* {threshold.kind}: {code_span(threshold.text)}, {reason}")
    lines += [f"* Warning: {escape_sentence(as_options(warning))}" for warning in head.warnings]
    return "\n".join(lines).rstrip() + "\n"


def escape_sentence(text: str) -> str:
    """Escape sentences with foreign names: no markup, no mention and no new line is left."""
    escaped = re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", one_line(text, limit=1000))
    return escaped.replace("@", "`@`")


def _table_lines(table: Table) -> Iterator[str]:
    if table.title:
        yield from (f"**{table.title}**", "")
    yield _row_line([clean_text(title) for title in table.titles])
    # texts stand to the left, numbers to the right
    columns = range(len(table.titles))
    yield _row_line([":--" if column in table.texts else "--:" for column in columns])
    for row in table.rows:
        cells = []
        for column, text in enumerate(map(str, row)):
            if column in table.foreign:
                cells.append(code_span(text) if text else "")
            elif column in table.texts:
                cells.append(escape_sentence(text))
            else:
                cells.append(clean_text(text).replace("|", "\\|"))
        yield _row_line(cells)
    yield ""


def _row_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"

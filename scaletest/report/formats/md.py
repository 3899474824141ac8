"""A run as Markdown: verdict and table, short enough for a comment in CI. Foreign text stands in
code spans or is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scaletest.model import VerdictKind
from scaletest.model.wording import as_options
from scaletest.render.blocks import Block, Table, Text, laid_out
from scaletest.render.contents import Report
from scaletest.render.numbers import duration
from scaletest.render.text import clean, code, one_line

SIGNS = {
    VerdictKind.PASS: "✅",
    VerdictKind.FAIL: "❌",
    VerdictKind.INVALID: "⚠️",
    VerdictKind.RUNNING: "⏳",
}


def render(report: Report) -> str:
    """The whole text."""
    head = report.head
    verdict = head.verdict
    lines = [f"### {SIGNS[verdict.kind]} {head.word}: {plain(head.reason)}", ""]
    if head.remedy:
        lines += [f"**What to do:** {plain(head.remedy)}", ""]
    asked = [plain(condition) for condition in head.conditions]
    took = [duration(head.elapsed_s)] if head.elapsed_s else []
    parts = [code(head.title), *asked, plain(head.labels.called), *took]
    lines += [" · ".join(filter(None, parts)), ""]
    if head.labels.note:
        lines += [plain(head.labels.note), ""]
    for block in laid_out(report.comment()):
        lines += _block(block)
    lines += [
        f"* {threshold.kind}: {code(threshold.text)}, {plain(as_options(threshold.reason))}"
        for threshold in head.thresholds
    ]
    lines += [f"* Warning: {plain(as_options(warning))}" for warning in head.warnings]
    return "\n".join(lines).rstrip() + "\n"


def plain(text: str) -> str:
    """Sentences that may hold foreign names: nothing in them is markup, a mention or a new line."""
    escaped = re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", one_line(text, 1000))
    return escaped.replace("@", "`@`")


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Text):
        yield from _text(block)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield from (f"**{table.title}**", "")
    yield _row([clean(title) for title in table.titles])
    columns = range(len(table.titles))
    sides = {True: ":--", False: "--:"}
    yield _row([sides[column in table.texts] for column in columns])
    for cells in table.rows:
        yield _row([_cell(table, column, str(cells[column])) for column in columns])
    yield ""


def _cell(table: Table, column: int, text: str) -> str:
    if column in table.foreign:
        return code(text) if text else ""
    if column in table.texts:
        return plain(text)
    return clean(text).replace("|", "\\|")


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: Text) -> Iterator[str]:
    if text.style in ("list", "warning"):
        yield from (f"* {plain(line)}" for line in text.shown)
    else:
        for line in text.shown:
            yield from (plain(line), "")

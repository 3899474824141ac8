"""A run as Markdown: verdict and table, short enough for a comment in CI. Foreign text stands in code spans."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.model import VerdictKind
from scaletest.render.numbers import NOTHING, duration, percent, plural, seconds, significant
from scaletest.render.text import clean, code
from scaletest.report import words
from scaletest.report.run import Run
from scaletest.report.table import Row, rows

SIGNS = {VerdictKind.PASS: "✅", VerdictKind.FAIL: "❌", VerdictKind.INVALID: "⚠️"}
MOST_FAILURES = 10


def comment(run: Run) -> str:
    """The whole text."""
    result = run.result
    verdict = result.verdict
    lines = [f"### {SIGNS[verdict.kind]} {verdict.kind}: {words.plain(verdict.reason)}", ""]
    if verdict.remedy:
        lines += [f"**What to do:** {words.plain(verdict.remedy)}", ""]
    lines += [f"{code(words.heading(result))} · {words.wanted(result)} · {duration(result.elapsed_s)}", ""]
    found = rows(result)
    if found:
        lines += _table(found, words.common_quantile(result.steps))
        lines += ["", f"± {words.interval(result.steps)}, 90 % for the ratio.", ""]
    told = words.law(result)
    if told:
        lines += [f"Law: {told}.", ""]
    lines += [f"* {one.kind}: {code(one.text)}, {words.plain(one.reason)}" for one in result.thresholds]
    lines += [f"* Warning: {words.plain(line)}" for line in result.warnings]
    lines += [
        f"* {plural(group.count, 'request')} {group.outcome}: {code(group.error or NOTHING)}"
        for group in result.failures[:MOST_FAILURES]
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(found: Sequence[Row], quantile: str) -> list[str]:
    titles = (
        "workers",
        "requests/s",
        "ratio",
        "speed-up",
        "efficiency",
        f"wait {quantile}",
        f"run {quantile}",
        "failed",
    )
    return [_line(titles), _line(["--:"] * len(titles)), *(_line(_cells(row, quantile)) for row in found)]


def _cells(row: Row, quantile: str) -> list[str]:
    step, scaled = row.step, row.scaled
    wait, run = words.quantile(step.wait, quantile), words.quantile(step.run, quantile)
    return [
        str(step.workers),
        words.rate(step),
        words.ratio(step.ratio),
        significant(scaled.speedup.value) if scaled else NOTHING,
        percent(scaled.efficiency.value, 0) if scaled else NOTHING,
        seconds(wait.value) if wait else NOTHING,
        seconds(run.value) if run else NOTHING,
        str(step.failures),
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(clean(cell) for cell in cells)} |"

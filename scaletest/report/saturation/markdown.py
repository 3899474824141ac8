"""A saturation run as Markdown: verdict and table, short enough for a comment in CI."""

from __future__ import annotations

from scaletest.render.numbers import duration
from scaletest.render.text import clean, code
from scaletest.report.markdown import SIGNS
from scaletest.report.saturation import words
from scaletest.report.saturation.run import SaturationRun
from scaletest.report.words import plain

MOST_ERRORS = 10


def comment(run: SaturationRun) -> str:
    """The whole text."""
    result = run.result
    verdict = result.verdict
    lines = [f"### {SIGNS[verdict.kind]} {verdict.kind}: {plain(verdict.reason)}", ""]
    if verdict.remedy:
        lines += [f"**What to do:** {plain(verdict.remedy)}", ""]
    lines += [
        (
            f"{code(words.heading(result))} · {plain(words.wanted(result))} ·"
            f" {duration(result.elapsed_s)}"
        ),
        "",
    ]
    columns = words.columns(result.steps)
    if result.steps:
        cells = [[one.title for one in columns], ["--:"] * len(columns)]
        cells += [list(row) for row in zip(*(one.cells for one in columns), strict=True)]
        lines += [f"| {' | '.join(clean(cell) for cell in row)} |" for row in cells]
        lines += [""]
    lines += [f"* {plain(line)}" for line in words.told(result)]
    lines += [f"* Errors, {plain(line)}" for line in words.error_lines(result)[:MOST_ERRORS]]
    lines += [f"* Warning: {plain(line)}" for line in result.warnings]
    return "\n".join(lines).rstrip() + "\n"

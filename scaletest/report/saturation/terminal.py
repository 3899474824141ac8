"""The summary on a terminal, the most important last."""

from __future__ import annotations

import shlex

from rich.console import Console
from rich.text import Text

from scaletest.render.numbers import duration
from scaletest.render.text import clean
from scaletest.report import words as common
from scaletest.report.saturation import words
from scaletest.report.saturation.run import SaturationRun
from scaletest.report.table import aligned
from scaletest.report.terminal import verdict_line

MOST_ERRORS, MOST_WARNINGS, MOST_LINES = 6, 3, 20


def summary(run: SaturationRun, console: Console) -> None:
    """Print the whole result."""
    result = run.result

    def say(line: str, style: str = "") -> None:
        console.print(Text(clean(line).replace("\n", " "), style=style), soft_wrap=True)

    where = common.machine(run.environment)
    parts = [
        clean(words.heading(result), 64),
        where,
        words.wanted(result),
        duration(result.elapsed_s),
    ]
    say(" · ".join(part for part in parts if part))
    columns = words.columns(result.steps)
    lines = aligned(columns, console.width)
    if len(lines[0]) > console.width:
        lines = aligned(
            [one for one in columns if one.title not in ("p50", "queueing")], console.width
        )
    for number, line in enumerate(lines if result.steps else []):
        say(line, "bold" if number == 0 else "")
    failed = words.error_lines(result)
    for line in failed[:MOST_ERRORS]:
        say(f"errors: {line}")
    if len(failed) > MOST_ERRORS:
        say(f"errors of {len(failed) - MOST_ERRORS} more steps are in the report")
    for line in words.told(result):
        say(line)
    for row in [*run.extra.get("lines", []), *words.pods(run)][:MOST_LINES]:
        say(str(row))
    for line in result.warnings[:MOST_WARNINGS]:
        say(f"warning: {line}", "yellow")
    console.print(verdict_line(result.verdict), soft_wrap=True)
    if result.verdict.remedy:
        say(f"  what to do: {result.verdict.remedy}")
    say(f"saved in {run.folder}")
    name = shlex.quote(run.name)
    say(
        f"next: scaletest size --run {name}"
        if result.point
        else f"next: scaletest report {name} -t html -o report.html"
    )

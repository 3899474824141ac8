"""The summary on a terminal, the most important last: table, law, warnings, verdict, where it is,
what to try next.

Under 25 lines for 8 steps, and the table fits into 80 columns.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from scaletest.analysis.evaluation import Evaluation
from scaletest.model import Verdict, VerdictKind
from scaletest.render.numbers import NOTHING, duration, percent, plural, seconds, significant
from scaletest.render.text import clean
from scaletest.report import limits, usage, words
from scaletest.report.run import Run
from scaletest.report.table import Column, Row, aligned, rows, works

COLOURS = {
    VerdictKind.PASS: "green",
    VerdictKind.FAIL: "red",
    VerdictKind.INVALID: "yellow",
    VerdictKind.RUNNING: "cyan",
}
SIGNS = {
    VerdictKind.PASS: "✓",
    VerdictKind.FAIL: "✗",
    VerdictKind.INVALID: "?",
    VerdictKind.RUNNING: "…",
}
MOST_WARNINGS = 3
MOST_ERRORS = 2
MOST_THRESHOLDS = 4
MOST_CAUSES = 3
WIDTH = 80
# Of the whole summary, and those that every summary has: heading, foot, verdict with remedy,
# folder, what is next.
MOST_LINES = 24
FIXED_LINES = 6


def summary(run: Run, console: Console) -> None:
    """Print the whole result."""
    result = run.result

    def say(line: str, style: str = "") -> None:
        console.print(Text(_line(line), style=style), soft_wrap=True)

    where = words.machine(run.environment)
    parts = [
        clean(words.heading(result), 64),
        where,
        "closed load",
        words.wanted(result),
        duration(result.elapsed_s),
    ]
    say(" · ".join(part for part in parts if part))
    table = _table(run, console.width) if result.steps else []
    for number, line in enumerate(table):
        say(line, "bold" if number == 0 else "")
    if result.steps:
        say(_foot(result), "dim")
    notes = _notes(run)
    for line in notes:
        say(line, "yellow" if line.startswith("warning") else "")
    room = MOST_LINES - len(table) - len(notes) - FIXED_LINES
    told = _limits(result, room)
    resources = usage.line(result)
    if resources and room > len(told):
        say(f"resources: {resources}")
    for line in told:
        say(line)
    console.print(verdict_line(result.verdict), soft_wrap=True)
    if result.verdict.remedy:
        say(f"  what to do: {result.verdict.remedy}")
    say(f"saved in {run.folder}")
    if result.interrupted and result.verdict.kind is not VerdictKind.RUNNING:
        say(f"next: scaletest validate --local --resume {shlex.quote(run.name)}")
    else:
        say(f"next: scaletest report {shlex.quote(run.name)} -t html -o report.html")


def verdict_line(verdict: Verdict) -> Text:
    """PASS, FAIL, INVALID or RUNNING, in words and in colour, with the reason."""
    line = Text(verdict.kind.value, style=f"bold {COLOURS[verdict.kind]}")
    line.append(f"  {_line(verdict.reason)}", style="none")
    return line


def _told(result: Evaluation) -> list[str]:
    found = {"law": words.law(result), "shares": words.shares(result)}
    return [f"{name}: {told}" for name, told in found.items() if told]


def _notes(run: Run) -> list[str]:
    """What stands between the table and the verdict."""
    warnings = [f"warning: {line}" for line in run.result.warnings]
    return [
        *_told(run.result),
        *_limited(warnings, MOST_WARNINGS, "warning"),
        *_limited(_errors(run), MOST_ERRORS, "kind of failure"),
        *_limited(_thresholds(run), MOST_THRESHOLDS, "threshold"),
    ]


def _limits(result: Evaluation, room: int) -> list[str]:
    """What stops the run, the largest cause first, as far as there is room; the verdict names the
    first anyway.
    """
    causes = result.causes
    if causes is None or not limits.grew(causes) or room < 2:
        return []
    title = f"what limits it, from {limits.doubling(causes)}:"
    if causes.headline:
        return [f"{title} {causes.headline}"]
    shown = [
        _cut(f"  {row.share:<14} {'+' + row.added:<8} {_named(row)}")
        for row in limits.rows(causes)[: min(MOST_CAUSES, room - 1)]
    ]
    slow = (
        [f"  {causes.slow.sentence}"]
        if causes.slow and causes.slow.sentence not in result.verdict.reason
        else []
    )
    return [title, *shown, *slow][:room]


def _named(row: limits.CauseRow) -> str:
    """A cause with its object, and whether the first of its evidence confirms it; how that was
    before is left out.
    """
    named = clean(f"{row.label}, {row.object}" if row.object else row.label, 48)
    evidence = [part.partition(" (")[0] for part in row.measured[:1]]
    told = ": ".join(filter(None, [row.confirmed, *evidence]))
    return f"{named}, {told}" if told else named


def _cut(line: str) -> str:
    """A line that fits into the width of the table."""
    line = _line(line)
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def _table(run: Run, width: int) -> list[str]:
    """What others say too goes first when it is too wide: speed-up, efficiency, wait."""
    found, quantile = rows(run.result), words.common_quantile(run.result.steps)
    columns = _shared(found, quantile) if run.result.plan.compares else _columns(found, quantile)
    lines = aligned(columns, width)
    for title in ("speed-up", "effic.", f"wait {quantile}"):
        if len(lines[0]) > width:
            columns = [column for column in columns if column.title != title]
            lines = aligned(columns, width)
    return lines


def _shared(found: Sequence[Row], quantile: str) -> list[Column]:
    """Of a run that compares numbers of workers per device."""
    own = {column.title: column for column in _columns(found, quantile)}
    fair = [[words.fair(row.step, group) for row in found] for group in ("worker", "device")]
    return [
        Column("K", [str(row.step.per_device) for row in found]),
        *(
            column
            for title, column in own.items()
            if title not in ("ratio", "effic.", f"wait {quantile}", "failed")
        ),
        Column(
            "fair", ["/".join(filter(None, pair)) or NOTHING for pair in zip(*fair, strict=True)]
        ),
        Column("memory", [str(row.step.memory_hits) for row in found]),
        own["failed"],
    ]


def _columns(found: Sequence[Row], quantile: str) -> list[Column]:
    def time(name: str, row: Row) -> str:
        value = words.quantile(getattr(row.step, name), quantile)
        return seconds(value.value) if value else NOTHING

    return [
        Column("N", [str(row.step.workers) for row in found]),
        Column("requests/s", [words.rate(row.step) for row in found]),
        *(
            Column(f"{name}/s", [words.work(row.step, name) for row in found])
            for name in works(found)
        ),
        Column("ratio", [words.ratio(row.step.ratio) for row in found]),
        Column(
            "speed-up",
            [significant(row.scaled.speedup.value) if row.scaled else NOTHING for row in found],
        ),
        Column(
            "effic.",
            [percent(row.scaled.efficiency.value, 0) if row.scaled else NOTHING for row in found],
        ),
        Column(f"wait {quantile}", [time("wait", row) for row in found]),
        Column(f"run {quantile}", [time("run", row) for row in found]),
        Column("failed", [str(row.step.failures) for row in found]),
    ]


def _foot(result: Evaluation) -> str:
    steps = result.steps
    quantile = words.common_quantile(steps)
    few = f"; p95 needs {words.needs('p95')} requests a step" if quantile != "p95" else ""
    if result.plan.compares:
        return (
            f"± {words.interval(steps)}; K: workers on each device; fair: most over least of"
            f" workers/devices{few}"
        )
    return f"± {words.interval(steps)}, 90 % for the ratio{few}"


def _errors(run: Run) -> list[str]:
    return [
        f"error, {plural(group.count, 'time')}: {clean(group.error or group.outcome, 300)}"
        for group in run.result.failures
    ]


def _thresholds(run: Run) -> list[str]:
    found = run.result.thresholds
    return [f"threshold {SIGNS[one.kind]} {one.text}: {one.reason}" for one in found]


def _limited(lines: list[str], most: int, what: str) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"{plural(more, f'more {what}')} in the report"]


def _line(text: str) -> str:
    """One line, whatever foreign text is in it."""
    return clean(text).replace("\n", " ")

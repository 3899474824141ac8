"""What a terminal shows of a validation: under 25 lines for 8 steps, in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.evaluation import Evaluation
from scaletest.render.contents import Block, Table, Text
from scaletest.render.numbers import NOTHING, percent, plural, seconds, significant
from scaletest.render.text import clean
from scaletest.report import limits, usage, words
from scaletest.report.run import Run
from scaletest.report.validation.rows import Row, rows, works

MOST_WARNINGS = 3
MOST_ERRORS = 2
MOST_THRESHOLDS = 4
MOST_CAUSES = 3
WIDTH = 80


def summary(run: Run) -> list[Block]:
    """The table, its foot, and what is known of the run besides."""
    result = run.result
    laws = {"law": words.law(result), "shares": words.shares(result)}
    resources = usage.line(result)
    return [
        *(_table(result) if result.steps else []),
        *(Text([line], label=name) for name, line in laws.items() if line),
        Text(
            words.warnings(result.verdict, result.interrupted, result.warnings),
            "warning",
            label="warning",
            most=MOST_WARNINGS,
            rest="warning",
        ),
        Text(_errors(run), most=MOST_ERRORS, rest="kind of failure"),
        Text(_thresholds(run), label="threshold", most=MOST_THRESHOLDS, rest="threshold"),
        Text([resources] if resources else [], label="resources", optional=True),
        Text(_limits(result), optional=True),
    ]


def _table(result: Evaluation) -> list[Block]:
    steps, quantile = rows(result), words.common_quantile(result.steps)
    columns = _shared(steps, quantile) if result.plan.compares else _columns(steps, quantile)
    spare = ("speed-up", "effic.", f"wait {quantile}")
    cells = list(zip(*columns.values(), strict=True))
    return [Table(list(columns), cells, spare=spare), Text([_foot(result)], "soft")]


def _columns(steps: Sequence[Row], quantile: str) -> dict[str, list[str]]:
    """Cells by title, of a run that doubles its workers."""
    return {
        "N": [str(row.step.workers) for row in steps],
        "requests/s": [words.rate(row.step) for row in steps],
        **{f"{name}/s": [words.work(row.step, name) for row in steps] for name in works(steps)},
        "ratio": [words.ratio(row.step.ratio) for row in steps],
        "speed-up": [
            significant(row.scaled.speedup.value) if row.scaled else NOTHING for row in steps
        ],
        "effic.": [
            percent(row.scaled.efficiency.value, 0) if row.scaled else NOTHING for row in steps
        ],
        f"wait {quantile}": [_time(row, "wait", quantile) for row in steps],
        f"run {quantile}": [_time(row, "run", quantile) for row in steps],
        "failed": [str(row.step.failures) for row in steps],
    }


def _time(row: Row, name: str, quantile: str) -> str:
    percentile = words.quantile(getattr(row.step, name), quantile)
    return seconds(percentile.value) if percentile else NOTHING


def _shared(steps: Sequence[Row], quantile: str) -> dict[str, list[str]]:
    """Cells by title, of a run that compares numbers of workers per device."""
    columns = _columns(steps, quantile)
    for title in ("ratio", "effic.", f"wait {quantile}"):
        del columns[title]
    failed = columns.pop("failed")
    fair = [[words.fair(row.step, group) for row in steps] for group in ("worker", "device")]
    return {
        "K": [str(row.step.per_device) for row in steps],
        **columns,
        "fair": ["/".join(filter(None, pair)) or NOTHING for pair in zip(*fair, strict=True)],
        "memory": [str(row.step.memory_hits) for row in steps],
        "failed": failed,
    }


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
    return [
        f"{words.SIGNS[threshold.kind]} {threshold.text}: {threshold.reason}"
        for threshold in run.result.thresholds
    ]


def _limits(result: Evaluation) -> list[str]:
    """What stops the run, the largest cause first; the verdict names the first anyway."""
    causes = result.causes
    if causes is None or not limits.grew(causes):
        return []
    title = f"what limits it, from {limits.doubling(causes)}:"
    if causes.headline:
        return [f"{title} {causes.headline}"]
    shown = [
        _cut(f"  {row.share:<14} {'+' + row.added:<8} {_named(row)}")
        for row in limits.rows(causes)[:MOST_CAUSES]
    ]
    slow = []
    if causes.slow and causes.slow.sentence not in result.verdict.reason:
        slow = [f"  {causes.slow.sentence}"]
    return [title, *shown, *slow]


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
    line = clean(line).replace("\n", " ")
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."

"""What a terminal shows of a saturation run, and what a comment in CI shows."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.saturation.step import Assessed, level_text
from scaletest.render.contents import Block, Table, Text
from scaletest.render.numbers import percent
from scaletest.report import words as common
from scaletest.report.saturation import words
from scaletest.report.saturation.run import SaturationRun

MOST_ERRORS, MOST_COMMENT_ERRORS, MOST_WARNINGS, MOST_LINES = 6, 10, 3, 20


def summary(run: SaturationRun) -> list[Block]:
    """The steps, errors by kind, what the service can take, settings, and warnings."""
    result = run.result
    settings = [str(line) for line in (*run.extra.get("lines", []), *words.pods(run))]
    return [
        *_steps(result.steps),
        Text(words.error_lines(result), label="errors", most=MOST_ERRORS, rest="step with errors"),
        Text(words.told(result)),
        Text(settings, most=MOST_LINES),
        Text(
            common.warnings(result.verdict, result.interrupted, result.warnings),
            "warning",
            label="warning",
            most=MOST_WARNINGS,
            rest="warning",
        ),
    ]


def comment(run: SaturationRun) -> list[Block]:
    """The steps, what the service can take, and errors by kind."""
    result = run.result
    errors = words.error_lines(result)
    return [
        *_steps(result.steps),
        Text(words.told(result), "list"),
        Text(errors, "list", "Errors", most=MOST_COMMENT_ERRORS, rest="step with errors"),
    ]


def _steps(steps: Sequence[Assessed]) -> list[Block]:
    if not steps:
        return []
    queueing = any(assessed.server.count for assessed in steps)
    titles = ["phase", "level", "succeeded/s", *words.QUANTILES]
    titles += ["queueing"] if queueing else []
    rows = []
    for assessed in steps:
        row = [str(assessed.step.phase), level_text(assessed.step), words.rate(assessed)]
        row += [words.quantile(assessed.latency, name) for name in words.QUANTILES]
        row += [percent(assessed.queueing, 0)] if queueing else []
        rows.append([*row, percent(assessed.success), words.state(assessed)])
    return [Table([*titles, "ok", "state"], rows, spare=("p50", "queueing"))]

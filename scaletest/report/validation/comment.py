"""What a comment in CI shows of a validation."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.evaluation import Evaluation
from scaletest.render.contents import Block, Table, Text
from scaletest.render.numbers import NOTHING, percent, plural, seconds, significant
from scaletest.report import limits, usage, words
from scaletest.report.run import Run
from scaletest.report.validation.rows import Row, rows, works

MOST_FAILURES = 10


def comment(run: Run) -> list[Block]:
    """The table of steps, what limits the run, what the nodes did, and failures."""
    result = run.result
    return [
        *_steps(result),
        *_limits(result),
        *_resources(result),
        Text([f"{law}." for law in [words.law(result)] if law], label="Law"),
        Text([f"{shares}." for shares in [words.shares(result)] if shares], label="Shares"),
        Text(
            [
                f"{plural(group.count, 'request')} {group.outcome}: {group.error or NOTHING}"
                for group in result.failures
            ],
            "list",
            most=MOST_FAILURES,
            rest="kind of failure",
        ),
    ]


def _steps(result: Evaluation) -> list[Block]:
    steps = rows(result)
    if not steps:
        return []
    quantile = words.common_quantile(result.steps)
    compares = result.plan.compares
    cells = [_cells(row, quantile, works(steps), compares) for row in steps]
    ratio = "" if compares else ", 90 % for the ratio"
    return [
        Table(list(cells[0]), [list(row.values()) for row in cells]),
        Text([f"± {words.interval(result.steps)}{ratio}."]),
    ]


def _limits(result: Evaluation) -> list[Block]:
    """What stops the run, ranked; nothing where nothing grew."""
    causes = result.causes
    if causes is None or not limits.grew(causes):
        return []
    title = f"What limits it, from {limits.doubling(causes)}"
    note = [line for line in [limits.note(causes)] if line]
    if not causes.causes:
        return [Text([f"{title}: {line}" for line in note])]
    shown = limits.rows(causes)
    measured = any(row.evidence for row in shown)
    titles = ["cause", "share", "added", "object", *(["measured"] if measured else [])]
    cells = [
        [row.label, row.share, row.added, row.object, *([row.evidence] if measured else [])]
        for row in shown
    ]
    return [
        Table(
            [*titles, "what to try"],
            [[*texts, row.remedy] for texts, row in zip(cells, shown, strict=True)],
            texts=(0, *range(3, len(titles) + 1)),
            foreign=(3,),
            title=title,
        ),
        Text(note),
    ]


def _resources(result: Evaluation) -> list[Block]:
    """What the nodes did in each step; nothing without samples."""
    titles, cells = usage.table(result)
    if not titles:
        return []
    return [
        Table(titles, cells, title="Resources of the nodes while each step was measured"),
        Text([note for note in [usage.note(result)] if note]),
    ]


def _cells(row: Row, quantile: str, figures: Sequence[str], compares: bool) -> dict[str, str]:
    """Title -> text. compares: of a run that compares numbers of workers per device."""
    step, scaled = row.step, row.scaled
    wait, run = words.quantile(step.wait, quantile), words.quantile(step.run, quantile)
    cells = {"per device": str(step.per_device)} if compares else {}
    cells |= {"workers": str(step.workers), "requests/s": words.rate(step)}
    cells |= {f"{name}/s": words.work(step, name) for name in figures}
    if not compares:
        cells["ratio"] = words.ratio(step.ratio)
    cells |= {
        "speed-up": significant(scaled.speedup.value) if scaled else NOTHING,
        "efficiency": percent(scaled.efficiency.value, 0) if scaled else NOTHING,
        f"wait {quantile}": seconds(wait.value) if wait else NOTHING,
        f"run {quantile}": seconds(run.value) if run else NOTHING,
    }
    if compares:
        cells |= {f"fair {group}s": words.fair(step, group) for group in ("worker", "device")}
        cells["memory limit"] = str(step.memory_hits)
    return {**cells, "failed": str(step.failures)}

"""A run as Markdown: verdict and table, short enough for a comment in CI. Foreign text stands in
code spans.
"""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.evaluation import Evaluation
from scaletest.model import VerdictKind
from scaletest.render.numbers import NOTHING, duration, percent, plural, seconds, significant
from scaletest.render.text import clean, code
from scaletest.report import limits, usage, words
from scaletest.report.run import Run
from scaletest.report.table import Row, rows, works

SIGNS = {
    VerdictKind.PASS: "✅",
    VerdictKind.FAIL: "❌",
    VerdictKind.INVALID: "⚠️",
    VerdictKind.RUNNING: "⏳",
}
MOST_FAILURES = 10


def comment(run: Run) -> str:
    """The whole text."""
    result = run.result
    verdict = result.verdict
    lines = [f"### {SIGNS[verdict.kind]} {verdict.kind}: {words.plain(verdict.reason)}", ""]
    if verdict.remedy:
        lines += [f"**What to do:** {words.plain(verdict.remedy)}", ""]
    lines += [
        f"{code(words.heading(result))} · {words.wanted(result)} · {duration(result.elapsed_s)}",
        "",
    ]
    found = rows(result)
    if found:
        lines += _table(found, words.common_quantile(result.steps), result.plan.compares)
        ratio = "" if result.plan.compares else ", 90 % for the ratio"
        lines += ["", f"± {words.interval(result.steps)}{ratio}.", ""]
    lines += _limits(result)
    lines += _resources(result)
    told = words.law(result)
    if told:
        lines += [f"Law: {told}.", ""]
    shared = words.shares(result)
    if shared:
        lines += [f"Shares: {shared}.", ""]
    lines += [
        f"* {one.kind}: {code(one.text)}, {words.plain(one.reason)}" for one in result.thresholds
    ]
    lines += [f"* Warning: {words.plain(line)}" for line in result.warnings]
    lines += [
        f"* {plural(group.count, 'request')} {group.outcome}: {code(group.error or NOTHING)}"
        for group in result.failures[:MOST_FAILURES]
    ]
    return "\n".join(lines).rstrip() + "\n"


def _limits(result: Evaluation) -> list[str]:
    """What stops the run, ranked; nothing where nothing grew."""
    causes = result.causes
    if causes is None or not limits.grew(causes):
        return []
    note = limits.note(causes)
    lines = [f"**What limits it**, from {words.plain(limits.doubling(causes))}:", ""]
    if causes.causes:
        shown = limits.rows(causes)
        measured = ["measured"] if any(row.evidence for row in shown) else []
        titles = ["cause", "share", "added", "object", *measured, "what to try"]
        lines += [_line(titles), _line([":--", "--:", "--:", *[":--"] * (len(titles) - 3)])]
        for row in shown:
            named = code(row.object) if row.object else ""
            evidence = [words.plain(row.evidence)] if measured else []
            lines.append(_line([row.label, row.share, row.added, named, *evidence, row.remedy]))
        lines.append("")
    return [*lines, words.plain(note), ""] if note else lines


def _resources(result: Evaluation) -> list[str]:
    """What the nodes did in each step; nothing without samples."""
    titles, rows_of = usage.table(result)
    if not titles:
        return []
    lines = [_line(titles), _line(["--:"] * len(titles))]
    lines += [_line([words.plain(cell) for cell in cells]) for cells in rows_of]
    note = usage.note(result)
    return [
        "**Resources** of the nodes while each step was measured:",
        "",
        *lines,
        "",
        *([note, ""] if note else []),
    ]


def _table(found: Sequence[Row], quantile: str, compares: bool) -> list[str]:
    """One row a step. compares: of a run that compares numbers of workers per device."""
    cells = [_cells(row, quantile, works(found), compares) for row in found]
    return [
        _line(list(cells[0])),
        _line(["--:"] * len(cells[0])),
        *(_line(list(one.values())) for one in cells),
    ]


def _cells(row: Row, quantile: str, figures: Sequence[str], compares: bool) -> dict[str, str]:
    """Title -> text."""
    step, scaled = row.step, row.scaled
    wait, run = words.quantile(step.wait, quantile), words.quantile(step.run, quantile)
    return {
        **({"per device": str(step.per_device)} if compares else {}),
        "workers": str(step.workers),
        "requests/s": words.rate(step),
        **{f"{name}/s": words.work(step, name) for name in figures},
        **({} if compares else {"ratio": words.ratio(step.ratio)}),
        "speed-up": significant(scaled.speedup.value) if scaled else NOTHING,
        "efficiency": percent(scaled.efficiency.value, 0) if scaled else NOTHING,
        f"wait {quantile}": seconds(wait.value) if wait else NOTHING,
        f"run {quantile}": seconds(run.value) if run else NOTHING,
        **(
            {f"fair {group}s": words.fair(step, group) for group in ("worker", "device")}
            if compares
            else {}
        ),
        **({"memory limit": str(step.memory_hits)} if compares else {}),
        "failed": str(step.failures),
    }


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(clean(cell) for cell in cells)} |"

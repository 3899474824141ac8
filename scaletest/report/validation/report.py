"""A validation as a report, with what a terminal and a comment in CI show, and test cases.

A terminal shows under 25 lines for 8 steps, in 80 columns. Test cases are the run, every doubling,
and every threshold.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise

from scaletest.analysis.causes import Causes
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.steps import Step
from scaletest.model import VerdictKind
from scaletest.render.contents import Block, Case, Head, Report, Table, Text, ThresholdLine
from scaletest.render.numbers import NOTHING, between, percent, plural, seconds, significant
from scaletest.render.svg import Chart
from scaletest.render.text import clean
from scaletest.report import limits, usage, words
from scaletest.report.figures import growth
from scaletest.report.validation.rows import Row, rows, sheet, works
from scaletest.report.validation.sections import facts, sections
from scaletest.validation.run_type import ValidationRun

MOST_WARNINGS = 3
MOST_ERRORS = 2
MOST_THRESHOLDS = 4
MOST_CAUSES = 3
WIDTH = 80


def summary(run: ValidationRun) -> list[Block]:
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
        Text(_thresholds(run), most=MOST_THRESHOLDS, rest="threshold"),
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


def _errors(run: ValidationRun) -> list[str]:
    return [
        f"error, {plural(group.count, 'time')}: {clean(group.error or group.outcome, 300)}"
        for group in run.result.failures
    ]


def _thresholds(run: ValidationRun) -> list[str]:
    return [
        f"threshold {words.SIGNS[threshold.kind]} {threshold.text}: {threshold.reason}"
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
    evidence_line = ": ".join(filter(None, [row.confirmed, *evidence]))
    return f"{named}, {evidence_line}" if evidence_line else named


def _cut(line: str) -> str:
    """A line that fits into the width of the table."""
    line = clean(line).replace("\n", " ")
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


MOST_FAILURES = 10


def comment(run: ValidationRun) -> list[Block]:
    """The table of steps, what limits the run, what the nodes did, and failures."""
    result = run.result
    return [
        *_steps(result),
        *_limit_lines(result),
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


def _limit_lines(result: Evaluation) -> list[Block]:
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


def cases(run: ValidationRun) -> Iterator[Case]:
    """The run, then its doublings, then its thresholds."""
    verdict = run.result.verdict
    message = f"{verdict.reason}\n{verdict.remedy}".strip()
    yield Case("verdict", verdict.kind, message, run.result.elapsed_s)
    measured = {step.workers: step for step in run.result.steps}
    for before, after in () if run.result.plan.compares else pairwise(run.result.plan.steps):
        doubling = _doubling(before, after, measured.get(before), measured.get(after), verdict.kind)
        yield _with_cause(doubling, run.result.causes) if _caused(run, before, after) else doubling
    for threshold in run.result.thresholds:
        yield Case(threshold.text, threshold.kind, threshold.reason, 0.0)


def _doubling(
    fewer: int, more: int, before: Step | None, after: Step | None, run: VerdictKind
) -> Case:
    name = f"{fewer} -> {more} workers"
    time = words.measured_s(after) if after else 0.0
    ratio = after.ratio if after else None
    if not (before and after and ratio):
        if run is VerdictKind.RUNNING:
            return Case(name, run, "it is not measured yet", time)
        return Case(name, VerdictKind.INVALID, "it was not measured", time)
    message = f"ratio {between(ratio.value, ratio.low, ratio.high)}, wanted {ratio.wanted:.2f}"
    if not (before.sound and after.sound):
        return Case(
            name, VerdictKind.INVALID, f"{message}; one of the two steps may not be judged", time
        )
    return Case(name, ratio.kind, message, time)


def _caused(run: ValidationRun, before: int, after: int) -> bool:
    """Whether the run's causes are those of this doubling."""
    causes = run.result.causes
    return causes is not None and (causes.before, causes.after) == (before, after)


def _with_cause(case: Case, causes: Causes | None) -> Case:
    """The case with what stopped the doubling, and what to try."""
    lines = [causes.sentence, causes.remedy] if causes else []
    lines += [f"{row.label}, {row.evidence}" for row in limits.rows(causes) if row.evidence]
    return case._replace(message="\n".join([case.message, *filter(None, lines)]))


def validation_report(run: ValidationRun) -> Report:
    """What every format shows of a validation."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: sheet(run),
        cases=lambda: list(cases(run)),
        data=lambda: {**run.result.to_dict(), "folder": run.folder},
        picture=lambda: _picture(run),
    )


def _picture(run: ValidationRun) -> list[Chart]:
    """The scaling chart."""
    figure = growth.throughput(run.result)
    return [figure.wide] if figure else []


def _head(run: ValidationRun) -> Head:
    result = run.result
    return Head(
        title=words.heading(result),
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=("closed load", words.wanted(result)),
        machine=words.machine(run.environment),
        began=str(run.environment.get("began", "")),
        elapsed_s=result.elapsed_s,
        facts=facts(run),
        warnings=words.warnings(result.verdict, result.interrupted, result.warnings),
        thresholds=[
            ThresholdLine(threshold.kind, threshold.text, threshold.reason)
            for threshold in result.thresholds
        ],
        command_line=words.command_line(run.environment),
        following=_following(run),
        environment=run.environment,
        plan=result.plan.to_dict(),
    )


def _following(run: ValidationRun) -> str:
    """The command to try next."""
    if run.result.interrupted and run.result.verdict.kind is not VerdictKind.RUNNING:
        return f"scaletest validate --local --resume {shlex.quote(run.name)}"
    return f"scaletest report {shlex.quote(run.name)} -o report.html"

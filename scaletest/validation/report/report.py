"""A validation as a report: what each form shows of it.

A terminal and a page have modules of their own; a comment in CI and test cases are made here.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from scaletest.model import VerdictKind
from scaletest.render import contents
from scaletest.render.blocks import Block, Text
from scaletest.render.chart import Chart
from scaletest.render.contents import (
    Case,
    Head,
    Report,
)
from scaletest.render.numbers import (
    NOTHING,
    format_duration,
    format_percent,
    format_significant,
    plural,
    with_interval,
)
from scaletest.report import failures
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step
from scaletest.validation.plan import Plan
from scaletest.validation.report import resources
from scaletest.validation.report.causes import (
    causes_note,
    causes_table,
    doubling_text,
    evidence_text,
    known_limits,
)
from scaletest.validation.report.page import sections
from scaletest.validation.report.parts import ReportParts, as_sentence, spread_texts
from scaletest.validation.report.rows import rate_text, sheet
from scaletest.validation.report.summary import summary
from scaletest.validation.report.words import wanted_text
from scaletest.validation.run_type import ValidationRun

MOST_FAILURES = 10


def validation_report(run: ValidationRun) -> Report:
    """Return what every format shows of a validation."""
    parts = ReportParts(run)

    def picture() -> list[Chart]:
        chart = parts.scaling_chart
        return [chart.wide] if chart else []

    result, name = run.result, shlex.quote(run.name)
    following = f"scaletest report {name} -o report.html"
    if result.interrupted and result.verdict.kind is not VerdictKind.RUNNING:
        following = f"scaletest validate --local --resume {name}"
    head = Head(
        title=f"validate {result.plan.workload}",
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=("closed load", wanted_text(result)),
        elapsed_s=result.elapsed_s,
        facts=_facts(parts),
        warnings=parts.warnings,
        thresholds=result.thresholds,
        following=following,
        environment=run.environment,
        plan=result.plan.to_dict(),
        usual=contents.usual_settings(Plan),
        alarming=("failed",) if any(step.failures for step in result.steps) else (),
    )
    return Report(
        head=head,
        summary=lambda: summary(parts),
        comment=lambda: comment(parts),
        sections=lambda: sections(parts),
        sheet=lambda: sheet(parts.rows),
        cases=lambda: list(cases(result)),
        data=lambda: {**result.to_dict(), "folder": run.folder},
        picture=picture,
    )


def _facts(parts: ReportParts) -> list[tuple[str, str]]:
    """Return the few numbers that stand beside the verdict."""
    result = parts.result
    rows = [row for row in parts.rows if row.scaled]
    pairs = []
    if rows:
        best = max((row.step for row in rows), key=lambda step: step.throughput.per_s)
        workers = plural(best.workers, "worker")
        pairs.append((f"requests/s at most, with {workers}", rate_text(best)))
        pairs += [(f"{name}/s there", rate_text(best, name)) for name in best.work]
    last = rows[-1].scaled if len(rows) > 1 else None
    if result.sharing and result.sharing.best:
        pairs.append(("workers on each device are best", str(result.sharing.best)))
    elif last:
        workers = plural(last.workers, "worker")
        pairs.append((f"speed-up with {workers}", f"{format_significant(last.speedup.value)}x"))
        pairs.append(("efficiency there", format_percent(last.efficiency.value, 0)))
    done = sum(step.run.count for step in result.steps)
    failed = sum(step.failures for step in result.steps)
    pairs += [("requests done", str(done)), ("failed", str(failed))]
    # until the last step only, and pages show how long the run takes by now
    if result.verdict.kind is not VerdictKind.RUNNING:
        pairs.append(("duration", format_duration(result.elapsed_s)))
    return pairs


def cases(result: Evaluation) -> Iterator[Case]:
    """Yield the doublings; that of the run's causes tells them."""
    levels: Sequence[int] = () if result.plan.compares else result.plan.steps
    steps = {step.workers: step for step in result.steps}
    causes = result.causes
    for before, after in pairwise(levels):
        case = _doubling_case(before, after, steps, result.verdict.kind)
        if causes and (causes.before, causes.after) == (before, after):
            evidence = [
                f"{each.label}, {evidence_text(each)}" for each in causes.causes if each.evidence
            ]
            lines = [causes.sentence, causes.remedy, *evidence]
            case = case._replace(message="\n".join([case.message, *filter(None, lines)]))
        if after in steps:
            spread = [
                f"{text.label}: {' '.join(text.lines)}" for text in spread_texts([steps[after]])
            ]
            case = case._replace(output="\n".join(spread))
        yield case


def _doubling_case(fewer: int, more: int, steps: Mapping[int, Step], run: VerdictKind) -> Case:
    name, before, after = f"{fewer} -> {more} workers", steps.get(fewer), steps.get(more)
    time_s = after.measured_s if after else 0.0
    ratio = after.ratio if after else None
    if not (before and after and ratio):
        if run is VerdictKind.RUNNING:
            return Case(name, run, "it is not measured yet", time_s)
        return Case(name, VerdictKind.INVALID, "it was not measured", time_s)
    message = (
        f"ratio {with_interval(ratio.value, ratio.low, ratio.high)}, wanted {ratio.wanted:.2f}"
    )
    if before.sound and after.sound:
        return Case(name, ratio.kind, message, time_s)
    message = f"{message}; one of the two steps may not be judged"
    return Case(name, VerdictKind.INVALID, message, time_s)


def comment(parts: ReportParts) -> list[Block]:
    """Return the table of steps, what limits the run, what the nodes did, and failures."""
    result = parts.result
    # what stops the run, ranked; nothing where nothing grew
    causes, limits = known_limits(result), list[Block]()
    if causes:
        heading = f"What limits it, from {doubling_text(causes)}"
        note = causes_note(causes)
        if causes.causes:
            limits.append(causes_table(causes, on_page=False, title=heading, note=note))
        else:
            limits.append(Text([note and f"{heading}: {note}"]))
    title = "Resources of the nodes while each step was measured"
    kinds = [
        f"{plural(group.count, 'request')} {group.outcome}{failures.spread(group)}:"
        f" {group.error or NOTHING}"
        for group in result.failures
    ]
    return [
        parts.table(("fair",)),
        Text([as_sentence(parts.intervals)]),
        *limits,
        resources.table(result, title=title, note=resources.note(result)),
        Text([as_sentence(parts.law)], label="Law"),
        Text([as_sentence(parts.best_share)], label="Shares"),
        *parts.spread,
        Text(kinds, "list", most=MOST_FAILURES, rest="failure group"),
    ]

"""A validation as a report: what each form shows of it.

A terminal and a page have modules of their own; a comment in CI and test cases are made here.
"""

import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise

from scaletest.model import VerdictKind
from scaletest.render.blocks import Block, Pairs, Text
from scaletest.render.contents import Case, Head, Report
from scaletest.render.numbers import (
    NOTHING,
    format_duration,
    format_percent,
    format_significant,
    plural,
    with_interval,
)
from scaletest.report import failures
from scaletest.report.words import run_warnings
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.report.causes import (
    causes_note,
    causes_table,
    doubling_text,
    evidence_text,
)
from scaletest.validation.report.law import law_sentence
from scaletest.validation.report.page import page_sections
from scaletest.validation.report.parts import ReportParts, as_sentence, spread_texts
from scaletest.validation.report.resources import resources_line
from scaletest.validation.report.rows import rate_text, sheet_of_rows
from scaletest.validation.report.summary import terminal_summary
from scaletest.validation.report.words import (
    best_share_text,
    gain_texts,
    intervals_text,
    statement_text,
    wanted_text,
)
from scaletest.validation.run_type import ValidationRun

MOST_FAILURES = 10


def validation_report(run: ValidationRun) -> Report:
    """Return what every format shows of a validation."""
    parts = ReportParts(run)
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
        statement=statement_text(result),
        gains=gain_texts(result),
        facts=head_facts(parts),
        warnings=run_warnings(result.verdict, result.interrupted, result.warnings),
        thresholds=result.thresholds,
        following=following,
        environment=run.environment,
        plan=result.plan.to_dict(),
        alarming=("failed",) if any(step.failures for step in result.steps) else (),
    )
    return Report(
        head=head,
        summary=lambda: terminal_summary(parts),
        comment=lambda: comment_blocks(parts),
        sections=lambda: page_sections(parts),
        sheet=lambda: sheet_of_rows(parts.rows),
        cases=lambda: list(doubling_cases(result)),
        data=lambda: {**result.to_dict(), "folder": run.folder},
        picture=lambda: [parts.scaling_chart.wide] if parts.scaling_chart else [],
    )


def head_facts(parts: ReportParts) -> Pairs:
    """Return the few numbers that stand beside the verdict, each behind its label."""
    result = parts.result
    facts = []
    scaled_rows = [row for row in parts.rows if row.scaled]
    if scaled_rows:
        best = max((row.step for row in scaled_rows), key=lambda step: step.throughput.per_s)
        workers = plural(best.workers, "worker")
        facts.append((f"requests/s at most, with {workers}", rate_text(best)))
        facts += [(f"{figure}/s there", rate_text(best, figure)) for figure in best.work]
    last = scaled_rows[-1].scaled if len(scaled_rows) > 1 else None
    if result.sharing and result.sharing.best:
        facts.append(("workers on each device are best", str(result.sharing.best)))
    elif last:
        workers = plural(last.workers, "worker")
        facts.append((f"speed-up with {workers}", f"{format_significant(last.speedup.value)}x"))
        facts.append(("efficiency there", format_percent(last.efficiency.value, 0)))
    facts.append(("requests done", str(sum(step.run.count for step in result.steps))))
    facts.append(("failed", str(sum(step.failures for step in result.steps))))
    # while it runs this would be the time until the last step, and pages show that until now
    if result.verdict.kind is not VerdictKind.RUNNING:
        facts.append(("duration", format_duration(result.elapsed_s)))
    return facts


def doubling_cases(result: Evaluation) -> Iterator[Case]:
    """Yield a test case for each doubling; that of the run's causes tells them."""
    levels: Sequence[int] = () if result.plan.compares else result.plan.steps
    steps = {step.workers: step for step in result.steps}
    causes = result.causes
    for fewer, more in pairwise(levels):
        before, after = steps.get(fewer), steps.get(more)
        ratio = after.ratio if after else None
        kind, lines = VerdictKind.INVALID, ["it was not measured"]
        if before and after and ratio:
            interval = with_interval(ratio.value, ratio.low, ratio.high)
            lines = [f"ratio {interval}, wanted {ratio.wanted:.2f}"]
            if before.sound and after.sound:
                kind = ratio.kind
            else:
                lines[0] += "; one of the two steps may not be judged"
        elif result.verdict.kind is VerdictKind.RUNNING:
            kind, lines = VerdictKind.RUNNING, ["it is not measured yet"]
        if causes and (causes.before, causes.after) == (fewer, more):
            lines += [causes.sentence, causes.remedy]
            for cause in causes.causes:
                if cause.evidence:
                    lines.append(f"{cause.label}, {evidence_text(cause)}")
        spread = spread_texts([after] if after else [])
        yield Case(
            f"{fewer} -> {more} workers",
            kind,
            "\n".join(filter(None, lines)),
            after.measured_s if after else 0.0,
            output="\n".join(f"{text.label}: {' '.join(text.lines)}" for text in spread),
        )


def comment_blocks(parts: ReportParts) -> list[Block]:
    """Return the table of steps, what limits the run, what the nodes did, and failures."""
    result = parts.result
    # what stops the run, ranked; nothing where nothing grew
    causes = result.limits
    limits: list[Block] = []
    if causes:
        heading = f"What limits it, from {doubling_text(causes)}"
        note = causes_note(causes)
        if causes.causes:
            limits.append(causes_table(causes, on_page=False, title=heading, note=note))
        else:
            limits.append(Text([note and f"{heading}: {note}"]))
    failed = [
        f"{plural(group.count, 'request')} {group.outcome}{failures.nodes_phrase(group)}:"
        f" {group.error or NOTHING}"
        for group in result.failures
    ]
    return [
        parts.table(()),
        Text([as_sentence(intervals_text(result.steps))]),
        *limits,
        Text([as_sentence(resources_line(result))], label="Resources"),
        Text([as_sentence(law_sentence(result))], label="Scaling"),
        Text([as_sentence(best_share_text(result))], label="Shares"),
        *spread_texts(result.steps),
        Text(failed, "list", most=MOST_FAILURES, rest="failure group"),
    ]

"""A validation as a report."""

from __future__ import annotations

import shlex

from scaletest.model import VerdictKind
from scaletest.render.contents import Head, Report, ThresholdLine
from scaletest.report import png, words
from scaletest.report.run import Run
from scaletest.report.validation.cases import cases
from scaletest.report.validation.comment import comment
from scaletest.report.validation.sections import facts, sections
from scaletest.report.validation.sheet import sheet
from scaletest.report.validation.summary import summary


def validation_report(run: Run) -> Report:
    """What every format shows of a validation."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: sheet(run),
        cases=lambda: list(cases(run)),
        data=lambda: {**run.result.to_dict(), "folder": run.folder},
        picture=lambda path: png.save(run.result, path),
    )


def _head(run: Run) -> Head:
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


def _following(run: Run) -> str:
    """The command to try next."""
    if run.result.interrupted and run.result.verdict.kind is not VerdictKind.RUNNING:
        return f"scaletest validate --local --resume {shlex.quote(run.name)}"
    return f"scaletest report {shlex.quote(run.name)} -o report.html"

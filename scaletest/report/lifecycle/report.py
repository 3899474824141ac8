"""A lifecycle run as a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.model import VerdictKind
from scaletest.render.contents import Case, Head, Report, ThresholdLine
from scaletest.report import words
from scaletest.report.lifecycle import png
from scaletest.report.lifecycle.figures import GENERAL
from scaletest.report.lifecycle.sections import facts, sections
from scaletest.report.lifecycle.sheet import sheet
from scaletest.report.lifecycle.summary import booked, comment, summary


@dataclass(frozen=True)
class LifecycleRun:
    """A lifecycle run as reports see it.

    project: of Run:ai; "" for the one that the namespace names. times: which clock's times the
    sheet holds, "watch" or "api".
    """

    result: LifecycleResult
    title: str
    folder: str
    name: str = ""
    project: str = ""
    times: str = "watch"
    plan: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


def lifecycle_report(run: LifecycleRun) -> Report:
    """What every format shows of a lifecycle run."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run.result),
        comment=lambda: comment(run.result),
        sections=lambda: sections(run.result),
        sheet=lambda: sheet(run.result, run.project, run.times),
        cases=lambda: _cases(run),
        data=lambda: {**run.result.to_dict(), "folder": run.folder},
        picture=lambda path: png.save(run.result, GENERAL, path),
    )


def _head(run: LifecycleRun) -> Head:
    return Head(
        title=run.title,
        verdict=run.result.verdict,
        folder=run.folder,
        name=run.name,
        machine=words.machine(run.environment),
        began=str(run.environment.get("began", "")),
        facts=facts(run.result),
        thresholds=[
            ThresholdLine(threshold.kind, threshold.text, threshold.reason)
            for threshold in run.result.thresholds
        ],
        command_line=words.command_line(run.environment),
        environment=run.environment,
        plan={key: setting for key, setting in run.plan.items() if setting},
    )


def _cases(run: LifecycleRun) -> list[Case]:
    """The verdict, the books, and the thresholds."""
    verdict, books = run.result.verdict, run.result.books
    balanced = VerdictKind.PASS if books.balanced else VerdictKind.INVALID
    return [
        Case("verdict", verdict.kind, f"{verdict.reason}\n{verdict.remedy}".strip(), 0.0),
        Case("books", balanced, booked(run.result), 0.0),
        *(
            Case(threshold.text, threshold.kind, threshold.reason, 0.0)
            for threshold in run.result.thresholds
        ),
    ]

"""A lifecycle run as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.model import VerdictKind
from scaletest.render.contents import Block, Case, Head, Section, Sheet, ThresholdLine
from scaletest.report import words
from scaletest.report.lifecycle.sections import facts, sections
from scaletest.report.lifecycle.sheet import sheet
from scaletest.report.lifecycle.summary import booked, comment, summary


@dataclass(frozen=True)
class LifecycleReport:
    """What every format shows of a lifecycle run; `scaletest.render.contents.Report`.

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

    @cached_property
    def head(self) -> Head:
        """What every report begins and ends with."""
        result = self.result
        return Head(
            title=self.title,
            verdict=result.verdict,
            folder=self.folder,
            name=self.name,
            machine=words.machine(self.environment),
            began=str(self.environment.get("began", "")),
            facts=facts(result),
            thresholds=[
                ThresholdLine(threshold.kind, threshold.text, threshold.reason)
                for threshold in result.thresholds
            ],
            command_line=words.command_line(self.environment),
            environment=words.conditions(self.environment),
            plan={key: setting for key, setting in self.plan.items() if setting},
        )

    def summary(self) -> Sequence[Block]:
        """What a terminal shows between heading and verdict."""
        return summary(self.result)

    def comment(self) -> Sequence[Block]:
        """What a comment in CI shows below the verdict."""
        return comment(self.result)

    def sections(self) -> Sequence[Section]:
        """What a page shows."""
        return sections(self.result)

    def sheet(self) -> Sheet:
        """A row for each workload."""
        return sheet(self.result, self.project, self.times)

    def cases(self) -> Sequence[Case]:
        """The verdict, the books, and the thresholds."""
        verdict, books = self.result.verdict, self.result.books
        balanced = VerdictKind.PASS if books.balanced else VerdictKind.INVALID
        return [
            Case("verdict", verdict.kind, f"{verdict.reason}\n{verdict.remedy}".strip(), 0.0),
            Case("books", balanced, booked(self.result), 0.0),
            *(
                Case(threshold.text, threshold.kind, threshold.reason, 0.0)
                for threshold in self.result.thresholds
            ),
        ]

    def data(self) -> Mapping[str, Any]:
        """The result, and where it lies."""
        return {**self.result.to_dict(), "folder": self.folder}

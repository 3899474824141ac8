"""A validation as a report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scaletest.model import VerdictKind
from scaletest.render.contents import Block, Case, Head, Section, Sheet, ThresholdLine
from scaletest.report import words
from scaletest.report.run import Run
from scaletest.report.validation.cases import cases
from scaletest.report.validation.comment import comment
from scaletest.report.validation.sections import facts, sections
from scaletest.report.validation.sheet import sheet
from scaletest.report.validation.summary import summary


@dataclass(frozen=True)
class ValidationReport:
    """What every format shows of a validation; `scaletest.render.contents.Report`."""

    run: Run

    @cached_property
    def head(self) -> Head:
        """What every report begins and ends with."""
        run, result = self.run, self.run.result
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
            warnings=result.warnings,
            thresholds=[
                ThresholdLine(threshold.kind, threshold.text, threshold.reason)
                for threshold in result.thresholds
            ],
            command_line=words.command_line(run.environment),
            following=_following(run),
            environment=words.conditions(run.environment),
            plan=result.plan.to_dict(),
        )

    def summary(self) -> Sequence[Block]:
        """What a terminal shows between heading and verdict."""
        return summary(self.run)

    def comment(self) -> Sequence[Block]:
        """What a comment in CI shows below the verdict."""
        return comment(self.run)

    def sections(self) -> Sequence[Section]:
        """What a page shows."""
        return sections(self.run)

    def sheet(self) -> Sheet:
        """A row for each step."""
        return sheet(self.run)

    def cases(self) -> Sequence[Case]:
        """The run, its doublings and its thresholds."""
        return list(cases(self.run))

    def data(self) -> Mapping[str, Any]:
        """The result, and where it lies."""
        return {**self.run.result.to_dict(), "folder": self.run.folder}


def _following(run: Run) -> str:
    """The command to try next."""
    if run.result.interrupted and run.result.verdict.kind is not VerdictKind.RUNNING:
        return f"scaletest validate --local --resume {shlex.quote(run.name)}"
    return f"scaletest report {shlex.quote(run.name)} -o report.html"

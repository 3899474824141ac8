"""A run of benchmarks as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scaletest.model import VerdictKind
from scaletest.render.contents import Block, Case, Head, Section, Sheet, ThresholdLine
from scaletest.report import words
from scaletest.report.benchmark.sections import facts, sections, took_s
from scaletest.report.benchmark.sheet import sheet
from scaletest.report.benchmark.summary import comment, failure_lines, summary
from scaletest.report.benchmarks import BenchmarkRun


@dataclass(frozen=True)
class BenchmarkReport:
    """What every format shows of a run of benchmarks; `scaletest.render.contents.Report`."""

    run: BenchmarkRun

    @cached_property
    def head(self) -> Head:
        """What every report begins and ends with."""
        run, plan = self.run, self.run.stored.plan
        environment = run.stored.environment
        return Head(
            title=plan.name,
            verdict=run.verdict,
            folder=run.folder,
            name=run.name,
            machine=words.machine(environment),
            began=str(environment.get("began", "")),
            elapsed_s=took_s(run),
            facts=facts(run),
            thresholds=[
                ThresholdLine(threshold.kind, threshold.text, threshold.reason)
                for threshold in run.thresholds
            ],
            command_line=words.command_line(environment),
            environment=words.conditions(environment),
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
        """A row for each benchmark."""
        return sheet(self.run)

    def cases(self) -> Sequence[Case]:
        """The verdict, the thresholds, and each benchmark."""
        run = self.run
        ended = [
            Case(
                result.name,
                VerdictKind.PASS if result.ok else VerdictKind.FAIL,
                "\n".join(failure_lines(result)) if not result.ok else "",
                max(0.0, result.finished_s - result.started_s),
            )
            for _, result in run.counted
        ]
        return [
            Case("verdict", run.verdict.kind, run.verdict.reason, 0.0),
            *(
                Case(threshold.text, threshold.kind, threshold.reason, 0.0)
                for threshold in run.thresholds
            ),
            *ended,
        ]

    def data(self) -> Mapping[str, Any]:
        """Everything that was measured."""
        return self.run.to_dict()

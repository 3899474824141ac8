"""A saturation run as a report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scaletest.render.contents import Block, Case, Head, Section, Sheet
from scaletest.report import words as common
from scaletest.report.saturation import words
from scaletest.report.saturation.cases import cases
from scaletest.report.saturation.run import SaturationRun
from scaletest.report.saturation.sections import facts, sections
from scaletest.report.saturation.sheet import sheet
from scaletest.report.saturation.summary import comment, summary


@dataclass(frozen=True)
class SaturationReport:
    """What every format shows of a saturation run; `scaletest.render.contents.Report`."""

    run: SaturationRun

    @cached_property
    def head(self) -> Head:
        """What every report begins and ends with."""
        run, result = self.run, self.run.result
        name = shlex.quote(run.name)
        page = f"scaletest report {name} -o report.html"
        return Head(
            title=words.heading(result),
            verdict=result.verdict,
            folder=run.folder,
            name=run.name,
            conditions=(words.wanted(result),),
            machine=common.machine(run.environment),
            began=str(run.environment.get("began", "")),
            elapsed_s=result.elapsed_s,
            facts=facts(run),
            warnings=result.warnings,
            command_line=common.command_line(run.environment),
            following=f"scaletest size --run {name}" if result.point else page,
            environment=common.conditions(run.environment),
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
        return sheet(self.run.result)

    def cases(self) -> Sequence[Case]:
        """The run and its steps."""
        return list(cases(self.run))

    def data(self) -> Mapping[str, Any]:
        """The result, the original tool's queries, and what else was on record."""
        run = self.run
        extra = {"extra": run.extra} if run.extra else {}
        return {
            "queries": [answer.to_dict() for answer in words.queries(run)],
            **run.result.to_dict(),
            "pods": [times.to_dict() for times in words.pods(run)],
            "folder": run.folder,
            **extra,
        }

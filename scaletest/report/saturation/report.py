"""A saturation run as a report."""

from __future__ import annotations

import shlex
from typing import Any

from scaletest.render.contents import Head, Report
from scaletest.report import words as common
from scaletest.report.saturation import words
from scaletest.report.saturation.cases import cases
from scaletest.report.saturation.run import SaturationRun
from scaletest.report.saturation.sections import facts, sections
from scaletest.report.saturation.sheet import sheet
from scaletest.report.saturation.summary import comment, summary


def saturation_report(run: SaturationRun) -> Report:
    """What every format shows of a saturation run."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: sheet(run.result),
        cases=lambda: list(cases(run)),
        data=lambda: _data(run),
    )


def _head(run: SaturationRun) -> Head:
    result = run.result
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
        warnings=common.warnings(result.verdict, result.interrupted, result.warnings),
        command_line=common.command_line(run.environment),
        following=f"scaletest size --run {name}" if result.point else page,
        environment=run.environment,
        plan=result.plan.to_dict(),
    )


def _data(run: SaturationRun) -> dict[str, Any]:
    """The result, the original tool's queries, and what else was on record."""
    extra = {"extra": run.extra} if run.extra else {}
    return {
        "queries": [answer.to_dict() for answer in words.queries(run)],
        **run.result.to_dict(),
        "pods": [times.to_dict() for times in words.pods(run)],
        "folder": run.folder,
        **extra,
    }

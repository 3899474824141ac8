"""A validation as a report: what each form shows of it."""

import shlex

from scaletest.model import VerdictKind
from scaletest.render import contents
from scaletest.render.chart import Chart
from scaletest.render.contents import (
    Head,
    Report,
)
from scaletest.render.numbers import (
    duration,
    percent,
    plural,
    significant,
)
from scaletest.validation.plan import Plan
from scaletest.validation.report.cases import cases
from scaletest.validation.report.comment import comment
from scaletest.validation.report.page import sections
from scaletest.validation.report.parts import ReportParts
from scaletest.validation.report.rows import rate_text, sheet
from scaletest.validation.report.summary import summary
from scaletest.validation.report.words import wanted_text
from scaletest.validation.run_type import ValidationRun


def validation_report(run: ValidationRun) -> Report:
    """Return what every format shows of a validation."""
    parts = ReportParts(run)

    def picture() -> list[Chart]:
        chart = parts.scaling_chart
        return [chart.wide] if chart else []

    return Report(
        head=_head(parts),
        summary=lambda: summary(parts),
        comment=lambda: comment(parts),
        sections=lambda: sections(parts),
        sheet=lambda: sheet(parts.rows),
        cases=lambda: list(cases(run.result)),
        data=lambda: {**run.result.to_dict(), "folder": run.folder},
        picture=picture,
    )


def _head(parts: ReportParts) -> Head:
    """Return the verdict, with the few numbers that stand beside it."""
    run = parts.run
    result, name = run.result, shlex.quote(run.name)
    failed = any(step.failures for step in result.steps)
    following = f"scaletest report {name} -o report.html"
    if result.interrupted and result.verdict.kind is not VerdictKind.RUNNING:
        following = f"scaletest validate --local --resume {name}"
    return Head(
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
        alarming=("failed",) if failed else (),
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
        pairs.append((f"speed-up with {workers}", f"{significant(last.speedup.value)}x"))
        pairs.append(("efficiency there", percent(last.efficiency.value, 0)))
    done = sum(step.run.count for step in result.steps)
    failed = sum(step.failures for step in result.steps)
    pairs += [("requests done", str(done)), ("failed", str(failed))]
    # until the last step only, and pages show how long the run takes by now
    if result.verdict.kind is not VerdictKind.RUNNING:
        pairs.append(("duration", duration(result.elapsed_s)))
    return pairs

"""A run of benchmarks as a report."""

from __future__ import annotations

from scaletest.analysis.benchmark_run import BenchmarkRun
from scaletest.model import VerdictKind
from scaletest.render.contents import Case, Head, Report, ThresholdLine
from scaletest.report import words
from scaletest.report.benchmark.sections import facts, sections, took_s
from scaletest.report.benchmark.sheet import sheet
from scaletest.report.benchmark.summary import comment, failure_lines, summary


def benchmark_report(run: BenchmarkRun) -> Report:
    """What every format shows of a run of benchmarks."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run),
        comment=lambda: comment(run),
        sections=lambda: sections(run),
        sheet=lambda: sheet(run),
        cases=lambda: _cases(run),
        data=run.to_dict,
    )


def _head(run: BenchmarkRun) -> Head:
    environment = run.environment
    return Head(
        title=run.plan.name,
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
        environment=environment,
    )


def _cases(run: BenchmarkRun) -> list[Case]:
    """The verdict, the thresholds, and each benchmark."""
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

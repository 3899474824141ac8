"""A run of benchmarks as a report, its benchmarks for programs, and test cases."""

from __future__ import annotations

from typing import Any

from scaletest.analysis.benchmark_run import BenchmarkRun
from scaletest.kinds.fields import as_yaml
from scaletest.model import VerdictKind
from scaletest.render.contents import Case, Head, Report, Sheet, ThresholdLine
from scaletest.render.text import cell
from scaletest.report import words
from scaletest.report.benchmark.sections import facts, sections, took_s
from scaletest.report.benchmark.summary import comment, failure_lines, summary


def sheet(run: BenchmarkRun) -> Sheet:
    """One row a benchmark; new columns come at the end.

    KEY is permutation.KEY where it is taken.
    """
    keys = list(dict.fromkeys(key for row in run.rows for key in row.values))
    fixed = [
        "name",
        "kind",
        "permutation",
        "repetition",
        "phase",
        "failure",
        "started_s",
        "finished_s",
    ]
    net = ["interface", "family", "mtu"]
    numbers = [headline.name for headline in run.headlines]
    titles = [
        f"permutation.{key}" if key in (*fixed, *net, *numbers) else cell(key) for key in keys
    ]
    rows = []
    for benchmark, ended in run.counted:
        values = run.rows[benchmark.permutation].values
        row: list[Any] = [
            benchmark.name,
            benchmark.kind.name,
            benchmark.permutation,
            benchmark.repetition,
            ended.phase,
            ended.failure,
        ]
        row += [
            ended.started_s,
            ended.finished_s,
            *(ended.network.get(name, "") for name in net),
        ]
        row += [as_yaml(values.get(key, "")) for key in keys]
        row += [ended.headlines.get(headline.name, "") for headline in run.headlines]
        rows.append(row)
    return Sheet([*fixed, *net, *titles, *numbers], rows, line_end="\n")


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
            "\n".join([result.message, *failure_lines(result)[1:]]),
            max(0.0, result.finished_s - result.started_s),
            group=benchmark.kind.name,
            problem=str(result.failure),
        )
        for benchmark, result in run.counted
    ]
    return [
        Case("verdict", run.verdict.kind, run.verdict.reason, 0.0),
        *(
            Case(threshold.text, threshold.kind, threshold.reason, 0.0)
            for threshold in run.thresholds
        ),
        *ended,
    ]

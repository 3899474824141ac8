"""A validation that load tools measured, as a report."""

import itertools
import math
import shlex
from collections.abc import Callable, Iterator, Mapping

from scaletest.model import VerdictKind
from scaletest.render import contents
from scaletest.render.blocks import Block, Figure, Pairs, Table, Text
from scaletest.render.contents import Case, Head, Report, Sheet, Value, column_at
from scaletest.render.numbers import (
    NOTHING,
    format_percent,
    format_seconds,
    format_significant,
    with_interval,
)
from scaletest.stats.repetitions import mean_estimate
from scaletest.validation.imported.judging import ImportedEvaluation, ImportedStep, throughput_of
from scaletest.validation.imported.plan import UNITS
from scaletest.validation.imported.run_type import ImportedRun
from scaletest.validation.report.law import describe_law
from scaletest.validation.report.throughput_chart import (
    MeasuredPoint,
    draw_scaling,
    explain_scaling,
)

COLUMNS: Mapping[str, Callable[[ImportedStep], Value]] = {
    "workers": column_at("workers"),
    "throughput_per_s": column_at("throughput.value"),
    "throughput_low": column_at("throughput.low"),
    "throughput_high": column_at("throughput.high"),
    "repeats": column_at("repeats"),
    "ratio": column_at("ratio.value"),
    "ratio_low": column_at("ratio.low"),
    "ratio_high": column_at("ratio.high"),
    "ratio_wanted": column_at("ratio.wanted"),
    "speedup": column_at("scaled.speedup.value"),
    "efficiency": column_at("scaled.efficiency.value"),
    "price_per_million": column_at("price_per_million"),
}

# Those of a table, by the tools' own names and the statistic.
LATENCIES = ("ttft.p99", "tpot.mean", "itl.mean")


def imported_report(run: ImportedRun) -> Report:
    """Return what every format shows of it."""
    result, plan = run.result, run.result.plan
    head = Head(
        title=f"judge {plan.workload}",
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=(f"at least {plan.scale:.2f}x wanted per doubling",) if plan.scale else (),
        facts=_facts(result),
        warnings=result.warnings,
        thresholds=result.thresholds,
        following=f"scaletest report {shlex.quote(run.name)} -o report.html",
        environment=run.environment,
        plan=plan.to_dict(),
    )
    steps, law = _steps_table(result), _law_text(result)
    comment: list[Block | None] = [steps, Text([law], label="scaling")]
    return Report(
        head=head,
        summary=lambda: [*comment, Text(result.warnings, "warning", label="warning")],
        comment=lambda: comment,
        sections=lambda: contents.make_page(
            {
                "How far it scales": [Text([law], "strong"), _chart(result)],
                "Steps": [steps],
                "Runs": [_runs_table(result)],
            }
        ),
        sheet=lambda: Sheet.of_columns(COLUMNS, result.steps, digits=contents.CLOCK_DIGITS),
        cases=lambda: list(_doubling_cases(result)),
        data=lambda: {**result.to_dict(), "folder": run.folder},
    )


def _facts(result: ImportedEvaluation) -> Pairs:
    """Return the few numbers that stand beside the verdict, each behind its label."""
    if not result.steps:
        return ()
    axis, unit = result.plan.axis, UNITS[result.plan.measure]
    last = result.steps[-1]
    fastest = max(result.steps, key=lambda step: step.throughput.value)
    return (
        (f"{unit} at most, with {fastest.workers} {axis}", _rate_text(fastest)),
        (f"speed-up with {last.workers}", f"{last.scaled.speedup.value:.2f}x"),
        ("efficiency there", format_percent(last.scaled.efficiency.value, 0)),
    )


def _doubling_cases(result: ImportedEvaluation) -> Iterator[Case]:
    """Yield a test case for each doubling."""
    for before, step in itertools.pairwise(result.steps):
        kind = step.ratio.kind if step.ratio else VerdictKind.INVALID
        message = f"ratio {_ratio_text(step)}, wanted {result.plan.scale:.2f}"
        yield Case(f"{before.workers} -> {step.workers} {result.plan.axis}", kind, message)


def _rate_text(step: ImportedStep) -> str:
    rate = step.throughput
    if not math.isfinite(rate.high):
        return format_significant(rate.value, 4)
    return with_interval(rate.value, rate.low, rate.high)


def _ratio_text(step: ImportedStep) -> str:
    """Return the ratio with its interval, where it has one; n/a without throughput."""
    if step.ratio is None:
        return NOTHING
    if not math.isfinite(step.ratio.high):
        return f"{step.ratio.value:.2f} (no interval)"
    return with_interval(step.ratio.value, step.ratio.low, step.ratio.high)


def _steps_table(result: ImportedEvaluation) -> Table:
    """Return a row for each number of replicas; latencies by the tool's own names."""
    plan = result.plan
    rows = []
    for step in result.steps:
        row = {
            plan.axis: str(step.workers),
            "runs": str(step.repeats),
            UNITS[plan.measure]: _rate_text(step),
            "for each": format_significant(step.throughput.value / step.workers, 4),
            "ratio": _ratio_text(step),
            "efficiency": format_percent(step.scaled.efficiency.value, 0),
            "per million tokens": "",
        }
        if step.price_per_million:
            row["per million tokens"] = format_significant(step.price_per_million)
        for name in LATENCIES:
            known = [run.latencies[name] for run in step.results if name in run.latencies]
            row[name] = format_seconds(mean_estimate(known).value if known else None)
        rows.append(row)
    if rows:
        rows[0]["ratio"] = ""  # the first step has none to compare with
    return Table.of_rows(
        rows,
        blanks=("", NOTHING),
        note=f"Brackets: 95 % intervals {plan.intervals}, of ratios the 90 % one on which the"
        f" verdict rests. {plan.latency_names}",
    )


def _runs_table(result: ImportedEvaluation) -> Table:
    rows = [
        {
            result.plan.axis: str(step.workers),
            "file": run.file,
            "tool": f"{run.tool} {run.version}".strip(),
            UNITS[result.plan.measure]: format_significant(
                throughput_of(run, result.plan.measure), 4
            ),
            "failed": "" if run.errors is None else f"{run.errors:.0f}",
            "in flight": "" if run.in_flight is None else f"{run.in_flight:g}",
        }
        for step in result.steps
        for run in step.results
    ]
    return Table.of_rows(rows, {"file", "tool"}, {"file", "tool"})


def _law_text(result: ImportedEvaluation) -> str:
    if result.law is None:
        return "too few steps to tell"
    unit = UNITS[result.plan.measure]
    return describe_law(result.law.law, result.law_interval, result.plan.axis, unit)


def _chart(result: ImportedEvaluation) -> Figure | None:
    unit, axis = UNITS[result.plan.measure], result.plan.axis
    points = [
        MeasuredPoint(
            step.workers,
            step.throughput,
            [throughput_of(run, result.plan.measure) for run in step.results],
            f"{step.workers} {axis}: {_rate_text(step)} {unit}",
        )
        for step in result.steps
        if step.throughput.value > 0
    ]
    if not points:
        return None
    chart = draw_scaling(points, result.law.law if result.law else None, axis, unit)
    return Figure(chart, f"{points[-1].tip}. {explain_scaling(chart)}")

"""A validation that load tools measured, as a report."""

import itertools
import math
import shlex
from collections.abc import Callable, Mapping

from scaletest.model import VerdictKind
from scaletest.render import contents
from scaletest.render.blocks import Block, Figure, Table, Text
from scaletest.render.contents import Case, Head, Report, Section, Sheet, Value, column_at
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


def imported_report(run: ImportedRun) -> Report:
    """Return what every format shows of it."""
    result, plan = run.result, run.result.plan
    facts = []
    if result.steps:
        last = result.steps[-1]
        most = max(result.steps, key=lambda step: step.throughput.value)
        facts = [
            (f"{UNITS[plan.measure]} at most, with {most.workers} {plan.axis}", _rate(most)),
            (f"speed-up with {last.workers}", f"{last.scaled.speedup.value:.2f}x"),
            ("efficiency there", format_percent(last.scaled.efficiency.value, 0)),
        ]
    head = Head(
        title=f"judge {plan.workload}",
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        conditions=(f"at least {plan.scale:.2f}x wanted per doubling" if plan.scale else "",),
        facts=facts,
        warnings=result.warnings,
        thresholds=result.thresholds,
        following=f"scaletest report {shlex.quote(run.name)} -o report.html",
        environment=run.environment,
        plan=plan.to_dict(),
    )

    def sections() -> list[Section]:
        return contents.make_page(
            {
                "How far it scales": [Text([_law_text(result)], "strong"), _chart(result)],
                "Steps": [_steps_table(result)],
                "Runs": [_runs_table(result)],
            }
        )

    def cases() -> list[Case]:
        found = []
        for before, step in itertools.pairwise(result.steps):
            name = f"{before.workers} -> {step.workers} {plan.axis}"
            kind = step.ratio.kind if step.ratio else VerdictKind.INVALID
            found.append(Case(name, kind, f"ratio {_ratio(step)}, wanted {plan.scale:.2f}"))
        return found

    short: list[Block | None] = [
        _steps_table(result),
        Text([_law_text(result)], label="scaling"),
        Text(result.warnings, "warning", label="warning"),
    ]
    return Report(
        head=head,
        summary=lambda: short,
        comment=lambda: short[:2],
        sections=sections,
        sheet=lambda: Sheet.of_columns(COLUMNS, result.steps, digits=contents.CLOCK_DIGITS),
        cases=cases,
        data=lambda: {**result.to_dict(), "folder": run.folder},
    )


def _rate(step: ImportedStep) -> str:
    rate = step.throughput
    if not math.isfinite(rate.high):
        return format_significant(rate.value, 4)
    return with_interval(rate.value, rate.low, rate.high)


def _ratio(step: ImportedStep) -> str:
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
        per_one = step.throughput.value / step.workers
        row = {
            plan.axis: str(step.workers),
            "runs": str(step.repeats),
            UNITS[plan.measure]: _rate(step),
            "for each": format_significant(per_one, 4),
            "ratio": _ratio(step) if step.ratio else "",
            "efficiency": format_percent(step.scaled.efficiency.value, 0),
            "per million tokens": "",
        }
        if step.price_per_million:
            row["per million tokens"] = format_significant(step.price_per_million)
        for name in ("ttft.p99", "tpot.mean", "itl.mean"):
            known = [run.latencies[name] for run in step.results if name in run.latencies]
            row[name] = format_seconds(mean_estimate(known).value) if known else ""
        rows.append(row)
    return Table.of_rows(
        rows,
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
            f"{step.workers} {axis}: {_rate(step)} {unit}",
        )
        for step in result.steps
        if step.throughput.value > 0
    ]
    if not points:
        return None
    chart = draw_scaling(points, result.law.law if result.law else None, axis, unit)
    return Figure(chart, f"{points[-1].tip}. {explain_scaling(chart)}")

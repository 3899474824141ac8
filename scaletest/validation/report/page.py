"""A validation as a page: all sections that have anything to show."""

from scaletest.causes.resource_texts import clock_text
from scaletest.render import contents
from scaletest.render.blocks import Block, Charts, Table, Text
from scaletest.render.contents import Section
from scaletest.render.numbers import (
    NOTHING,
    format_percent,
    format_seconds,
    seconds_between,
    with_half_width,
    with_interval,
)
from scaletest.report import failures
from scaletest.stats.percentiles import samples_needed
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.schedule import way
from scaletest.validation.judging.steps import Step
from scaletest.validation.report import resources, times
from scaletest.validation.report.causes import (
    causes_note,
    causes_table,
    doubling_text,
    known_limits,
)
from scaletest.validation.report.course_charts import PANEL_NOTE, panels
from scaletest.validation.report.members import members
from scaletest.validation.report.parts import ReportParts, as_sentence
from scaletest.validation.report.time_chart import time_spent
from scaletest.validation.report.words import interval_text, share_text
from scaletest.validation.run_type import ValidationRun

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def sections(parts: ReportParts) -> list[Section]:
    """Return all sections that have anything to show."""
    run, result = parts.run, parts.result
    limits = "What limits it"
    return contents.make_page(
        {
            "How far it scales": _scaling(parts),
            limits: _limits(result),
            "Failures": [failures.table(result.failures)],
            "Resources": _resources(result),
            "How many share a device": _sharing(parts),
            "Steps": _steps(parts),
            "Throughput over time": [Charts(panels(result), note=PANEL_NOTE)],
            "Wait and run times": _times(run),
            "Who did how much": _shares(run),
            "Other queues": [_background(result)],
        },
        limits if known_limits(result) else "",
    )


def _scaling(parts: ReportParts) -> list[Block | None]:
    """Return how throughput grows: the law and the chart."""
    if parts.scaling_chart is None:
        return []
    return [Text([as_sentence(parts.law, "Law: ")], "strong"), parts.scaling_chart]


def _limits(result: Evaluation) -> list[Block | None]:
    """Return what stops the run, where its requests say it."""
    chart, causes = time_spent(result), result.causes
    if chart is None or causes is None:
        return []
    if causes.causes and known_limits(result) is None:
        return [chart]
    meaning = (
        f"From {doubling_text(causes)}: what requests spend the time on by which they take"
        " longer, with the 95 % interval; per request: before and after."
    )
    if any(cause.evidence for cause in causes.causes):
        meaning += (
            " Measured: what the resources of the nodes did meanwhile, and whether that"
            " confirms or contradicts the cause."
        )
    return [
        causes_table(causes, on_page=True, note=meaning),
        Text([causes_note(causes)]),
        chart,
    ]


def _resources(result: Evaluation) -> list[Block | None]:
    """Return what the nodes did, where samples are there."""
    note = resources.note(result)
    meaning = (
        "Means of the samples while each step was measured. Requests' own: cores that the requests"
        " themselves used. Pressure: the part of the time in which some thread waited for it. Disk,"
        f" device: the part of the time in which it was busy. {note}".rstrip()
    )
    known = resources.table(result, note=meaning)
    disturbed = [
        {
            "from (UTC)": clock_text(spell.begin_s),
            "to (UTC)": clock_text(spell.end_s),
            "node": spell.node,
            "what": spell.text,
        }
        for spell in result.disturbed
    ]
    if not known.rows:
        return []
    return [
        known,
        Table.of_rows(disturbed, {"from (UTC)", "to (UTC)", "node", "what"}, layout="wrapped"),
    ]


def _sharing(parts: ReportParts) -> list[Block | None]:
    """Return how many workers share a device, in a run that compares that."""
    result = parts.result
    if not result.plan.compares or not result.steps:
        return []
    quantile, best = parts.quantile, parts.best_share
    meaning = (
        "All devices are full in every step. Percent: 95 % intervals that hold together, against"
        " the number that did most; the least number whose interval reaches 100% is called best."
        " Fair: requests of the busiest over those of the idlest. Memory limit: requests that met"
        " the limit of a device's memory."
    )
    return [
        parts.table(("fair", "efficiency", f"wait {quantile}", f"run {quantile}")),
        Text([as_sentence(best[:1].upper() + best[1:])]),
        Text([meaning], "soft"),
    ]


def _steps(parts: ReportParts) -> list[Block | None]:
    """Return a row for each step, with the intervals of its ratios, and the knee."""
    rows = []
    for row in parts.rows:
        step, scaled, ratio = row.step, row.scaled, row.step.ratio
        efficiency = NOTHING
        if scaled:
            # the first step is compared with itself
            is_base = scaled.efficiency.low == scaled.efficiency.high
            efficiency = "100%" if is_base else share_text(scaled.efficiency)
        rows.append(
            {
                "workers": str(step.workers),
                **row.rates,
                "ratio": with_interval(ratio.value, ratio.low, ratio.high) if ratio else "",
                "speed-up": row.cells["speed-up"],
                "efficiency": efficiency,
                "failed": str(step.failures),
                "tester": format_percent(step.overhead_share),
                "ended": step.stops,
                "measured": format_seconds(step.measured_s),
            }
        )
    meaning = (
        f"Throughput ± {interval_text(parts.result.steps)}; ratio: to the"
        " step before, with the 90 % interval on which the verdict rests; other brackets are 95 %"
        " intervals. Tester: the share of a request's time that scaletest itself cost."
    )
    blocks: list[Block | None] = [Table.of_rows(rows, {"ended"}, layout="steps", note=meaning)]
    knee = parts.result.growth.knee
    if knee is not None and not parts.result.plan.compares:
        text = f"Knee, the point farthest above the chord of the curve (Kneedle): {knee} workers."
        blocks.append(Text([text]))
    return blocks


def _times(run: ValidationRun) -> list[Block | None]:
    """Return how wait and run times spread."""
    result = run.result
    if not any(step.run.count for step in result.steps):
        return []
    cells = []
    for step in result.steps:
        cells += [_percentiles(step, kind) for kind in ("run", "wait")]
    meaning = (
        "Wait: from the client's submission until a worker took the request. Run: the workload"
        " itself. Run times that grow with the workers mean that they share something; long waits"
        " mean that the workers were not ready to take. In brackets the 95 % interval; n/a: the"
        " step has fewer requests than the percentile needs."
    )
    return [
        Table.of_rows(cells, {"time"}, layout="tight", note=meaning),
        times.histograms(result, run.records),
    ]


def _percentiles(step: Step, kind: str) -> dict[str, str]:
    """Return the percentiles of wait or run times of a step. kind: "wait" or "run"."""
    spread = getattr(step, kind)
    cells = {
        "workers": str(step.workers),
        "time": kind,
        "requests": str(spread.count),
        "mean": format_seconds(spread.mean),
    }
    for name in QUANTILES:
        percentile = getattr(spread, name)
        if percentile is None:
            cells[name] = f"{NOTHING} (needs ≥ {samples_needed(QUANTILES[name])})"
        elif percentile.low is None or percentile.high is None:
            cells[name] = format_seconds(percentile.value)
        else:
            cells[name] = seconds_between(percentile.value, percentile.low, percentile.high)
    return {**cells, "max": format_seconds(spread.max)}


def _shares(run: ValidationRun) -> list[Block | None]:
    """Return who did how much in the last step that did anything: it shows best who held it up."""
    steps = [step for step in run.result.steps if step.run.count]
    tables = members(steps[-1], run.records) if steps else []
    if not tables:
        return []
    meaning = (
        f"With {steps[-1].workers} workers. Workers and pods are those of the way up. Even"
        " shares are fair; one that lags points at a slow device, node or pod."
    )
    return [
        Text([meaning], "soft"),
        *tables,
        times.histograms_of_nodes(steps[-1], run.records),
    ]


def _background(result: Evaluation) -> Table:
    """Return what the load beside the validation did."""
    rows = [
        {
            "queue": step.name,
            "workers of the step": str(step.workers),
            "measuring": way(step.repeat),
            "requests/s": with_half_width(step.throughput.per_s, step.throughput.half_width),
            "mean wait": format_seconds(step.wait.mean),
            "mean run": format_seconds(step.run.mean),
            "failed": str(step.failures),
        }
        for step in result.background
    ]
    meaning = (
        "What the load beside the validation did meanwhile. No verdict rests on it, but a change"
        " tells how much the two share."
    )
    return Table.of_rows(rows, {"queue", "measuring"}, note=meaning)

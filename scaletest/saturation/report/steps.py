"""The steps of a saturation run as rows: in short, in full and for programs; and their errors."""

import math
from collections.abc import Callable, Sequence

from scaletest.render.blocks import Block, Table
from scaletest.render.contents import Value, column_at
from scaletest.render.numbers import (
    format_percent,
    format_seconds,
    format_significant,
    plural,
    with_interval,
)
from scaletest.report.words import format_percentile
from scaletest.saturation.judging.evaluation import SaturationResult
from scaletest.saturation.judging.step import AssessedStep, failed_pods, level_text
from scaletest.saturation.plan import LoadKind, Phase
from scaletest.saturation.report.charts import step_state
from scaletest.stats.percentiles import Distribution

QUANTILES = ("p50", "p90", "p95", "p99")
# A terminal has no room for all.
FEW_QUANTILES = ("p50", "p95", "p99")


def _goodput_text(assessed: AssessedStep) -> str:
    """Write successes a second with their interval."""
    goodput = assessed.goodput
    if not math.isfinite(goodput.high):
        return format_significant(goodput.value)
    return with_interval(goodput.value, goodput.low, goodput.high)


def errors_by_kind(assessed: AssessedStep) -> str:
    """Write errors by kind; "" when there are none."""
    return ", ".join(f"{count} x {kind}" for kind, count in assessed.errors.items())


def error_lines(result: SaturationResult) -> list[str]:
    """Write errors by kind at every step that had any."""
    return [
        f"{assessed.step.phase} {level_text(assessed.step)}: {errors_by_kind(assessed)}"
        for assessed in result.steps
        if assessed.errors
    ]


def pod_lines(result: SaturationResult) -> list[str]:
    """Say how pods fared at every step in which anything befell them."""
    lines = []
    for assessed in result.steps:
        step = assessed.step
        events = step.pods.events if step.pods else ()
        troubles = list(filter(None, [failed_pods(step), *events]))
        if troubles:
            lines.append(f"{step.phase} {level_text(step)}: {'; '.join(troubles)}")
    return lines


def _first_cells(assessed: AssessedStep) -> dict[str, str]:
    """Return the cells with which the row of a step begins."""
    return {"phase": str(assessed.step.phase), "level": level_text(assessed.step)}


def _quantile_cells(times: Distribution, names: Sequence[str]) -> dict[str, str]:
    """Return the cells of these percentiles."""
    return {name: format_percentile(times, name) for name in names}


def _stream_cells(assessed: AssessedStep, unit: str) -> dict[str, str]:
    """Return what a table says about streams, with blanks where there were none."""
    streams = assessed.streams
    return {
        unit: format_significant(streams.tokens_per_s) if streams else "",
        "first token p95": format_percentile(streams.first, "p95") if streams else "",
        "each further p50": format_percentile(streams.per_token, "p50") if streams else "",
    }


def step_table(steps: Sequence[AssessedStep]) -> Table:
    """Make a row for each step, in short."""
    # the column stays empty, and is left out, where the service does not say its own time
    queueing = any(assessed.server.count for assessed in steps)
    counts_chunks = any(step.streams and step.streams.counts_chunks for step in steps)
    unit = "chunks/s" if counts_chunks else "tokens/s"
    rows = [
        {
            **_first_cells(assessed),
            "succeeded/s": _goodput_text(assessed),
            **_quantile_cells(assessed.latency, FEW_QUANTILES),
            **_stream_cells(assessed, unit),
            "queueing": format_percent(assessed.queueing, 0) if queueing else "",
            "ok": format_percent(assessed.success),
            "state": step_state(assessed),
        }
        for assessed in steps
    ]
    return Table.of_rows(rows, spare=("p50", "queueing"))


def step_details(result: SaturationResult) -> list[Block]:
    """Return tables: all figures of each step, why some did not hold, and their latency."""
    meaning = (
        "Open load is counted from the intended start of each request. Brackets are 95 % intervals."
        " A step held when enough succeeded and the interval of the backlog's growth contains 0; it"
        " is undecided where the backlog grew by more than 5 % of the rate, which may be chance."
    )
    rows, reasons, latency_rows = [], [], []
    for assessed in result.steps:
        step, growth, first = assessed.step, assessed.growth, _first_cells(assessed)
        rows.append(
            {
                **first,
                "offered/s": format_significant(assessed.offered)
                if step.load == LoadKind.OPEN
                else "",
                "succeeded/s": _goodput_text(assessed),
                "backlog/s": with_interval(growth.value, growth.low, growth.high) if growth else "",
                "ok": format_percent(assessed.success),
                "errors": errors_by_kind(assessed),
                "load generator late p99": format_seconds(assessed.lag_s),
                "CPU": format_percent(step.cpu, 0),
                "state": step_state(assessed),
            }
        )
        reason = assessed.tester or assessed.saturated or assessed.undecided
        if reason:
            reasons.append({**first, "state": step_state(assessed), "reason": reason})
        # under closed load requests are sent when they are due, so both latencies are one
        kinds = {"since sent": assessed.service, "in the service": assessed.server}
        if step.load == LoadKind.OPEN or step.phase == Phase.WARM:
            kinds = {"latency": assessed.latency, **kinds}
        for kind, times in kinds.items():
            if times.count:
                latency_rows.append(
                    {
                        **first,
                        "what": kind,
                        "requests": str(times.count),
                        "mean": format_seconds(times.mean),
                        **_quantile_cells(times, QUANTILES),
                        "longest": format_seconds(times.max),
                    }
                )
    return [
        Table.of_rows(rows, {"phase", "errors", "state"}, note=meaning),
        Table.of_rows(
            reasons,
            {*reasons[0]} if reasons else (),
            folded=f"Why {plural(len(reasons), 'step')} did not hold",
            layout="wrapped",
        ),
        Table.of_rows(latency_rows, {"phase", "what"}, folded="Latency at each step"),
    ]


# New columns of the sheet come at the end.
COLUMNS: dict[str, Callable[[AssessedStep], Value]] = {
    "number": column_at("step.number"),
    "phase": column_at("step.phase"),
    "load": column_at("step.load"),
    "level": column_at("step.level"),
    "seconds": column_at("step.seconds"),
    "requests": column_at("step.requests"),
    "offered_per_s": column_at("offered"),
    "goodput_per_s": column_at("goodput.value"),
    "goodput_low_per_s": column_at("goodput.low"),
    "goodput_high_per_s": column_at("goodput.high"),
    "backlog_growth_per_s": column_at("growth.value"),
    "backlog_growth_low_per_s": column_at("growth.low"),
    "backlog_growth_high_per_s": column_at("growth.high"),
    "success": column_at("success"),
    "latency_mean_s": column_at("latency.mean"),
    **{f"latency_{name}_s": column_at(f"latency.{name}.value") for name in QUANTILES},
    "latency_max_s": column_at("latency.max"),
    "server_mean_s": column_at("server.mean"),
    "queueing_share": column_at("queueing"),
    "errors": errors_by_kind,
    "pods": lambda assessed: failed_pods(assessed.step),
    "lag_p99_s": column_at("lag_s"),
    "cpu_cores": column_at("step.cpu"),
    "saturated": column_at("saturated"),
    "tester_bottleneck": column_at("tester"),
    "undecided": column_at("undecided"),
}

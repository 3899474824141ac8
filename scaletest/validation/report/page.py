"""A validation as a page: all sections that have anything to show."""

import statistics
from collections import defaultdict
from itertools import chain

from scaletest.causes.interference import clock_text
from scaletest.causes.steps import Rows
from scaletest.model import Record
from scaletest.render import contents
from scaletest.render.blocks import Block, Cell, Charts, Share, Table, Text
from scaletest.render.contents import Section
from scaletest.render.numbers import (
    NOTHING,
    format_percent,
    format_seconds,
    seconds_with_interval,
    with_half_width,
    with_interval,
)
from scaletest.report import failures
from scaletest.stats.percentiles import Distribution, samples_needed
from scaletest.validation.judging.doublings import unseen_tail
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.schedule import pass_name
from scaletest.validation.judging.steps import Step, has_failed
from scaletest.validation.report.causes import (
    causes_note,
    causes_table,
    doubling_text,
)
from scaletest.validation.report.course_charts import PANEL_NOTE, course_panels
from scaletest.validation.report.histograms import node_histograms, step_histograms
from scaletest.validation.report.law import law_sentence
from scaletest.validation.report.parts import ReportParts, as_sentence
from scaletest.validation.report.resources import resources_table
from scaletest.validation.report.time_chart import draw_time_by_state
from scaletest.validation.report.words import best_share_text, rate_interval_text, share_text
from scaletest.validation.run_type import ValidationRun

# Of more members the idlest are shown.
MOST_MEMBERS = 24


def page_sections(parts: ReportParts) -> list[Section]:
    """Return all sections that have anything to show."""
    run, result = parts.run, parts.result
    law = Text([as_sentence(law_sentence(result), "Scaling: ")], "strong")
    limits = "What limits it"
    return contents.make_page(
        {
            "How far it scales": [law, parts.scaling_chart] if parts.scaling_chart else [],
            limits: _limits_section(result),
            "Failures": [failures.table(result.failures)],
            "How many share a device": _sharing_section(parts),
        },
        limits if result.limits else "",
        folded={
            "Resources": _resources_section(result),
            "Steps": _steps_section(parts),
            "Throughput over time": [Charts(course_panels(result), note=PANEL_NOTE)],
            "Wait and run times": _times_section(run),
            "Work per worker": _members_section(run),
            "Other queues": [_queues_table(result)],
        },
    )


def _queues_table(result: Evaluation) -> Table:
    """Return what the load beside the validation did in each step."""
    rows = [
        {
            "queue": step.name,
            "workers of the step": str(step.workers),
            "pass": pass_name(step.repeat),
            "requests/s": with_half_width(step.throughput.per_s, step.throughput.half_width),
            "mean wait": format_seconds(step.wait.mean),
            "mean run": format_seconds(step.run.mean),
            "failed": str(step.failures),
        }
        for step in result.background
    ]
    note = (
        "Background load on other queues during each step. It does not affect the verdict, but a"
        " change shows how much the two share."
    )
    return Table.of_rows(rows, {"queue", "pass"}, note=note)


def _limits_section(result: Evaluation) -> list[Block | None]:
    """Return what stops the run, where its requests say it."""
    chart, causes = draw_time_by_state(result), result.causes
    if chart is None or causes is None:
        return []
    if causes.causes and result.limits is None:
        return [chart]
    meaning = (
        f"Where the added time per request goes from {doubling_text(causes)} (95 % CI); per"
        " request: before and after."
    )
    if any(cause.evidence for cause in causes.causes):
        meaning += (
            " Measured: use of the nodes' resources at that time, and whether it confirms or"
            " contradicts the cause."
        )
    return [
        causes_table(causes, on_page=True, note=meaning),
        Text([causes_note(causes)]),
        chart,
    ]


def _resources_section(result: Evaluation) -> list[Block | None]:
    """Return what the nodes did, and what disturbed them, where samples are there."""
    table = resources_table(result)
    if not table.rows:
        return []
    disturbances = [
        {
            "from (UTC)": clock_text(disturbance.begin_s),
            "to (UTC)": clock_text(disturbance.end_s),
            "node": disturbance.node,
            "what": disturbance.text,
        }
        for disturbance in result.disturbed
    ]
    texts = {"from (UTC)", "to (UTC)", "node", "what"}
    return [table, Table.of_rows(disturbances, texts, layout="wrapped")]


def _sharing_section(parts: ReportParts) -> list[Block | None]:
    """Return how many workers share a device, in a run that compares that."""
    result = parts.result
    if not result.plan.compares or not result.steps:
        return []
    best = best_share_text(result)
    return [
        parts.table(("efficiency", f"wait {parts.quantile}", f"run {parts.quantile}")),
        Text([as_sentence(best[:1].upper() + best[1:])]),
        Text(
            [
                (
                    "All devices are full in every step. Percent: simultaneous 95 % intervals,"
                    " relative to the highest throughput; the smallest number of workers whose"
                    " interval reaches 100% is called best. Fair: requests of the busiest worker"
                    " over those of the idlest, then the same of devices. Memory"
                    " limit: requests that hit the limit of a device's memory."
                )
            ],
            "soft",
        ),
    ]


def _steps_section(parts: ReportParts) -> list[Block | None]:
    """Return a row for each step, with the intervals of its ratios."""
    rows = []
    for row in parts.rows:
        step, scaled, ratio = row.step, row.scaled, row.step.ratio
        efficiency = NOTHING
        if scaled:
            efficiency = share_text(scaled.efficiency)
            if scaled.efficiency.low == scaled.efficiency.high:
                efficiency = "100%"  # the first step, which is compared with itself
        rows.append(
            {
                "workers": str(step.workers),
                **row.rates,
                "ratio": with_interval(ratio.value, ratio.low, ratio.high) if ratio else "",
                "speed-up": row.cells["speed-up"],
                "efficiency": efficiency,
                "failed": str(step.failures),
                "overhead": format_percent(step.overhead_share),
                "ended": step.stops,
                "measured": format_seconds(step.measured_s),
            }
        )
    note = (
        f"Throughput ± {rate_interval_text(parts.result.steps)}; ratio: to the step before, with"
        " the 90 % interval that decides the verdict; other brackets are 95 % intervals. Overhead:"
        " the share of a request's time that scaletest itself cost."
    )
    unseen = unseen_tail(parts.result.steps) if rows else ""
    return [
        Table.of_rows(rows, {"ended"}, layout="steps", note=note),
        Text([as_sentence(unseen[:1].upper() + unseen[1:])], "soft"),
    ]


def _times_section(run: ValidationRun) -> list[Block | None]:
    """Return how wait and run times spread."""
    result = run.result
    if not any(step.run.count for step in result.steps):
        return []
    rows = []
    for step in result.steps:
        rows.append(_percentiles_row(step.workers, "run", step.run))
        rows.append(_percentiles_row(step.workers, "wait", step.wait))
    return [
        Table.of_rows(
            rows,
            {"time"},
            layout="tight",
            note=(
                "Wait: from the client's submission until a worker took the request. Run: the"
                " workload itself. Run times that grow with the workers mean that they share"
                " something; long waits mean that no worker was free. In brackets the 95 %"
                " interval; n/a: the step has fewer requests than the percentile needs."
            ),
        ),
        step_histograms(result, run.records),
    ]


def _percentiles_row(workers: int, name: str, durations: Distribution) -> dict[str, str]:
    """Return a row of percentiles of wait or run times."""
    row = {
        "workers": str(workers),
        "time": name,
        "requests": str(durations.count),
        "mean": format_seconds(durations.mean),
    }
    for quantile, part in {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}.items():
        percentile = getattr(durations, quantile)
        if percentile is None:
            row[quantile] = f"{NOTHING} (needs ≥ {samples_needed(part)})"
        elif percentile.low is None or percentile.high is None:
            row[quantile] = format_seconds(percentile.value)
        else:
            row[quantile] = seconds_with_interval(percentile.value, percentile.low, percentile.high)
    return {**row, "max": format_seconds(durations.max)}


def _members_section(run: ValidationRun) -> list[Block | None]:
    """Return who did how much in the last step that did anything: it shows best who held it up."""
    steps = [step for step in run.result.steps if step.run.count]
    tables = _members_tables(steps[-1], run.records) if steps else []
    if not tables:
        return []
    note = (
        f"With {steps[-1].workers} workers; workers and pods are those of the ascending pass."
        " Shares should be equal; a low one suggests a slow device, node or pod."
    )
    return [Text([note], "soft"), *tables, node_histograms(steps[-1], run.records)]


def _members_tables(step: Step, records: Rows) -> list[Table]:
    """Return a table for each kind of which a step had more than one; none for pods that are nodes.

    Of several repeats workers and pods are those of the first, since every repeat starts its own.
    """
    repeats = [records.get(sample.measurement.key, ()) for sample in step.samples]
    tables = []
    seen: list[set[str]] = []
    for kind in ("worker", "node", "pod", "device"):
        by_name: dict[str, list[Record]] = defaultdict(list)
        # each repeat has other workers and pods, and it may be longer than the next: only those of
        # one repeat compare
        compared = repeats[:1] if kind in ("worker", "pod") else repeats
        for record in chain.from_iterable(compared):
            by_name[getattr(record.reply, kind)].append(record)
        by_name.pop("", None)
        if len(by_name) < 2 or set(by_name) in seen:
            continue
        seen.append(set(by_name))

        # their shares of the successful requests, the idlest first
        run_times = {
            name: [record.reply.run_s for record in records_of_name if record.ok]
            for name, records_of_name in by_name.items()
        }
        names = sorted(run_times, key=lambda name: (len(run_times[name]), name))
        most_requests = len(run_times[names[-1]]) or 1
        all_requests = sum(map(len, run_times.values())) or 1
        note = f"The idlest {MOST_MEMBERS} of {len(names)}." if len(names) > MOST_MEMBERS else ""
        rows: list[dict[str, Cell]] = []
        for name in names[:MOST_MEMBERS]:
            done = len(run_times[name])
            rows.append(
                {
                    kind: name,
                    "requests": str(done),
                    "share": Share(done / most_requests, format_percent(done / all_requests)),
                    "mean run": format_seconds(statistics.fmean(run_times[name]) if done else None),
                    "failed": str(sum(map(has_failed, by_name[name]))),
                }
            )
        tables.append(Table.of_rows(rows, {kind, "share"}, note=note))
    return tables

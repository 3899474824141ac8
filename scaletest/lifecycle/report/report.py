"""Make the report of a lifecycle run. `charts` draws its charts."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from scaletest.lifecycle import runai
from scaletest.lifecycle.judging.books import fate_of
from scaletest.lifecycle.judging.chart_data import ready_times_by_node
from scaletest.lifecycle.judging.figures import PhaseDurations
from scaletest.lifecycle.judging.result import LifecycleResult
from scaletest.lifecycle.judging.timeline import (
    BY_NAME,
    PHASES,
    LifecyclePhase,
    WorkloadTimeline,
    best_time,
    duration_between,
    reference_milestone,
)
from scaletest.lifecycle.report.charts import (
    phase_charts,
    pods_figure,
    waterfall_figure,
)
from scaletest.lifecycle.run_type import LifecycleRun
from scaletest.model.times import format_time
from scaletest.render import contents
from scaletest.render.blocks import Block, Cell, Charts, Share, Table, Text
from scaletest.render.contents import Head, Report, Section, Sheet
from scaletest.render.numbers import format_seconds, format_significant, plural
from scaletest.render.text import clean_text
from scaletest.report.words import format_percentile

HEADINGS = ("phase", "values", "missing", "mean", "p50", "p95", "p99", "max", "source", "measure")
# The phases of the pictures general.png and detailed.png, from top to bottom.
GENERAL = ("total_decided", "total_ready", "total_finished", "total_backend_job_created")
DETAILED = tuple(phase.name for phase in PHASES if not phase.total and not phase.of_pods)
NODE_TIME = "median time from scheduling to ready"
MOST_NODES = 20
# Values of a phase from which on charts show more than the table.
FEWEST_DRAWN = 10


def lifecycle_report(run: LifecycleRun) -> Report:
    """Make what every format shows of a lifecycle run."""
    result, books, throughput = run.result, run.result.books, run.result.throughput
    # the numbers that are known, and of what did not happen none
    counts = {
        "measured": books.measured,
        "pending": books.pending,
        "failed": books.failed,
        "lost": books.lost,
        "rejected": books.rejected,
        "pods seen": throughput.seen,
    }
    facts = [(name, str(count)) for name, count in counts.items() if count or name == "measured"]
    if throughput.per_s:
        facts.append(("pods scheduled per second", format_significant(throughput.per_s)))
    total = result.find_phase("total_ready")
    if total and total.spread.p50:
        facts.append(("median time until ready", format_percentile(total.spread, "p50")))
    head = Head(
        title=run.title,
        verdict=result.verdict,
        folder=run.folder,
        name=run.name,
        facts=facts,
        alarming={"failed", "lost", "rejected"},
        thresholds=result.thresholds,
        environment=run.environment,
        plan={key: setting for key, setting in run.plan.items() if setting},
    )
    return Report(
        head=head,
        summary=lambda: summary(result),
        comment=lambda: summary(result),
        sections=lambda: sections(result),
        sheet=lambda: sheet(run),
        cases=list,  # the verdict has all that there is
        data=lambda: {**result.to_dict(), "folder": run.folder},
        # pods over time, and phases of workloads
        picture=lambda: [
            figure.wide for figure in (pods_figure(result), waterfall_figure(result)) if figure
        ],
    )


def summary(result: LifecycleResult) -> list[Block]:
    """Return the phases, what became of the workloads, and the throughput of scheduling."""
    return [
        phase_table(result),
        Text([describe_books(result), describe_throughput(result)]),
        Text(
            [f"rejected {count}: {reason}" for reason, count in result.books.rejections.items()],
            "warning",
            most=3,
            rest="reason",
        ),
        Text(_describe_skipped(result), "warning"),
    ]


def _describe_skipped(result: LifecycleResult) -> list[str]:
    return [
        f"left out {plural(count, 'workload')}: {reason}"
        for reason, count in result.skipped.items()
    ]


def phase_table(result: LifecycleResult, note: str = "") -> Table:
    """Return a row for each phase."""
    rows = []
    for durations in shown_phases(result):
        spread = durations.spread
        # where all values have one source, its number is that of the values
        sources = [str(name) for name in durations.sources]
        if len(sources) > 1:
            sources = [f"{name} {count}" for name, count in sorted(durations.sources.items())]
        rows.append(
            (
                durations.text,
                str(spread.count),
                str(durations.missing),
                format_seconds(spread.mean),
                *(format_percentile(spread, name) for name in ("p50", "p95", "p99")),
                format_seconds(spread.max),
                ", ".join(sources),
                durations.phase.name,
            )
        )
    columns_of_text = map(HEADINGS.index, ("phase", "source", "measure"))
    return Table(HEADINGS, rows, tuple(columns_of_text), spare=("source",), note=note)


def shown_phases(result: LifecycleResult) -> Sequence[PhaseDurations]:
    """Return all phases; where workloads have one pod, without those of their pods."""
    if any(len(timeline.workload.pods) > 1 for timeline in result.timelines):
        return result.phases
    return [
        durations
        for durations in result.phases
        if not durations.phase.of_pods and durations.phase.name != "last_pod_created"
    ]


def describe_books(result: LifecycleResult) -> str:
    """Describe in one line what became of the workloads."""
    books = result.books
    rejected = f", {books.rejected} rejected" if books.rejected else ""
    return (
        f"submitted {books.submitted} = {books.measured} measured ({result.until}) +"
        f" {books.pending} pending + {books.failed} failed + {books.lost} lost{rejected}"
    )


def describe_throughput(result: LifecycleResult) -> str:
    """Describe in one line how fast pods were scheduled."""
    throughput = result.throughput
    if not throughput.seen:
        return "no pod is on record"
    pods = plural(throughput.seen, "pod")
    if not throughput.pods:
        return f"{pods} seen, none with a known time of scheduling"
    if throughput.pods != throughput.seen:
        pods = f"{throughput.pods} of {throughput.seen} pods"
    if throughput.per_s is None:
        return f"{pods} scheduled"
    return f"{pods} scheduled, {format_significant(throughput.per_s)} pods/s on average"


def sections(result: LifecycleResult) -> list[Section]:
    """Return all sections that have anything to show."""
    meaning = (
        "Sources: watch is the arrival of the event here; api is whole seconds of the API's fields;"
        " event is microseconds of an Event; mixed has one end of each. Missing values are counted,"
        " not taken as zero. Thresholds call a phase by its measure, e.g. total_ready.p99<60s."
    )
    return contents.make_page(
        {
            "On the way to ready": [waterfall_figure(result)],
            "Pods over time": [pods_figure(result)],
            "Rejected": [_reason_table(result.books.rejections)],
            "Failed": [_reason_table(result.books.failures)],
        },
        folded={
            "Workloads": [
                Text(
                    [
                        describe_books(result),
                        describe_throughput(result),
                        *_describe_skipped(result),
                    ]
                )
            ],
            "Phases": [phase_table(result, meaning)],
            "Nodes": [_node_table(result)],
            "From submission on": _chart_blocks(result, GENERAL),
            "Phase by phase": _chart_blocks(result, DETAILED),
        },
    )


def _node_table(result: LifecycleResult) -> Table:
    """Return how long pods took from scheduling to ready on each node, the slowest nodes first."""
    seconds_of = ready_times_by_node(result.timelines)
    medians_s = {node: statistics.median(times) for node, times in seconds_of.items()}
    slowest_nodes = sorted(medians_s, key=lambda node: (-medians_s[node], node))[:MOST_NODES]
    longest_s = max(medians_s.values(), default=0.0) or 1.0
    rows: list[dict[str, Cell]] = [
        {
            "node": clean_text(node, 60),
            NODE_TIME: Share(medians_s[node] / longest_s, format_seconds(medians_s[node])),
            "pods": str(len(seconds_of[node])),
        }
        for node in slowest_nodes
    ]
    note = f"The slowest {len(slowest_nodes)} of {len(medians_s)} nodes."
    return Table.of_rows(rows, {"node", NODE_TIME}, {"node"}, note=note)


def _chart_blocks(result: LifecycleResult, names: Sequence[str]) -> list[Block]:
    """Draw the phases that have values enough, each over time and how its values spread."""
    phases = filter(None, map(result.find_phase, names))
    many = [durations.phase.name for durations in phases if durations.spread.count >= FEWEST_DRAWN]
    charts = phase_charts(result, many)
    if not charts:
        return []
    meaning = (
        "Left: a dot is a workload, and how long its phase took, by when it was submitted. Right:"
        " how these times spread."
    )
    return [Text([meaning], "soft"), Charts(charts, "two")]


def _reason_table(counts: Mapping[str, int]) -> Table:
    return Table.of_rows(
        [{"count": str(count), "reason": reason} for reason, count in counts.items()],
        {"reason"},
        layout="wrapped",
    )


def sheet(run: LifecycleRun) -> Sheet:
    """Return times.csv: all workloads in the order of submission, whether they are shown or not.

    Times are ISO 8601 in UTC, durations seconds. What is missing is empty.
    """
    # Every column has one function, so that a heading cannot stand over another's values. Those of
    # the Run:ai scale test tool come first, in its order.
    result = run.result
    columns: dict[str, Callable[[WorkloadTimeline], str]] = {
        "Job Name": lambda timeline: timeline.workload.name,
        "Namespace": lambda timeline: timeline.workload.namespace,
        "projectName": lambda timeline: (
            run.plan.get("project") or runai.project_of(timeline.workload.namespace)
        ),
    }
    for heading, name in runai.TIME_COLUMNS.items():
        columns[heading] = partial(_time_cell, name)
    of_workloads = [phase.name for phase in PHASES if not phase.of_pods]
    for name in dict.fromkeys((*runai.DURATION_COLUMNS, *of_workloads)):
        phase = BY_NAME[name]
        since = reference_milestone(phase, result.uncut_timelines)
        columns[phase.title] = partial(_duration_cell, phase, since)
    columns |= {
        "Fate": lambda timeline: str(fate_of(timeline, result.until)),
        # files of Run:ai's tool have times of pods but no number
        "Pods": lambda timeline: (
            ""
            if not timeline.workload.pods and timeline.stamp("first_pod_created")
            else str(len(timeline.workload.pods))
        ),
        "Reason": lambda timeline: timeline.workload.reason,
    }
    return Sheet.of_columns(columns, result.uncut_timelines, line_end="\n")


def _time_cell(name: str, timeline: WorkloadTimeline) -> str:
    return format_time(best_time(timeline.stamp(name))) or ""


def _duration_cell(phase: LifecyclePhase, since: str, timeline: WorkloadTimeline) -> str:
    duration = duration_between(timeline.stamp(since), timeline.stamp(phase.event))
    return f"{duration.value_s:.6f}" if duration else ""

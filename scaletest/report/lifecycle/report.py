"""A lifecycle run as a report.

Its sheet, times.csv, has a row for each workload: the columns of the original come first, in its
order; ours follow. Times are ISO 8601 in UTC, durations seconds. What is missing is empty. Every
column has one function, so that a heading cannot stand over another's values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from scaletest.analysis.lifecycle.phases import (
    BY_NAME,
    PHASES,
    WorkloadTimeline,
    at,
    duration,
    fate,
    reference,
    since_text,
)
from scaletest.analysis.lifecycle.result import LifecycleResult, PhaseDurations
from scaletest.compat import runai
from scaletest.lifecycle.run_type import LifecycleRun
from scaletest.model import VerdictKind
from scaletest.model.texts import iso
from scaletest.render.contents import (
    Block,
    Case,
    Charts,
    Head,
    Report,
    Section,
    Sheet,
    Table,
    Text,
    ThresholdLine,
)
from scaletest.render.numbers import NOTHING, plural, seconds, significant
from scaletest.report import words
from scaletest.report.lifecycle import figures
from scaletest.report.words import SIGNS

MOST_REJECTIONS = 3
HEADINGS = ("phase", "since", "values", "missing", "mean", "p50", "p95", "p99", "max", "source")


def summary(result: LifecycleResult) -> list[Block]:
    """The phases, what became of the workloads, and the throughput of scheduling."""
    rejections = [
        f"rejected {count}: {reason}" for reason, count in result.books.rejections.items()
    ]
    skipped = [
        f"left out {plural(count, 'workload')}: {reason}"
        for reason, count in result.skipped.items()
    ]
    thresholds = [
        f"threshold {SIGNS[threshold.kind]} {threshold.text} ({threshold.reason})"
        for threshold in result.thresholds
    ]
    return [
        phase_table(result),
        Text([booked(result), placed(result)]),
        Text(rejections, "warning", most=MOST_REJECTIONS, rest="reason"),
        Text(skipped, "warning"),
        Text(thresholds),
    ]


def comment(result: LifecycleResult) -> list[Block]:
    """The same for a comment in CI, which shows the thresholds itself."""
    return summary(result)[:-1]


def phase_table(result: LifecycleResult) -> Table:
    """A row for each phase."""
    texts = (0, 1, len(HEADINGS) - 1)
    return Table(HEADINGS, [cells(phase) for phase in result.steps], texts=texts)


def cells(phase: PhaseDurations) -> tuple[str, ...]:
    """One step in words."""
    spread = phase.spread
    quantiles = [
        seconds(percentile.value) if percentile else NOTHING
        for percentile in (spread.p50, spread.p95, spread.p99)
    ]
    sources = ", ".join(
        name if len(phase.sources) == 1 else f"{name} {count}"
        for name, count in sorted(phase.sources.items())
    )
    return (
        phase.step.name,
        since_text(phase.step, phase.since),
        str(spread.count),
        str(phase.missing),
        seconds(spread.mean),
        *quantiles,
        seconds(spread.max),
        sources,
    )


def booked(result: LifecycleResult) -> str:
    """The books in one line."""
    books = result.books
    sign = "=" if books.balanced else "≠"
    rejected = f", {books.rejected} rejected" if books.rejected else ""
    return (
        f"submitted {books.submitted} {sign} {books.measured} measured ({result.until}) +"
        f" {books.pending} pending + {books.failed} failed + {books.lost} lost{rejected}"
    )


def placed(result: LifecycleResult) -> str:
    """The throughput of scheduling in one line."""
    rate = result.throughput
    if not rate.seen:
        return "no pod was seen"
    if not rate.pods:
        return f"{plural(rate.seen, 'pod')} seen, of none of which the time of scheduling is known"
    pods = (
        plural(rate.pods, "pod") if rate.pods == rate.seen else f"{rate.pods} of {rate.seen} pods"
    )
    if rate.per_s is None:
        return f"{pods} scheduled"
    return (
        f"{pods} scheduled, {significant(rate.per_s)} pods/s on average, "
        f"{significant(rate.peak_per_s or 0.0)} pods/s in the busiest {rate.bin_s:g} s"
    )


def sheet(result: LifecycleResult, project: str, times: str) -> Sheet:
    """The whole table; workloads in the order of submission."""
    columns = _columns(result, project, times)
    rows = [[column(timeline) for column in columns.values()] for timeline in result.courses]
    return Sheet(list(columns), rows, line_end="\n")


def _columns(
    result: LifecycleResult, project: str, times: str
) -> dict[str, Callable[[WorkloadTimeline], str]]:
    columns: dict[str, Callable[[WorkloadTimeline], str]] = {
        "Job Name": lambda timeline: timeline.workload.name,
        "Namespace": lambda timeline: timeline.workload.namespace,
        "projectName": lambda timeline: project or runai.project_of(timeline.workload.namespace),
    }
    columns |= {heading: _time(name) for heading, name in runai.TIME_COLUMNS.items()}
    own = [
        step.name for step in PHASES if step.name not in runai.DURATION_COLUMNS and not step.of_pods
    ]
    for name in (*runai.DURATION_COLUMNS, *own):
        columns[BY_NAME[name].title] = _duration(result, name, times)
    columns["Fate"] = lambda timeline: str(fate(timeline, result.until))
    columns["Pods"] = lambda timeline: str(len(timeline.workload.pods))
    columns["Reason"] = lambda timeline: timeline.workload.reason
    return columns


def _time(name: str) -> Callable[[WorkloadTimeline], str]:
    return lambda timeline: iso(at(timeline.stamp(name))) or ""


def _duration(result: LifecycleResult, name: str, times: str) -> Callable[[WorkloadTimeline], str]:
    step = BY_NAME[name]
    since = reference(step, result.courses)

    def get(timeline: WorkloadTimeline) -> str:
        taken = duration(step, timeline, since, times)
        return f"{taken.value_s:.6f}" if taken else ""

    return get


def facts(result: LifecycleResult) -> list[tuple[str, str]]:
    """The few numbers that stand beside the verdict."""
    books, rate = result.books, result.throughput
    return [
        ("measured", str(books.measured)),
        ("pending", str(books.pending)),
        ("failed", str(books.failed)),
        ("lost", str(books.lost)),
        ("rejected", str(books.rejected)),
        ("pods seen", str(rate.seen)),
        ("pods scheduled a second", significant(rate.per_s) if rate.per_s else NOTHING),
    ]


def sections(result: LifecycleResult) -> list[Section]:
    """All sections that have anything to show."""
    placing = figures.placing(result)
    parts: dict[str, Sequence[Block]] = {
        "Workloads": _books(result),
        "Phases": _phases(result),
        "Pods scheduled over time": [placing] if placing else [],
        "General: from submission on": _charts(result, figures.GENERAL),
        "Detailed: phase by phase": _charts(result, figures.DETAILED),
        "Rejected": _reasons(result.books.rejections),
        "Failed": _reasons(result.books.failures),
    }
    return [Section(title, blocks) for title, blocks in parts.items() if blocks]


def _books(result: LifecycleResult) -> list[Block]:
    skipped = [
        f"{plural(count, 'workload')} left out: {reason}"
        for reason, count in result.skipped.items()
    ]
    return [Text([booked(result), *skipped])]


def _phases(result: LifecycleResult) -> list[Block]:
    meaning = (
        "Sources: watch is the arrival of the event here; api is whole seconds of the API's fields;"
        " event is microseconds of an Event; mixed has one end of each. Missing values are counted"
        " and are no zero."
    )
    return [phase_table(result), Text([meaning], "soft")]


def _charts(result: LifecycleResult, names: Sequence[str]) -> list[Block]:
    """The phases that have values, each with its course over time and how its values spread."""
    charts = figures.drawings(result, names)
    if not charts:
        return []
    meaning = (
        "Left: how long the phase took, by when the workload was submitted. Right: how these times"
        " spread."
    )
    return [Text([meaning], "soft"), Charts(charts, "two")]


def _reasons(counts: Mapping[str, int]) -> list[Block]:
    rows = [(str(count), reason) for reason, count in counts.items()]
    return [Table(("count", "reason"), rows, texts=(1,), layout="wrapped")] if rows else []


def lifecycle_report(run: LifecycleRun) -> Report:
    """What every format shows of a lifecycle run."""
    return Report(
        head=_head(run),
        summary=lambda: summary(run.result),
        comment=lambda: comment(run.result),
        sections=lambda: sections(run.result),
        sheet=lambda: sheet(run.result, run.project, run.times),
        cases=lambda: _cases(run),
        data=lambda: {**run.result.to_dict(), "folder": run.folder},
        picture=lambda: figures.drawings(run.result, figures.GENERAL),
    )


def _head(run: LifecycleRun) -> Head:
    return Head(
        title=run.title,
        verdict=run.result.verdict,
        folder=run.folder,
        name=run.name,
        machine=words.machine(run.environment),
        began=str(run.environment.get("began", "")),
        facts=facts(run.result),
        thresholds=[
            ThresholdLine(threshold.kind, threshold.text, threshold.reason)
            for threshold in run.result.thresholds
        ],
        command_line=words.command_line(run.environment),
        environment=run.environment,
        plan={key: setting for key, setting in run.plan.items() if setting},
    )


def _cases(run: LifecycleRun) -> list[Case]:
    """The verdict, the books, and the thresholds."""
    verdict, books = run.result.verdict, run.result.books
    balanced = VerdictKind.PASS if books.balanced else VerdictKind.INVALID
    return [
        Case("verdict", verdict.kind, f"{verdict.reason}\n{verdict.remedy}".strip(), 0.0),
        Case("books", balanced, booked(run.result), 0.0),
        *(
            Case(threshold.text, threshold.kind, threshold.reason, 0.0)
            for threshold in run.result.thresholds
        ),
    ]

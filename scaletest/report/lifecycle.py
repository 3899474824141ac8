"""A lifecycle run as a report.

Its charts: a row for each phase, left its course over time, right the histogram of the same values.

Its sheet, times.csv, has a row for each workload: the columns of the original come first, in its
order; ours follow. Times are ISO 8601 in UTC, durations seconds. What is missing is empty. Every
column has one function, so that a heading cannot stand over another's values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

from scaletest.analysis.lifecycle.phases import (
    BY_NAME,
    MILESTONE_TEXTS,
    PHASES,
    WorkloadTimeline,
    at,
    began,
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
from scaletest.render import contents, svg
from scaletest.render.contents import (
    Block,
    Case,
    Charts,
    Figure,
    Head,
    Report,
    Section,
    Sheet,
    Table,
    Text,
)
from scaletest.render.histogram import histogram
from scaletest.render.numbers import NOTHING, plural, seconds, significant, unit_of
from scaletest.render.svg import Axis, Chart, Point
from scaletest.report.words import percentile

MOST_REJECTIONS = 3
HEADINGS = ("phase", "since", "values", "missing", "mean", "p50", "p95", "p99", "max", "source")
# The original's rows from top to bottom, and ours between them where something was measured.
GENERAL = ("total_decided", "total_ready", "total_finished", "total_backend_job_created")
DETAILED = (
    "accepted",
    "created",
    "job_created",
    "first_pod_created",
    "last_pod_created",
    "pod_group_created",
    "decided",
    "scheduled",
    "evicted",
    "pvc_requested",
    "pvc_bound",
    "claim_created",
    "claim_allocated",
    "ready_to_start",
    "initialized",
    "started",
    "containers_ready",
    "ready",
    "finished",
    "backend_job_created",
)
BINS = 30
# What a histogram spans at least, as a part of its values, and in seconds.
LEAST_SPAN, LEAST_SPAN_S = 0.01, 0.001
MOST_POINTS = 1500
WIDTH, HEIGHT = 560.0, 210.0


def lifecycle_report(run: LifecycleRun) -> Report:
    """What every format shows of a lifecycle run."""
    result = run.result
    balanced = VerdictKind.PASS if result.books.balanced else VerdictKind.INVALID
    return Report(
        head=_head(run),
        summary=lambda: summary(result),
        comment=lambda: summary(result),
        sections=lambda: sections(result),
        sheet=lambda: sheet(run),
        cases=lambda: [Case("books", balanced, booked(result))],
        data=lambda: {**result.to_dict(), "folder": run.folder},
        picture=lambda: drawings(result, GENERAL),
    )


def _head(run: LifecycleRun) -> Head:
    books, rate = run.result.books, run.result.throughput
    return Head(
        title=run.title,
        verdict=run.result.verdict,
        folder=run.folder,
        name=run.name,
        facts=[
            ("measured", str(books.measured)),
            ("pending", str(books.pending)),
            ("failed", str(books.failed)),
            ("lost", str(books.lost)),
            ("rejected", str(books.rejected)),
            ("pods seen", str(rate.seen)),
            ("pods scheduled a second", significant(rate.per_s) if rate.per_s else NOTHING),
        ],
        thresholds=run.result.thresholds,
        environment=run.environment,
        plan={key: setting for key, setting in run.plan.items() if setting},
    )


def summary(result: LifecycleResult) -> list[Block]:
    """The phases, what became of the workloads, and the throughput of scheduling."""
    rejections = [
        f"rejected {count}: {reason}" for reason, count in result.books.rejections.items()
    ]
    return [
        phase_table(result),
        Text([booked(result), placed(result)]),
        Text(rejections, "warning", most=MOST_REJECTIONS, rest="reason"),
        Text(_skipped(result), "warning"),
    ]


def _skipped(result: LifecycleResult) -> list[str]:
    return [
        f"left out {plural(count, 'workload')}: {reason}"
        for reason, count in result.skipped.items()
    ]


def phase_table(result: LifecycleResult, note: str = "") -> Table:
    """A row for each phase."""
    texts = (0, 1, len(HEADINGS) - 1)
    return Table(HEADINGS, list(map(_phase, result.steps)), texts, note=note)


def _phase(phase: PhaseDurations) -> tuple[str, ...]:
    spread, sources = phase.spread, sorted(phase.sources.items())
    texts = [f"{name} {count}" for name, count in sources]
    if len(sources) == 1:
        texts = [name for name, _ in sources]
    return (
        phase.step.name,
        since_text(phase.step, phase.since),
        str(spread.count),
        str(phase.missing),
        seconds(spread.mean),
        *(percentile(spread, name) for name in ("p50", "p95", "p99")),
        seconds(spread.max),
        ", ".join(texts),
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
    pods = plural(rate.seen, "pod")
    if not rate.pods:
        return f"{pods} seen, of none of which the time of scheduling is known"
    scheduled = pods if rate.pods == rate.seen else f"{rate.pods} of {rate.seen} pods"
    if rate.per_s is None:
        return f"{scheduled} scheduled"
    return (
        f"{scheduled} scheduled, {significant(rate.per_s)} pods/s on average, "
        f"{significant(rate.peak_per_s or 0.0)} pods/s in the busiest {rate.bin_s:g} s"
    )


def sections(result: LifecycleResult) -> list[Section]:
    """All sections that have anything to show."""
    meaning = (
        "Sources: watch is the arrival of the event here; api is whole seconds of the API's fields;"
        " event is microseconds of an Event; mixed has one end of each. Missing values are counted"
        " and are no zero."
    )
    return contents.page(
        {
            "Workloads": [Text([booked(result), *_skipped(result)])],
            "Phases": [phase_table(result, meaning)],
            "Pods scheduled over time": [placing(result)],
            "General: from submission on": _charts(result, GENERAL),
            "Detailed: phase by phase": _charts(result, DETAILED),
            "Rejected": [_reasons(result.books.rejections)],
            "Failed": [_reasons(result.books.failures)],
        }
    )


def _charts(result: LifecycleResult, names: Sequence[str]) -> list[Block]:
    """The phases that have values, each with its course over time and how its values spread."""
    charts = drawings(result, names)
    if not charts:
        return []
    meaning = (
        "Left: how long the phase took, by when the workload was submitted. Right: how these times"
        " spread."
    )
    return [Text([meaning], "soft"), Charts(charts, "two")]


def _reasons(counts: Mapping[str, int]) -> Table:
    rows = [{"count": str(count), "reason": reason} for reason, count in counts.items()]
    return Table.of_rows(rows, {"reason"}, layout="wrapped")


def drawings(result: LifecycleResult, names: Sequence[str]) -> list[Chart]:
    """Both charts of each of the named phases that have values, course and histogram."""
    phases = [result.step(name) for name in names]
    known = [phase for phase in phases if phase is not None and not phase.step.of_pods]
    return list(chain.from_iterable(_drawings(result, phase) for phase in known))


def _drawings(result: LifecycleResult, phase: PhaseDurations) -> tuple[Chart, Chart]:
    spread, step = phase.spread, phase.step
    # of too few values nobody knows the rare ones
    quantiles = [f"{name} {percentile(spread, name)}" for name in ("p50", "p95", "p99")]
    shares = ", ".join([f"average {seconds(spread.mean)}", *quantiles])
    since, event = MILESTONE_TEXTS[phase.since], MILESTONE_TEXTS[step.event]
    title = f"{step.title}: time between {since} and {event}"
    points = _points(result, phase)
    values = [value for _, value in points]
    return _course(step.name, title, f"{title} ({shares})", points), histogram(
        f"histogram-{step.name}",
        f"{step.title} ({shares})",
        f"{title} ({shares})",
        values,
        number=BINS,
        least_s=max(LEAST_SPAN_S, LEAST_SPAN * max(values)),
        names=(step.title.lower(), "workload"),
        size=(WIDTH, HEIGHT),
    )


def _points(result: LifecycleResult, phase: PhaseDurations) -> list[Point]:
    """Seconds since the first submission, and the duration in s of each workload."""
    starts = list(map(began, result.courses))
    zero = min((start for start in starts if start is not None), default=0.0)
    return [
        (start - zero, value)
        for start, value in zip(starts, phase.values, strict=True)
        if start is not None and value is not None
    ]


def _course(name: str, title: str, description: str, points: Sequence[Point]) -> Chart:
    top = max(value for _, value in points)
    size, unit = unit_of(max(top, 1e-6))
    span = max(start for start, _ in points) or 1.0
    chart = Chart(
        f"course-{name}",
        title,
        description,
        Axis("submitted after, s", 0.0, span * 1.01),
        Axis(unit, 0.0, svg.ceiling(top / size * 1.05, 5), most=5),
        WIDTH,
        HEIGHT,
    )
    scaled = [(start, value / size) for start, value in thinned(points)]
    chart.line(scaled, "c-data")
    if len(scaled) == 1:
        chart.dot(*scaled[0], "c-dot")
    return chart


def thinned(points: Sequence[Point]) -> list[Point]:
    """Few enough points for a picture: of each run of neighbours the lowest and the highest, none
    made up.
    """
    size = -(-2 * len(points) // MOST_POINTS)
    if size <= 2:
        return list(points)
    ends_of_groups: list[Point] = []
    for start in range(0, len(points), size):
        group = points[start : start + size]
        ends = {min(group, key=lambda point: point[1]), max(group, key=lambda point: point[1])}
        ends_of_groups += sorted(ends)
    return ends_of_groups


def placing(result: LifecycleResult) -> Figure | None:
    """Pods scheduled a second over time; None when there were none."""
    rate = result.throughput
    if not rate.counts:
        return None
    values = [count / rate.bin_s for count in rate.counts]
    edges = [index * rate.bin_s for index in range(len(values) + 1)]
    chart = Chart(
        "placing",
        "Pods scheduled a second",
        plural(rate.pods, "pod"),
        Axis("time, s", 0.0, max(1.0, edges[-1])),
        Axis("pods/s", 0.0, svg.ceiling(max(values) * 1.05)),
        2 * WIDTH,
        HEIGHT,
    )
    chart.stairs(edges, values, "c-data")
    caption = f"{chart.title}, {chart.description} in all."
    return Figure(chart, caption, (0.75 * WIDTH, HEIGHT))


def sheet(run: LifecycleRun) -> Sheet:
    """The whole table; workloads in the order of submission."""
    result = run.result
    columns: dict[str, Callable[[WorkloadTimeline], str]] = {
        "Job Name": lambda timeline: timeline.workload.name,
        "Namespace": lambda timeline: timeline.workload.namespace,
        "projectName": lambda timeline: (
            run.project or runai.project_of(timeline.workload.namespace)
        ),
    }
    for heading, name in runai.TIME_COLUMNS.items():
        columns[heading] = partial(_time, name)
    own = [step.name for step in PHASES if not step.of_pods]
    for name in dict.fromkeys((*runai.DURATION_COLUMNS, *own)):
        since = reference(BY_NAME[name], result.courses)
        columns[BY_NAME[name].title] = partial(_duration, name, since, run.times)
    columns |= {
        "Fate": lambda timeline: str(fate(timeline, result.until)),
        "Pods": lambda timeline: str(len(timeline.workload.pods)),
        "Reason": lambda timeline: timeline.workload.reason,
    }
    return Sheet.of_columns(columns, result.courses, line_end="\n")


def _time(name: str, timeline: WorkloadTimeline) -> str:
    return iso(at(timeline.stamp(name))) or ""


def _duration(name: str, since: str, times: str, timeline: WorkloadTimeline) -> str:
    taken = duration(BY_NAME[name], timeline, since, times)
    return f"{taken.value_s:.6f}" if taken else ""

"""Draw a lifecycle run: pods over time, phases of single workloads, and each phase over the run."""

import math
from collections.abc import Sequence
from itertools import chain

from scaletest.lifecycle.judging import chart_data
from scaletest.lifecycle.judging.figures import PhaseDurations
from scaletest.lifecycle.judging.result import LifecycleResult
from scaletest.lifecycle.judging.timeline import MILESTONE_TEXTS, start_time
from scaletest.render.axis import Axis, axis_end
from scaletest.render.blocks import Figure
from scaletest.render.chart import Chart, Point
from scaletest.render.histogram import draw_histogram
from scaletest.render.numbers import format_seconds, unit_of
from scaletest.report.words import format_percentile

# Widths and heights in px.
WIDE = (860.0, 300.0)
PHONE = (360.0, 300.0)
PANEL = (460.0, 190.0)
# What a line of pods over time shows: CSS class, and name in the legend.
POD_LINES = {
    "submitted": ("c-ideal", "submitted"),
    "scheduled": ("c-law", "scheduled"),
    "ready": ("c-data", "became ready"),
}
# What a workload waits for before each milestone.
WAITED_FOR = {
    "created": "creation of the object",
    "last_pod_created": "creation of its pods",
    "claim_allocated": "allocation of devices",
    "scheduled": "scheduling",
    "ready_to_start": "sandbox",
    "started": "start of containers",
    "ready": "readiness",
}
MOST_POINTS = 1200


def pods_figure(result: LifecycleResult) -> Figure | None:
    """Draw pods over time; None where no pod was scheduled."""
    pods = chart_data.pods_over_time(result.timelines)
    if pods is None:
        return None
    size, unit = time_unit(pods.moments_s[-1])
    top = max(map(max, pods.counts.values()))
    # marks at whole numbers only
    most_marks = min(6, top + 1)
    chart = Chart(
        "pods",
        "Pods over time",
        "pods that were submitted, were scheduled, and became ready so far",
        Axis(f"time, {unit}", 0.0, pods.moments_s[-1] / size, max_marks=8),
        Axis("pods", 0.0, max(1.0, axis_end(top * 1.02, most_marks)), max_marks=most_marks),
        *WIDE,
    )
    for name, values in pods.counts.items():
        css, text = POD_LINES[name]
        chart.legend(text, css)
        chart.line(
            [
                (moment_s / size, float(value))
                for moment_s, value in zip(pods.moments_s, values, strict=True)
            ],
            css,
        )
    caption = "How many pods had come so far, by the time since the first submission."
    return Figure(chart, caption, PHONE)


def time_unit(span_s: float) -> tuple[float, str]:
    """Return the unit of an axis of time: minutes for long runs."""
    return (60.0, "min") if span_s >= 600.0 else (1.0, "s")


def waterfall_figure(result: LifecycleResult) -> Figure | None:
    """Draw the phases of single workloads below each other; None where none is known."""
    rows = chart_data.waterfall(result.timelines)
    longest_s = max((row.ends[-1][1] for row in rows), default=0.0)
    if not longest_s:
        return None
    # names of the rows: of few workloads their own, of many their ranks
    names = [row.name[:16] for row in rows]
    if len(rows) == chart_data.MOST_ROWS:
        shares = (100 * number / (len(rows) - 1) for number in range(1, len(rows) - 1))
        names = ["fastest", *(f"{share:.0f} %" for share in shares), "slowest"]
    # the milestones of the rows with the class of the bar that leads there
    passed = {name for name, _ in chain.from_iterable(row.ends for row in rows)}
    classes = {
        name: f"c-phase-{number}" for number, name in enumerate(WAITED_FOR) if name in passed
    }
    size, unit = unit_of(longest_s)
    last = MILESTONE_TEXTS[rows[-1].ends[-1][0]]
    chart = Chart(
        "waterfall",
        "Phases of single workloads",
        f"how long each phase took until {last}, for workloads from the fastest to the slowest",
        Axis(f"time since submission, {unit}", 0.0, longest_s / size * 1.01, max_marks=8),
        Axis("workloads by speed", -0.5, len(rows) - 0.5, marks=range(len(rows)), names=names),
        WIDE[0],
        90.0 + 24.0 * len(rows),
    )
    for name, css in classes.items():
        chart.legend(WAITED_FOR[name], css, "area")
    for number, row in enumerate(rows):
        began_s = 0.0
        for name, end_s in row.ends:
            if end_s > began_s:
                taken, end = format_seconds(end_s - began_s), format_seconds(end_s)
                tip = f"{row.name}: {WAITED_FOR[name]} {taken}, until {end}"
                start, css = began_s / size, classes[name]
                chart.bar(start, end_s / size, number + 0.36, css, tip, bottom=number - 0.36)
            began_s = end_s
    caption = (
        f"Where the time until {last} goes, from the fastest workload to the slowest. A bar is one"
        " workload, not a mean; 50 % is the workload that half of all are as fast as."
    )
    return Figure(chart, caption, (PHONE[0], 130.0 + 24.0 * len(rows)))


def phase_charts(result: LifecycleResult, names: Sequence[str]) -> list[Chart]:
    """Draw both charts of each named phase that has values: over the run, and its histogram."""
    charts = []
    zero_s = chart_data.first_submission(result.timelines)
    starts_s = [start_time(timeline) for timeline in result.timelines]
    for durations in map(result.find_phase, names):
        if durations is None or durations.phase.of_pods:
            continue
        # seconds since the first submission, and the duration in s of each workload
        points = []
        for start_s, value_s in zip(starts_s, durations.values, strict=True):
            if start_s is not None and value_s is not None:
                points.append((start_s - zero_s, value_s))
        charts += _draw_phase(durations, points)
    return charts


def _draw_phase(durations: PhaseDurations, points: Sequence[Point]) -> list[Chart]:
    """Draw a phase over the run, a dot for each workload, and the histogram of its durations."""
    spread = durations.spread
    texts = [f"mean {format_seconds(spread.mean)}"]
    for percentile in ("p50", "p95", "p99"):
        if getattr(spread, percentile):
            texts.append(f"{percentile} {format_percentile(spread, percentile)}")
    statistics = ", ".join(texts)
    description = f"{durations.text} ({statistics})"
    values = [value_s for _, value_s in points]
    length_s, unit = unit_of(max(max(values), 1e-6))
    span_s = max(start_s for start_s, _ in points) or 1.0
    size, time = time_unit(span_s)
    over_run = Chart(
        f"course-{durations.phase.name}",
        durations.text,
        description,
        Axis(f"submitted after, {time}", 0.0, span_s / size * 1.01),
        Axis(f"time, {unit}", 0.0, axis_end(max(values) / length_s * 1.05, 5), max_marks=5),
        *PANEL,
    )
    over_run.dots(
        [(start_s / size, value_s / length_s) for start_s, value_s in thin_points(points)],
        "c-dots",
    )
    histogram = draw_histogram(
        f"histogram-{durations.phase.name}",
        statistics,
        description,
        values,
        number=30,
        # what it spans at least, so that alike values do not seem to differ much
        least_s=max(0.001, 0.01 * max(values)),
        names=(durations.text, "workload"),
        size=PANEL,
    )
    return [over_run, histogram]


def thin_points(points: Sequence[Point]) -> list[Point]:
    """Thin points for a picture, none made up.

    One of so many is kept, so that the picture is as dense as the run; and the highest of those
    that ten of them stand for, so that no slow one is missing.
    """
    every = math.ceil(len(points) / MOST_POINTS)
    if every <= 1:
        return list(points)
    group = 10 * every
    highest = [
        max(points[start : start + group], key=lambda point: point[1])
        for start in range(0, len(points), group)
    ]
    return sorted({*points[::every], *highest})

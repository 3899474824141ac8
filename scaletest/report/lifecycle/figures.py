"""The figures of a lifecycle run: rows are steps, left the course over time, right the histogram of
the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.analysis.lifecycle.phases import MILESTONE_TEXTS, began
from scaletest.analysis.lifecycle.result import LifecycleResult, PhaseDurations, PodThroughput
from scaletest.render import svg
from scaletest.render.contents import Figure
from scaletest.render.numbers import NOTHING, plural, seconds, unit_of
from scaletest.render.svg import Axis, Chart

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
# What the axis of a histogram spans at least, as a part of its values.
LEAST_SPAN = 0.01
MOST_POINTS = 1500
WIDTH, HEIGHT = 560.0, 210.0


@dataclass(frozen=True, slots=True)
class Panel:
    """One row. points: (seconds since the first submission, value in s) in that order; edges and
    counts: histogram.
    """

    step: PhaseDurations
    title: str
    shares: str
    points: tuple[tuple[float, float], ...]
    low: float
    high: float
    counts: tuple[int, ...]

    @property
    def spread(self) -> str:
        """The title of the right side."""
        return f"{self.step.step.title} ({self.shares})"


def panels(result: LifecycleResult, names: Sequence[str]) -> list[Panel]:
    """Those of the named steps that have values."""
    phases = [result.step(name) for name in names]
    return [
        _panel(result, phase) for phase in phases if phase is not None and not phase.step.of_pods
    ]


def _panel(result: LifecycleResult, phase: PhaseDurations) -> Panel:
    starts = [began(each) for each in result.courses]
    zero = min((at for at in starts if at is not None), default=0.0)
    points = [
        (at - zero, value)
        for at, value in zip(starts, phase.values, strict=True)
        if at is not None and value is not None
    ]
    low, high, counts = bins([value for _, value in points])
    spread = phase.spread
    shares = [f"average {seconds(spread.mean)}"]
    parts = (("p50", spread.p50), ("p95", spread.p95), ("p99", spread.p99))
    # of too few values nobody knows the rare ones
    shares += [f"{name} {seconds(part.value) if part else NOTHING}" for name, part in parts]
    title = (
        f"{phase.step.title}: time between {MILESTONE_TEXTS[phase.since]} and"
        f" {MILESTONE_TEXTS[phase.step.event]}"
    )
    return Panel(phase, title, ", ".join(shares), tuple(points), low, high, counts)


def bins(values: Sequence[float]) -> tuple[float, float, tuple[int, ...]]:
    """Low end, high end, and how many values lie in each of the bins between."""
    low, high = min(values), max(values)
    # values that are nearly alike stand in the middle of an axis whose marks can be read
    least = max(0.001, LEAST_SPAN * high)
    if high - low < least:
        middle = (low + high) / 2
        low, high = max(0.0, middle - least / 2), max(least, middle + least / 2)
    width = (high - low) / BINS
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, max(0, int((value - low) / width)))] += 1
    return low, high, tuple(counts)


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Few enough points for a picture: of each run of neighbours the lowest and the highest, none
    made up.
    """
    size = -(-2 * len(points) // MOST_POINTS)
    if size <= 2:
        return list(points)
    ends_of_groups: list[tuple[float, float]] = []
    for start in range(0, len(points), size):
        group = points[start : start + size]
        ends = {min(group, key=lambda point: point[1]), max(group, key=lambda point: point[1])}
        ends_of_groups += sorted(ends)
    return ends_of_groups


def drawings(result: LifecycleResult, names: Sequence[str]) -> list[Chart]:
    """Both charts of each of the named steps that have values."""
    return list(chain.from_iterable(map(charts, panels(result, names))))


def charts(panel: Panel) -> tuple[Chart, Chart]:
    """The row as SVG: left and right."""
    name = panel.step.step.name
    top = max(value for _, value in panel.points)
    size, unit = unit_of(max(top, 1e-6))
    span = max(at for at, _ in panel.points) or 1.0
    left = Chart(
        f"course-{name}",
        panel.title,
        f"{panel.title} ({panel.shares})",
        Axis("submitted after, s", 0.0, span * 1.01),
        Axis(unit, 0.0, svg.ceiling(top / size * 1.05, 5), most=5),
        WIDTH,
        HEIGHT,
    )
    points = [(at, value / size) for at, value in thinned(panel.points)]
    left.line(points, "c-data")
    if len(points) == 1:
        left.dot(*points[0], "c-dot")
    return left, _histogram(panel)


def _histogram(panel: Panel) -> Chart:
    size, unit = unit_of(max(panel.high, 1e-6))
    right = Chart(
        f"histogram-{panel.step.step.name}",
        panel.spread,
        f"{panel.title} ({panel.shares})",
        Axis(
            f"{panel.step.step.title.lower()}, {unit}", panel.low / size, panel.high / size, most=7
        ),
        Axis("workloads", 0.0, svg.ceiling(max(panel.counts) * 1.05, 5), most=5),
        WIDTH,
        HEIGHT,
    )
    width = (panel.high - panel.low) / BINS / size
    for index, count in enumerate(panel.counts):
        if count:
            low = panel.low / size + index * width
            tip = f"{count} from {seconds(low * size)} to {seconds((low + width) * size)}"
            right.bar(low, low + width, count, "c-bar", tip)
    return right


def placing(result: LifecycleResult) -> Figure | None:
    """Pods scheduled a second over time; None when there were none."""
    rate = result.throughput
    if not rate.counts:
        return None
    values = [count / rate.bin_s for count in rate.counts]
    wide, narrow = [
        _placing(rate, values, f"placing-{index}", width)
        for index, width in enumerate((2 * WIDTH, 0.75 * WIDTH))
    ]
    return Figure(wide, narrow, f"{wide.title}, {wide.description} in all.")


def _placing(rate: PodThroughput, values: Sequence[float], name: str, width: float) -> Chart:
    chart = Chart(
        name,
        "Pods scheduled a second",
        plural(rate.pods, "pod"),
        Axis("time, s", 0.0, max(1.0, len(values) * rate.bin_s)),
        Axis("pods/s", 0.0, svg.ceiling(max(values) * 1.05)),
        width,
        HEIGHT,
    )
    stairs = chain.from_iterable(
        ((index * rate.bin_s, value), ((index + 1) * rate.bin_s, value))
        for index, value in enumerate(values)
    )
    chart.line(list(stairs), "c-data")
    return chart

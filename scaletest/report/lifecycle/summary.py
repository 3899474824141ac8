"""What a terminal shows of a lifecycle run, and what a comment in CI shows."""

from __future__ import annotations

from scaletest.analysis.lifecycle.phases import since_text
from scaletest.analysis.lifecycle.result import LifecycleResult, PhaseDurations
from scaletest.render.contents import Block, Table, Text
from scaletest.render.numbers import NOTHING, plural, seconds, significant
from scaletest.report.words import SIGNS

MOST_REJECTIONS = 3
HEADINGS = ("phase", "since", "values", "missing", "mean", "p50", "p95", "p99", "max", "source")


def summary(result: LifecycleResult) -> list[Block]:
    """The phases, what became of the workloads, and the throughput of scheduling."""
    rejections = [f"{count}: {reason}" for reason, count in result.books.rejections.items()]
    skipped = [f"{plural(count, 'workload')}: {reason}" for reason, count in result.skipped.items()]
    thresholds = [
        f"{SIGNS[threshold.kind]} {threshold.text} ({threshold.reason})"
        for threshold in result.thresholds
    ]
    return [
        phase_table(result),
        Text([booked(result), placed(result)]),
        Text(rejections, "warning", "rejected", most=MOST_REJECTIONS, rest="reason"),
        Text(skipped, "warning", "left out"),
        Text(thresholds, label="threshold"),
    ]


def comment(result: LifecycleResult) -> list[Block]:
    """The same for a comment in CI, which shows the thresholds itself."""
    return summary(result)[:-1]


def phase_table(result: LifecycleResult) -> Table:
    """A row for each phase."""
    texts = (0, 1, len(HEADINGS) - 1)
    return Table(HEADINGS, [cells(phase) for phase in result.steps], texts=texts)


def cells(one: PhaseDurations) -> tuple[str, ...]:
    """One step in words."""
    spread = one.spread
    quantiles = [
        seconds(found.value) if found else NOTHING for found in (spread.p50, spread.p95, spread.p99)
    ]
    sources = ", ".join(
        name if len(one.sources) == 1 else f"{name} {count}"
        for name, count in sorted(one.sources.items())
    )
    return (
        one.step.name,
        since_text(one.step, one.since),
        str(spread.count),
        str(one.missing),
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

"""The summary of a lifecycle run on a terminal: books, a line for each step, thresholds, the
verdict last.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from scaletest.analysis.lifecycle.phases import since_text
from scaletest.analysis.lifecycle.result import LifecycleResult, PhaseDurations
from scaletest.model.verdict import VerdictKind
from scaletest.render.numbers import NOTHING, plural, seconds, significant
from scaletest.render.text import clean
from scaletest.report.terminal import SIGNS, verdict_line

HEADINGS = ("step", "since", "values", "missing", "mean", "p50", "p95", "p99", "max", "source")


def summary(result: LifecycleResult, console: Console, heading: str, saved: str = "") -> None:
    """Print the whole result."""

    def say(line: str, style: str = "") -> None:
        console.print(Text(clean(line).replace("\n", " "), style=style), soft_wrap=True)

    say(heading)
    for number, line in enumerate(table(result.steps)):
        say(line, "bold" if number == 0 else "")
    say(booked(result))
    say(placed(result))
    for reason, count in [*result.books.rejections.items()][:3]:
        say(f"rejected {count}: {reason}", "yellow")
    for reason, count in result.skipped.items():
        say(f"left out {plural(count, 'workload')}: {reason}", "yellow")
    for one in result.thresholds:
        say(f"threshold {SIGNS[one.kind]} {one.text} ({one.reason})")
    console.print(verdict_line(result.verdict), soft_wrap=True)
    if result.verdict.remedy and result.verdict.kind is not VerdictKind.PASS:
        say(f"  what to do: {result.verdict.remedy}")
    if saved:
        say(f"saved in {saved}")


def table(steps: Sequence[PhaseDurations]) -> list[str]:
    """Aligned lines, the heading first."""
    rows = [HEADINGS, *map(cells, steps)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(HEADINGS))]
    left = {0, 1, len(HEADINGS) - 1}
    return [
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


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

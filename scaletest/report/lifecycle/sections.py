"""What a page shows of a lifecycle run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.render.contents import Block, Charts, Section, Table, Text
from scaletest.render.numbers import NOTHING, plural, significant
from scaletest.report.lifecycle import figures
from scaletest.report.lifecycle.summary import booked, phase_table


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
        "Pods scheduled over time": [Charts([placing], "one")] if placing else [],
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
    panels = figures.panels(result, names)
    if not panels:
        return []
    meaning = (
        "Left: how long the phase took, by when the workload was submitted. Right: how these times"
        " spread."
    )
    charts = [chart for panel in panels for chart in figures.charts(panel)]
    return [Text([meaning], "soft"), Charts(charts, "two")]


def _reasons(counts: Mapping[str, int]) -> list[Block]:
    rows = [(str(count), reason) for reason, count in counts.items()]
    return [Table(("count", "reason"), rows, texts=(1,), layout="wrapped")] if rows else []

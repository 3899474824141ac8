"""A client's load as texts, tables and charts, for its page.

A load has no verdict: it is whatever somebody asked for, and may still go on.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from scaletest.load.places import PlaceCount, RequestPlace, highest_known
from scaletest.load.snapshot import LoadSnapshot
from scaletest.load.statistics import MOST_POINTS
from scaletest.model.checks import cut_text
from scaletest.model.histogram import NEEDED, DurationSummary
from scaletest.render import numbers
from scaletest.render.blocks import Cell, Facts, Share, Table
from scaletest.render.text import device_name

MOST_ROWS = 50
# Of a foreign name in a table.
LONGEST_NAME = 100
# The parts of a place that each table has, by their titles.
PLACE_COLUMNS = {
    "worker": {"Worker": "worker", "Pod": "pod", "Node": "node", "Device": "device"},
    "node": {"Node": "node"},
    "device": {"Device": "device", "Node": "node"},
}
TIMES = {
    "wait": ("Wait in the queue", "From enqueue to start, by the clock of Redis."),
    "run": ("Run", "Around the workload, in the worker."),
    "overhead": ("Overhead of scaletest", "Total, less wait and run."),
    "total": (
        "Total",
        "At the client, from the start to the reply; in open load, from the intended start.",
    ),
}
SPARSE = f"The 95th percentile is drawn where a second has {NEEDED['p95']} requests or more."


class LoadChart(NamedTuple):
    """A chart that the script of the page draws, second by second over the last minutes."""

    key: str  # the script's name for it
    title: str
    caption: str
    lines: Mapping[str, str]  # their classes, by their names


def charts_of(snapshot: LoadSnapshot) -> list[LoadChart]:
    """Return the charts of a load: its rate, the requests in flight, and their times."""
    rates = {"succeeded": "c-data", "failed": "c-fail"}
    in_flight = {"highest": "c-data"}
    # what was asked for is drawn beside the rate or the requests in flight, whichever is steered
    if snapshot.rate is not None:
        rates["asked for"] = "c-wanted"
    elif snapshot.resume_with is not None:
        in_flight["asked for"] = "c-wanted"
    times = {"median": "c-data", "95th percentile": "c-law", "longest": "c-ideal"}
    return [
        LoadChart("rate", "Requests per second", f"The last {MOST_POINTS // 60} minutes.", rates),
        LoadChart("in_flight", "Requests in flight", "Submitted and not answered yet.", in_flight),
        *(LoadChart(name, title, caption, times) for name, (title, caption) in TIMES.items()),
    ]


def describe_load(snapshot: LoadSnapshot) -> str:
    """Describe the load as it is now."""
    if 0 in (snapshot.parallel, snapshot.rate):
        return "paused"
    in_flight = numbers.plural(snapshot.parallel, "request")
    return f"{in_flight} kept in flight" if snapshot.load == "closed" else snapshot.load


def format_rate(rate: float) -> str:
    """Format a rate with four digits, or with all digits before the point where there are more."""
    if rate >= 1000 or not rate:
        return numbers.group_thousands(round(rate))
    return numbers.format_significant(rate, 4)


def times_table(snapshot: LoadSnapshot) -> Table:
    """Make a table of the times of requests that succeeded."""
    rows: list[dict[str, Cell]] = []
    for name, (title, _) in TIMES.items():
        times = snapshot.times[name]
        cells = {
            "shortest": times.low_s,
            "mean": times.mean_s,
            "median": times.quantiles_s["p50"],
            "90 %": times.quantiles_s["p90"],
            "95 %": times.quantiles_s["p95"],
            "99 %": times.quantiles_s["p99"],
            "longest": times.high_s,
        }
        texts = {heading: numbers.format_seconds(time_s) for heading, time_s in cells.items()}
        rows.append({"Time": title, **texts})
    return Table.of_rows(rows, texts=("Time",))


def client_facts(snapshot: LoadSnapshot) -> Facts:
    """Return how well the client kept up with the load."""

    def highest_text(summary: DurationSummary) -> str:
        late_s, high_s = summary.quantiles_s["p99"], summary.high_s
        return f"p99 {numbers.format_seconds(late_s)}, longest {numbers.format_seconds(high_s)}"

    return Facts(
        [
            ("Event-loop delay", highest_text(snapshot.times["turn"])),
            ("Late submissions", highest_text(snapshot.times["late"])),
            ("Refused by a full queue", numbers.group_thousands(snapshot.refused)),
            (
                "Submitted again after a crash of Redis",
                numbers.group_thousands(snapshot.resubmitted),
            ),
        ]
    )


def place_tables(snapshot: LoadSnapshot) -> dict[str, Table]:
    """Make tables of requests by worker, node and device, the busiest first.

    All are there, also empty ones: a page updates them in place.
    """
    return {name: _table_by(snapshot, name, columns) for name, columns in PLACE_COLUMNS.items()}


def _table_by(snapshot: LoadSnapshot, name: str, columns: Mapping[str, str]) -> Table:
    """Make a table with a row for each worker, node or device.

    columns: the parts of a place that make a row, by their titles. A table or a column that tells
    nothing, as that of the only node, is empty or left out.
    """
    groups: dict[tuple[str, ...], list[PlaceCount]] = defaultdict(list)
    for row in snapshot.places:
        groups[tuple(_part_of_place(row.place, part) for part in columns.values())].append(row)
    # how many values each column has
    numbers_of_values = [len(set(values)) for values in zip(*groups, strict=True)]
    if not groups or (name != "worker" and numbers_of_values[0] < 2):
        return Table((), ())

    ordered = sorted(
        groups.items(), key=lambda group: -sum(part.succeeded + part.failed for part in group[1])
    )
    rows = []
    for key, parts in ordered[:MOST_ROWS]:
        cells: dict[str, Cell] = {}
        for title, text, number in zip(columns, key, numbers_of_values, strict=True):
            is_telling = not cells or number > 1
            cells[title] = (text or numbers.NOTHING) if is_telling else ""
        # the totals of all parts, as if they were one place
        merged = PlaceCount(
            parts[0].place,
            sum(part.succeeded for part in parts),
            sum(part.failed for part in parts),
            sum(part.run_total_s for part in parts),
            highest_known(part.run_high_s for part in parts),
        )
        share = numbers.format_share(merged.succeeded, snapshot.succeeded)
        cells |= {
            "Succeeded": numbers.group_thousands(merged.succeeded),
            "Share": Share(merged.succeeded / max(1, snapshot.succeeded), share),
            "Failed": numbers.group_thousands(merged.failed),
            "Mean run": numbers.format_seconds(merged.run_mean_s),
            "Longest run": numbers.format_seconds(merged.run_high_s),
        }
        rows.append(cells)
    left_out = len(ordered) - len(rows)
    note = f"{numbers.plural(left_out, 'more row')} in the statistics as JSON." if left_out else ""
    return Table.of_rows(rows, texts=(*columns, "Share"), foreign=tuple(columns), note=note)


def _part_of_place(place: RequestPlace, part: str) -> str:
    """Return the worker, pod, node or device of a place, shortened."""
    text: str = getattr(place, part)
    if part == "device":
        text = device_name(text) if text else ""
    return cut_text(" ".join(text.splitlines()), LONGEST_NAME)

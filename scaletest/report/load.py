"""A client's load as texts, tables and charts, for its page.

A load has no verdict: it is whatever somebody asked for, and may still go on.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from scaletest.load.places import PlaceCount, highest_known
from scaletest.load.snapshot import LoadSnapshot
from scaletest.load.statistics import MOST_POINTS
from scaletest.model.checks import cut_text
from scaletest.model.histogram import NEEDED, DurationSummary
from scaletest.render import numbers
from scaletest.render.blocks import Cell, Facts, Share, Table
from scaletest.render.text import device_name

# Makes the first cells of the row of a group of places.
FirstCells = Callable[[Sequence[PlaceCount]], dict[str, Cell]]

MOST_ROWS = 50
# Of a foreign name in a table.
LONGEST_NAME = 100
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

    A table or a column that tells nothing, as that of the only node, is empty or left out.
    """
    # columns that tell something
    all_places = [row.place for row in snapshot.places]
    has_nodes = len({place.node for place in all_places}) > 1
    has_pods = any(place.pod not in (place.node, place.worker) for place in all_places)
    has_devices = any(place.device for place in all_places)

    # the first cells of the row of a group
    def worker_cells(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        place = parts[0].place
        devices = sorted({device_name(part.place.device) for part in parts} - {""})
        return {
            "Worker": _name(place.worker or place.pod),
            "Pod": _name(place.pod, has_pods),
            "Node": _name(place.node, has_nodes),
            "Devices": cut_text(" ".join(devices), LONGEST_NAME),
        }

    def node_cells(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        return {"Node": _name(parts[0].place.node)}

    def device_cells(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        place = parts[0].place
        return {
            "Device": _name(device_name(place.device) or "no device"),
            "Node": _name(place.node, has_nodes),
        }

    # all tables are there, also empty ones: a page updates them in place
    tables = dict.fromkeys(("worker", "node", "device"), Table((), ()))
    tables["worker"] = _group_places(
        snapshot, lambda row: row.place._replace(device=""), worker_cells
    )
    if has_nodes:
        tables["node"] = _group_places(snapshot, attrgetter("place.node"), node_cells)
    if has_devices:
        by_device = attrgetter("place.node", "place.device")
        tables["device"] = _group_places(snapshot, by_device, device_cells)
    return tables


def _group_places(
    snapshot: LoadSnapshot, key: Callable[[PlaceCount], object], first_cells: FirstCells
) -> Table:
    """Make a table with a row for each group of places, the busiest first.

    key: what the places of a group have in common.
    """
    groups: dict[object, list[PlaceCount]] = {}
    for row in snapshot.places:
        groups.setdefault(key(row), []).append(row)
    ordered = sorted(
        groups.values(), key=lambda parts: -sum(part.succeeded + part.failed for part in parts)
    )
    rows = []
    for parts in ordered[:MOST_ROWS]:
        # the totals of all parts, as if they were one place
        merged = PlaceCount(
            parts[0].place,
            sum(part.succeeded for part in parts),
            sum(part.failed for part in parts),
            sum(part.run_total_s for part in parts),
            highest_known(part.run_high_s for part in parts),
        )
        rows.append(
            {
                **first_cells(parts),
                "Succeeded": numbers.group_thousands(merged.succeeded),
                "Share": Share(
                    merged.succeeded / max(1, snapshot.succeeded),
                    numbers.format_share(merged.succeeded, snapshot.succeeded),
                ),
                "Failed": numbers.group_thousands(merged.failed),
                "Mean run": numbers.format_seconds(merged.run_mean_s),
                "Longest run": numbers.format_seconds(merged.run_high_s),
            }
        )
    left_out = len(ordered) - len(rows)
    note = f"{numbers.plural(left_out, 'more row')} in the statistics as JSON." if left_out else ""
    titles = ("Worker", "Pod", "Node", "Device", "Devices")
    return Table.of_rows(rows, texts=(*titles, "Share"), foreign=titles, note=note)


def _name(text: str, is_telling: bool = True) -> str:
    """Shorten a name; "" where it tells nothing."""
    if not is_telling:
        return ""
    return cut_text(" ".join(text.splitlines()), LONGEST_NAME) or numbers.NOTHING

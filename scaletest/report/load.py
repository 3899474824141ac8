"""A client's load as texts and tables, for its page, and as one HTML file.

A load has no verdict: it is whatever somebody asked for, and may still go on.
"""

import operator
from collections.abc import Callable, Sequence

from scaletest.load.places import PlaceCount, highest_known
from scaletest.load.snapshot import LoadSnapshot
from scaletest.model.checks import cut_text
from scaletest.model.histogram import DurationSummary
from scaletest.render import contents, numbers
from scaletest.render.blocks import Cell, Charts, Facts, Pairs, Share, Table, Text
from scaletest.render.style import STYLE
from scaletest.render.text import Markup, device_name
from scaletest.report import failures
from scaletest.report.formats import html
from scaletest.report.load_charts import SPARSE, TIMES, figures

_Names = Callable[[Sequence[PlaceCount]], dict[str, Cell]]

MOST_ROWS = 50
# Of a foreign name in a table.
LONGEST_NAME = 100


def page(snapshot: LoadSnapshot) -> str:
    """Make the whole file."""
    charts = []
    for _, lines, chart in figures(snapshot):
        for line in lines:
            chart.legend(line.name, line.css)
        charts.append(chart)
    sections = contents.make_page(
        {
            "Over time": (Charts(charts, "two"), Text([SPARSE], "soft")),
            "Times of requests that succeeded": (times(snapshot),),
            "Outcomes": (outcomes(snapshot),),
            "Failures": (failures.table(snapshot.failures, MOST_ROWS),),
            **{f"By {name}": (table,) for name, table in places(snapshot).items()},
            "The client itself": (itself(snapshot),),
        }
    )
    return (
        html.environment()
        .get_template("load.html")
        .render(
            title=f"Load of queue {snapshot.queue}",
            load=describe_load(snapshot),
            now=numbers.format_instant(snapshot.now_s),
            facts=facts(snapshot),
            sections=sections,
            style=Markup(STYLE),
        )
    )


def describe_load(snapshot: LoadSnapshot) -> str:
    """Word the load as it is now."""
    if 0 in (snapshot.parallel, snapshot.rate):
        return "paused"
    if snapshot.load == "closed":
        return f"{numbers.plural(snapshot.parallel, 'request')} kept in flight"
    return snapshot.load


def per_s(rate: float) -> str:
    """Word a rate with four digits, or all that are left of the point."""
    if rate >= 1000 or not rate:
        return numbers.group_thousands(round(rate))
    return numbers.format_significant(rate, 4)


def facts(snapshot: LoadSnapshot) -> Pairs:
    """Return the few numbers that everybody looks for."""
    count = snapshot.succeeded + snapshot.failed
    return (
        ("requests per second", per_s(snapshot.per_s)),
        ("succeeded", numbers.group_thousands(snapshot.succeeded)),
        ("failed", numbers.group_thousands(snapshot.failed)),
        ("share that succeeded", numbers.format_share(snapshot.succeeded, count)),
        ("measured for", numbers.format_duration(snapshot.elapsed_s)),
    )


def times(snapshot: LoadSnapshot) -> Table:
    """Make a table of the times of requests that succeeded."""
    names = {"median": "p50", "90 %": "p90", "95 %": "p95", "99 %": "p99"}

    def row(title: str, summary: DurationSummary) -> dict[str, Cell]:
        seconds = {
            "shortest": summary.low_s,
            "mean": summary.mean_s,
            **{name: summary.quantiles_s[key] for name, key in names.items()},
            "longest": summary.high_s,
        }
        return {
            "Time": title,
            **{name: numbers.format_seconds(time_s) for name, time_s in seconds.items()},
        }

    return Table.of_rows(
        [row(title, snapshot.times[name]) for name, (title, _) in TIMES.items()], texts=("Time",)
    )


def outcomes(snapshot: LoadSnapshot) -> Facts:
    """Count how requests ended."""
    return Facts(
        [
            (name.replace("_", " "), numbers.group_thousands(count))
            for name, count in snapshot.outcomes.items()
        ]
    )


def itself(snapshot: LoadSnapshot) -> Facts:
    """Tell how well the client kept up."""

    def worst(summary: DurationSummary) -> str:
        late_s, high_s = summary.quantiles_s["p99"], summary.high_s
        return f"p99 {numbers.format_seconds(late_s)}, longest {numbers.format_seconds(high_s)}"

    return Facts(
        [
            ("Event-loop delay", worst(snapshot.times["turn"])),
            ("Late submissions", worst(snapshot.times["late"])),
            ("Refused by a full queue", numbers.group_thousands(snapshot.refused)),
            (
                "Submitted again after a crash of Redis",
                numbers.group_thousands(snapshot.resubmitted),
            ),
        ]
    )


def places(snapshot: LoadSnapshot) -> dict[str, Table]:
    """Make tables of requests by worker, node and device, the busiest first.

    A table or a column that tells nothing, as that of the only node, is empty or left out.
    """
    counts = [row.place for row in snapshot.places]
    has_nodes = len({place.node for place in counts}) > 1
    has_pods = any(place.pod not in (place.node, place.worker) for place in counts)
    has_devices = any(place.device for place in counts)

    def worker(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        place = parts[0].place
        devices = sorted({device_name(part.place.device) for part in parts} - {""})
        return {
            "Worker": _name(place.worker or place.pod),
            "Pod": _name(place.pod, has_pods),
            "Node": _name(place.node, has_nodes),
            "Devices": cut_text(" ".join(devices), LONGEST_NAME),
        }

    def node(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        return {"Node": _name(parts[0].place.node)}

    def device(parts: Sequence[PlaceCount]) -> dict[str, Cell]:
        place = parts[0].place
        return {
            "Device": _name(device_name(place.device) or "no device"),
            "Node": _name(place.node, has_nodes),
        }

    tables = dict.fromkeys(("worker", "node", "device"), Table((), ()))
    tables["worker"] = _group_places(snapshot, lambda row: row.place._replace(device=""), worker)
    if has_nodes:
        tables["node"] = _group_places(snapshot, lambda row: row.place.node, node)
    if has_devices:
        tables["device"] = _group_places(
            snapshot, operator.attrgetter("place.node", "place.device"), device
        )
    return tables


def _group_places(
    snapshot: LoadSnapshot, key: Callable[[PlaceCount], object], names: _Names
) -> Table:
    """Make a row for each group of places, the busiest first.

    key: what the places of a group have in common. names: the first cells of its row.
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
        succeeded = sum(part.succeeded for part in parts)
        merged = PlaceCount(
            parts[0].place,
            succeeded,
            sum(part.failed for part in parts),
            sum(part.run_total_s for part in parts),
            highest_known(part.run_high_s for part in parts),
        )
        rows.append(
            {
                **names(parts),
                "Succeeded": numbers.group_thousands(succeeded),
                "Share": Share(
                    succeeded / max(1, snapshot.succeeded),
                    numbers.format_share(succeeded, snapshot.succeeded),
                ),
                "Failed": numbers.group_thousands(merged.failed),
                "Mean run": numbers.format_seconds(merged.run_mean_s),
                "Longest run": numbers.format_seconds(merged.run_high_s),
            }
        )
    note = ""
    if left := len(ordered) - len(rows):
        note = f"{numbers.plural(left, 'more row')} in the statistics as JSON."
    titles = ("Worker", "Pod", "Node", "Device", "Devices")
    return Table.of_rows(rows, texts=(*titles, "Share"), foreign=titles, note=note)


def _name(text: str, is_telling: bool = True) -> str:
    """Shorten a name; "" where it tells nothing."""
    if not is_telling:
        return ""
    return cut_text(" ".join(text.splitlines()), LONGEST_NAME) or numbers.NOTHING

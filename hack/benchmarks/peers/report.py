"""Turns rows of rounds into a table and ratios.

A ratio is taken within a round, and then its median and its spread.

Rows that were measured beside busy neighbours are left out where a quiet one exists; `quiet` says
how many were quiet.
"""

import statistics
from collections.abc import Callable, Iterable
from typing import Any

from hack.benchmarks.peers.catalogue import FLOOR, OURS, STOCK, Peer
from hack.benchmarks.peers.machine import LOUD_CORES

# Rows of a peer by round; a round in which it failed has none.
Rounds = dict[str, dict[int, dict[str, float]]]
_MEASURES = ("per_s", "redis_us", "commands", "bytes", "p50_s", "p99_s", "foreign_cores")


def median_and_range(values: list[float]) -> dict[str, float]:
    """Median and range."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def is_quiet(*rows: dict[str, float]) -> bool:
    """Whether nobody else used much of the machine meanwhile."""
    return all(row["foreign_cores"] <= LOUD_CORES for row in rows)


def quiet_rows(rows: Iterable[dict[str, float]]) -> list[dict[str, float]]:
    """Return the quiet rows, or all when none was quiet."""
    measured = list(rows)
    return [row for row in measured if is_quiet(row)] or measured


def measures_by_peer(rounds: Rounds) -> dict[str, dict[str, Any]]:
    """Each peer's measures over its rounds."""
    by_peer: dict[str, dict[str, Any]] = {}
    for name, by_round in rounds.items():
        rows = quiet_rows(by_round.values())
        if rows:
            by_peer[name] = _spreads(rows) | {"quiet": sum(map(is_quiet, by_round.values()))}
    return by_peer


def _spreads(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Median and range of each measure that was taken."""
    spreads: dict[str, Any] = {}
    for measure in _MEASURES:
        if measure in rows[0]:
            spreads[measure] = median_and_range([row[measure] for row in rows])
    return spreads


def ratio(rounds: Rounds, other: str, measure: str) -> dict[str, float] | None:
    """Ours over the other's, round by round; None when one of them was not measured."""
    ours, theirs = rounds.get(OURS, {}), rounds.get(other, {})
    pairs = [
        (ours[number], row) for number, row in theirs.items() if number in ours and measure in row
    ]
    pairs = [pair for pair in pairs if is_quiet(*pair)] or pairs
    if not pairs or measure not in pairs[0][0]:
        return None
    return {
        **median_and_range([mine[measure] / its[measure] for mine, its in pairs]),
        "quiet": sum(is_quiet(*pair) for pair in pairs),
    }


def best_acknowledging(rounds: Rounds, peers: dict[str, Peer]) -> str | None:
    """Return the fastest peer that acknowledges after execution."""
    rates = {
        name: _median_rate(rows.values())
        for name, rows in rounds.items()
        if rows and name not in (OURS, FLOOR) and peers[name].acknowledges
    }
    return max(rates, key=lambda name: rates[name]) if rates else None


def _median_rate(rows: Iterable[dict[str, float]]) -> float:
    return statistics.median(row["per_s"] for row in quiet_rows(rows))


def ratios(rounds: Rounds, peers: dict[str, Peer]) -> dict[str, dict[str, Any]]:
    """Return the rows that are watched from run to run."""
    fastest = best_acknowledging(rounds, peers)
    wanted = {
        "throughput_vs_rq_simple": (STOCK, "per_s"),
        "throughput_vs_best_acknowledging": (fastest, "per_s"),
        "throughput_vs_floor": (FLOOR, "per_s"),
        "redis_cpu_vs_rq_simple": (STOCK, "redis_us"),
        "round_trip_vs_rq_simple": (STOCK, "p50_s"),
    }
    by_name: dict[str, dict[str, Any]] = {}
    for key, (other, measure) in wanted.items():
        times = ratio(rounds, other, measure) if other else None
        if times and other:
            by_name[key] = {"to": other, **times}
    return by_name


def table(rounds: Rounds, peers: dict[str, Peer]) -> str:
    """Medians for people, one line a peer."""
    heads = "|ack|jobs/s|min..max|ours is|min..max|Redis us|commands|bytes|p50|p99|others|quiet"
    lines: list[tuple[str, ...]] = [tuple(heads.split("|"))]
    for name, row in measures_by_peer(rounds).items():
        times = ratio(rounds, name, "per_s")
        lines.append(
            (
                peers[name].title,
                "yes" if peers[name].acknowledges else "no",
                _cell(row, "per_s", "{:,.0f}".format),
                f"{row['per_s']['min']:,.0f}..{row['per_s']['max']:,.0f}",
                f"{times['median']:.2f} x" if times else "",
                f"{times['min']:.2f}..{times['max']:.2f}" if times else "",
                _cell(row, "redis_us", "{:.0f}".format),
                _cell(row, "commands", "{:.1f}".format),
                _cell(row, "bytes", "{:,.0f}".format),
                _cell(row, "p50_s", lambda value: f"{value * 1000:.2f} ms"),
                _cell(row, "p99_s", lambda value: f"{value * 1000:.2f} ms"),
                _cell(row, "foreign_cores", "{:.2f} cores".format),
                f"{row['quiet']} of {len(rounds[name])}",
            )
        )
    return _aligned(lines)


def fleet_table(
    fleets: dict[str, dict[int, list[dict[str, float]]]], peers: dict[str, Peer]
) -> str:
    """Jobs a second by number of workers."""
    sizes = sorted(set().union(*fleets.values()))
    lines: list[tuple[str, ...]] = [("workers", *map(str, sizes))]
    for name, rows in fleets.items():
        cells = [_rate(rows.get(size, [])) for size in sizes]
        lines.append((peers[name].title, *cells))
    return _aligned(lines)


def _rate(rows: list[dict[str, float]]) -> str:
    return f"{_median_rate(rows):,.0f}" if rows else "-"


def _cell(row: dict[str, Any], measure: str, form: Callable[[float], str]) -> str:
    return form(row[measure]["median"]) if measure in row else "-"


def _aligned(lines: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = []
    for title, *cells in lines:
        padded = map(str.rjust, cells, widths[1:])
        rows.append("  ".join([title.ljust(widths[0]), *padded]).rstrip())
    return "\n".join(rows)

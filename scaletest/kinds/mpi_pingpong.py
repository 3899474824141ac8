"""MPIPingPong: half round-trip times and bandwidth of MPI messages of 0 to 2^maxlog bytes between two nodes.

IMB-MPI1 is used where it is installed; elsewhere a small program of ours that measures and prints the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.kinds import mpi, parsing
from scaletest.kinds.common import MpiSpec
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import (
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    Headline,
    Kind,
    Task,
    ToolMeasurement,
    ToolOutput,
    bound,
    master_and_workers,
)

OURS = "scaletest-pingpong"
IMB = ("IMB-MPI1", "mpitests-IMB-MPI1")
# IMB's units, in seconds and bytes a second; its megabyte is 10^6 bytes (IMB user guide, "MB/s").
_SECONDS = {"usec": 1e-6, "msec": 1e-3, "sec": 1.0}
_BYTES = {"Mbytes/sec": 1e6, "Gbytes/sec": 1e9}
_TITLE = re.compile(r"#\s*Benchmarking\s+(\S+)\s+#\s*#processes\s*=\s*(\d+)")
PROGRAM = "the MPI ping-pong"
# Two decimals of such a number are exact enough for a comparison.
LEAST_EXACT = 1.0


@dataclass(frozen=True, kw_only=True)
class MPIPingPongSpec(MpiSpec):
    """All fields are the original's."""

    maxlog: int = spec_field(22, "Messages are of 0, 1, 2, 4, ... 2^maxlog bytes.", minimum=1, maximum=30)


def tasks(spec: MPIPingPongSpec, site: ExecutionSite) -> Sequence[Task]:
    """The master starts one process on each of the two workers."""
    program = site.programs.get("pingpong", OURS)
    arguments = ["-msglog", str(spec.maxlog), "pingpong"]
    if spec.ip_family == "IPv6" and mpi.one_host(site):
        message = "Open MPI does not use the IPv6 loopback address"
        raise BenchmarkFailed(Failure.REFUSED, message, remedy="use two nodes, or IPv4")
    line = [*mpi.mpirun(spec, site, 2, "ppr:1:node"), program, *arguments]
    return (Task("master", 0, bound(spec, line), files={mpi.HOSTFILE: mpi.hostfile(site, 1)}),)


def parse(spec: MPIPingPongSpec, output: ToolOutput) -> ToolMeasurement:
    """IMB's table of its PingPong. Raises Failed."""
    parsing.ended_well(output, PROGRAM)
    titles = _TITLE.findall(output.stdout)
    header = next((line for line in output.stdout.splitlines() if "#bytes" in line and "#repetitions" in line), "")
    if not header or not titles:
        raise parsing.bad(f"{PROGRAM} wrote no table that begins with #bytes", parsing.last_lines(output))
    if titles != [("PingPong", "2")]:
        measured = ", ".join(f"{name} of {count} processes" for name, count in titles)
        raise BenchmarkFailed(Failure.MISMATCH, f"IMB measured {measured} instead of PingPong of 2 processes")
    names = header.split()
    time, time_unit = _unit(names, _SECONDS)
    speed, speed_unit = _unit(names, _BYTES)
    rows = parsing.rows_after(output.stdout, "#repetitions", len(names), PROGRAM)
    parsing.check_sizes(rows, [0, *(2**power for power in range(spec.maxlog + 1))], PROGRAM)
    results: list[dict[str, Any]] = [
        {"bytes": int(row[0]), "repetitions": int(row[1]), "time": row[time], "bandwidth": row[speed]} for row in rows
    ]
    latency, bandwidth = min(row["time"] for row in results), max(row["bandwidth"] for row in results)
    if latency <= 0 or bandwidth <= 0:
        raise parsing.bad(f"{PROGRAM}'s table has times or bandwidths of 0", [header])
    for row in results:
        _check_units(row, _SECONDS[time_unit], _BYTES[speed_unit])
    units = {"benchmark": "PingPong", "timeUnits": time_unit, "bandwidthUnits": speed_unit}
    headlines = {"peakBandwidth": bandwidth * _BYTES[speed_unit], "minimumLatency": latency * _SECONDS[time_unit]}
    return ToolMeasurement(headlines, {**units, "results": results})


def _check_units(row: Mapping[str, Any], seconds: float, size: float) -> None:
    """Raises Failed when bytes, time and bandwidth contradict each other, as where a megabyte is not 10^6 bytes."""
    # what has fewer digits was rounded too much to tell
    if row["time"] < LEAST_EXACT or row["bytes"] / (row["time"] * seconds) < LEAST_EXACT * size:
        return
    computed = row["bytes"] / (row["time"] * seconds)
    parsing.check_agreement(row["bandwidth"] * size, computed, f"the bandwidth of {row['bytes']} bytes")


def _unit(names: Sequence[str], units: dict[str, float]) -> tuple[int, str]:
    """The column with one of these units, the last one that has; and its unit."""
    for index in range(len(names) - 1, -1, -1):
        unit = names[index][names[index].find("[") + 1 :].rstrip("]")
        if unit in units:
            return index, unit
    raise parsing.bad("the table has no column in " + " or ".join(units), [" ".join(names)])


KIND = Kind(
    name="MPIPingPong",
    plural="mpipingpongs",
    help="Latency and bandwidth of MPI messages between two nodes.",
    spec=MPIPingPongSpec,
    measures="master",
    layout=lambda spec: master_and_workers(spec, 2),
    programs=lambda spec: ("mpirun",),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 300 + 2 ** max(0, spec.maxlog - 20),
    headlines=(
        Headline("peakBandwidth", "B/s", True, "The highest of all message sizes."),
        Headline("minimumLatency", "s", False, "The lowest half round trip of all message sizes."),
    ),
    columns=("transport", "maxlog"),
)

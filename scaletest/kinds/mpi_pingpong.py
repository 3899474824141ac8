"""MPIPingPong: half round-trip times and bandwidth of MPI messages between two nodes.

IMB-MPI1 measures where it is installed, else our small program with the same output.
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
# From this number on two decimals are exact enough for a comparison.
LEAST_EXACT = 1.0


@dataclass(frozen=True, kw_only=True)
class MPIPingPongSpec(MpiSpec):
    """Spec of MPIPingPong, all fields as in kube-perftest."""

    maxlog: int = spec_field(
        22, "Message sizes are 0, 1, 2, 4, ... 2^maxlog bytes.", minimum=1, maximum=30
    )


def tasks(spec: MPIPingPongSpec, site: ExecutionSite) -> Sequence[Task]:
    """mpirun on the master, with one process on each of the two workers."""
    program = site.programs.get("pingpong", OURS)
    arguments = ["-msglog", str(spec.maxlog), "pingpong"]
    if spec.ip_family == "IPv6" and mpi.one_host(site):
        message = "Open MPI does not use the IPv6 loopback address"
        raise BenchmarkFailed(Failure.REFUSED, message, remedy="use two nodes, or IPv4")
    line = [*mpi.mpirun(spec, site, 2, "ppr:1:node"), program, *arguments]
    return (Task("master", 0, bound(spec, line), files={mpi.HOSTFILE: mpi.hostfile(site, 1)}),)


def parse(spec: MPIPingPongSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse IMB's table of PingPong."""
    parsing.ended_well(output, PROGRAM)
    header = _header(output)
    names = header.split()
    time, time_unit = _unit(names, _SECONDS)
    speed, speed_unit = _unit(names, _BYTES)
    rows = parsing.rows_after(output.stdout, "#repetitions", len(names), PROGRAM)
    parsing.check_sizes(rows, [0, *(2**power for power in range(spec.maxlog + 1))], PROGRAM)
    results: list[dict[str, Any]] = [
        {
            "bytes": int(row[0]),
            "repetitions": int(row[1]),
            "time": row[time],
            "bandwidth": row[speed],
        }
        for row in rows
    ]
    latency = min(size["time"] for size in results)
    bandwidth = max(size["bandwidth"] for size in results)
    if latency <= 0 or bandwidth <= 0:
        raise parsing.bad(f"{PROGRAM}'s table has times or bandwidths of 0", [header])
    for size in results:
        _check_units(size, _SECONDS[time_unit], _BYTES[speed_unit])
    units = {"benchmark": "PingPong", "timeUnits": time_unit, "bandwidthUnits": speed_unit}
    headlines = {
        "peakBandwidth": bandwidth * _BYTES[speed_unit],
        "minimumLatency": latency * _SECONDS[time_unit],
    }
    return ToolMeasurement(headlines, {**units, "results": results})


def _header(output: ToolOutput) -> str:
    """The head of the only table. Raises BenchmarkFailed unless it is PingPong of 2 processes."""
    titles = _TITLE.findall(output.stdout)
    headers = [
        line for line in output.stdout.splitlines() if "#bytes" in line and "#repetitions" in line
    ]
    if not headers or not titles:
        raise parsing.bad(
            f"{PROGRAM} wrote no table that begins with #bytes", parsing.last_lines(output)
        )
    if titles != [("PingPong", "2")]:
        measured = ", ".join(f"{name} of {count} processes" for name, count in titles)
        raise BenchmarkFailed(
            Failure.MISMATCH, f"IMB measured {measured} instead of PingPong of 2 processes"
        )
    return headers[0]


def _check_units(size: Mapping[str, Any], seconds: float, unit: float) -> None:
    """Raises BenchmarkFailed if bytes, time and bandwidth contradict each other.

    That is so where a megabyte is not 10^6 bytes.
    """
    # smaller numbers are rounded too much for a comparison
    if size["time"] < LEAST_EXACT or size["bytes"] / (size["time"] * seconds) < LEAST_EXACT * unit:
        return
    computed = size["bytes"] / (size["time"] * seconds)
    parsing.check_agreement(
        size["bandwidth"] * unit, computed, f"the bandwidth of {size['bytes']} bytes"
    )


def _unit(names: Sequence[str], units: dict[str, float]) -> tuple[int, str]:
    """Index and unit of the last column with one of these units."""
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
        Headline("peakBandwidth", "B/s", True, "Highest bandwidth of all message sizes."),
        Headline("minimumLatency", "s", False, "Lowest half round-trip time of all message sizes."),
    ),
    columns=("transport", "maxlog"),
)

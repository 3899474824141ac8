"""Measure half round-trip times and bandwidth of MPI messages between two nodes.

IMB-MPI1 measures where it is installed, else our small program with the same output.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from scaletest.benchmarks.kinds import (
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    Headline,
    Kind,
    MpiSpec,
    Task,
    ToolMeasurement,
    ToolOutput,
    bind_to_cpus,
    fail_if,
    master_and_workers,
    mpirun,
    parsing,
)

OURS = "scaletest-pingpong"  # our program
IMB = ("IMB-MPI1", "mpitests-IMB-MPI1")
# IMB's units, in seconds and bytes a second; its megabyte is 10^6 bytes (IMB user guide, "MB/s").
_SECONDS_PER_UNIT = {"usec": 1e-6, "msec": 1e-3, "sec": 1.0}
_BYTES_PER_S_PER_UNIT = {"Mbytes/sec": 1e6, "Gbytes/sec": 1e9}
PROGRAM = "the MPI ping-pong"  # as errors call either
# The table has two decimals: numbers below this are rounded too much to be compared with others.
LEAST_COMPARABLE = 1.0


@dataclass(frozen=True, kw_only=True)
class MPIPingPongSpec(MpiSpec):
    """Spec of MPIPingPong, all fields as in kube-perftest."""

    maxlog: Annotated[
        int, Meta(ge=1, le=30), "Message sizes are 0, 1, 2, 4, ... 2^maxlog bytes."
    ] = 22


def tasks(spec: MPIPingPongSpec, site: ExecutionSite) -> Sequence[Task]:
    """Return the only task: mpirun on the master, with one process on each of the two workers.

    Raises BenchmarkFailed for IPv6 on one host.
    """
    fail_if(
        spec.ip_family == "IPv6" and mpirun.is_one_host(site),
        "Open MPI does not use the IPv6 loopback address",
        failure=Failure.REFUSED,
        remedy="use two nodes, or IPv4",
    )
    program = (site.programs.get("pingpong", OURS), "-msglog", str(spec.maxlog), "pingpong")
    return (
        Task(
            role="master",
            index=0,
            argv=bind_to_cpus(
                spec, [*mpirun.command_prefix(spec, site, 2, "ppr:1:node"), *program]
            ),
            files={mpirun.HOSTFILE: mpirun.hostfile(site, slots=1)},
        ),
    )


def parse(spec: MPIPingPongSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse IMB's table of PingPong: a row for each message size, with time and bandwidth.

    Raises BenchmarkFailed when the program failed, when this is not a complete table of all
    sizes of the spec, or when its columns contradict each other.
    """
    parsing.check_exit(output, PROGRAM)
    # the columns with their units, and the rows
    header = _find_header(output)
    names = header.split()
    time_column, time_unit = _find_unit(names, _SECONDS_PER_UNIT)
    bandwidth_column, bandwidth_unit = _find_unit(names, _BYTES_PER_S_PER_UNIT)
    rows = parsing.rows_after(output.stdout, "#repetitions", len(names), PROGRAM)
    parsing.check_sizes(rows, [0, *(2**power for power in range(spec.maxlog + 1))], PROGRAM)
    results: list[dict[str, Any]] = [
        {
            "bytes": int(numbers[0]),
            "repetitions": int(numbers[1]),
            "time": numbers[time_column],
            "bandwidth": numbers[bandwidth_column],
        }
        for numbers in rows
    ]
    # the headlines
    latency = min(row["time"] for row in results)
    bandwidth = max(row["bandwidth"] for row in results)
    fail_if(
        latency <= 0 or bandwidth <= 0,
        f"{PROGRAM}'s table has times or bandwidths of 0",
        [header],
    )
    # each row agrees with itself, which it does not where a megabyte is not 10^6 bytes
    time_factor = _SECONDS_PER_UNIT[time_unit]
    bandwidth_factor = _BYTES_PER_S_PER_UNIT[bandwidth_unit]
    for row in results:
        seconds = row["time"] * time_factor
        least_bytes = LEAST_COMPARABLE * bandwidth_factor * seconds
        if row["time"] >= LEAST_COMPARABLE and row["bytes"] >= least_bytes:
            parsing.check_agreement(
                row["bandwidth"] * bandwidth_factor,
                row["bytes"] / seconds,
                f"the bandwidth of {row['bytes']} bytes",
            )
    return ToolMeasurement(
        {
            "peakBandwidth": bandwidth * bandwidth_factor,
            "minimumLatency": latency * time_factor,
        },
        {
            "benchmark": "PingPong",
            "timeUnits": time_unit,
            "bandwidthUnits": bandwidth_unit,
            "results": results,
        },
    )


def _find_header(output: ToolOutput) -> str:
    """Return the line that names the columns of the only table, PingPong of 2 processes.

    Raises BenchmarkFailed without a table, or for another one.
    """
    titles = re.findall(r"#\s*Benchmarking\s+(\S+)\s+#\s*#processes\s*=\s*(\d+)", output.stdout)
    headers = [
        line for line in output.stdout.splitlines() if "#bytes" in line and "#repetitions" in line
    ]
    fail_if(
        not headers or not titles,
        f"{PROGRAM} wrote no table that begins with #bytes",
        parsing.last_lines(output),
    )
    measured = ", ".join(f"{name} of {count} processes" for name, count in titles)
    fail_if(
        titles != [("PingPong", "2")],
        f"IMB measured {measured} instead of PingPong of 2 processes",
        failure=Failure.MISMATCH,
    )
    return headers[0]


def _find_unit(names: Sequence[str], units: dict[str, float]) -> tuple[int, str]:
    """Return index and unit of the last column with one of these units, as in "t[usec]".

    Raises BenchmarkFailed without one.
    """
    for index, name in reversed(list(enumerate(names))):
        unit = name[name.find("[") + 1 :].rstrip("]")
        if unit in units:
            return index, unit
    raise BenchmarkFailed(
        Failure.BAD_OUTPUT,
        f"the table has no column in {' or '.join(units)}",
        [" ".join(names)],
    )


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
    # beyond 2^20 bytes, a size takes about twice as long as the one before
    limit_s=lambda spec: 300 + 2 ** max(0, spec.maxlog - 20),
    headlines=(
        Headline(
            "peakBandwidth",
            "peak bandwidth",
            "B/s",
            higher=True,
            help="Highest bandwidth of all message sizes.",
        ),
        Headline(
            "minimumLatency",
            "lowest latency",
            "s",
            higher=False,
            help="Lowest half round-trip time of all message sizes.",
        ),
    ),
    columns=("transport", "maxlog"),
)

"""Measure half round-trip times and bandwidth of MPI messages between two nodes.

IMB-MPI1 measures where it is installed, else our small program with the same output.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.benchmarks.kinds import (
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
# The columns of IMB's table; its megabyte is 10^6 bytes (IMB user guide, "MB/s").
COLUMNS = ["#bytes", "#repetitions", "t[usec]", "Mbytes/sec"]
USEC = 1e-6
MBYTE = 1e6
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
    _check_header(output)
    rows = parsing.rows_after(output.stdout, "#repetitions", len(COLUMNS), PROGRAM)
    parsing.check_sizes(rows, [0, *(2**power for power in range(spec.maxlog + 1))], PROGRAM)
    results = [
        {
            "bytes": int(size),
            "repetitions": int(repetitions),
            "time": time_us,
            "bandwidth": mbytes_per_s,
        }
        for size, repetitions, time_us, mbytes_per_s in rows
    ]
    latency = min(row["time"] for row in results)
    bandwidth = max(row["bandwidth"] for row in results)
    fail_if(
        latency <= 0 or bandwidth <= 0,
        f"{PROGRAM}'s table has times or bandwidths of 0",
    )
    # each row agrees with itself, which it does not where a megabyte is not 10^6 bytes
    for row in results:
        if row["time"] >= LEAST_COMPARABLE and row["bandwidth"] >= LEAST_COMPARABLE:
            parsing.check_agreement(
                row["bandwidth"] * MBYTE,
                row["bytes"] / (row["time"] * USEC),
                f"the bandwidth of {row['bytes']} bytes",
            )
    return ToolMeasurement(
        {
            "peakBandwidth": bandwidth * MBYTE,
            "minimumLatency": latency * USEC,
        },
        {
            "benchmark": "PingPong",
            "timeUnits": "usec",
            "bandwidthUnits": "Mbytes/sec",
            "results": results,
        },
    )


def _check_header(output: ToolOutput) -> None:
    """Raise BenchmarkFailed unless there is one table, of PingPong of 2 processes."""
    titles = re.findall(r"#\s*Benchmarking\s+(\S+)\s+#\s*#processes\s*=\s*(\d+)", output.stdout)
    headers = [line for line in output.stdout.splitlines() if "#bytes" in line]
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
    fail_if(
        headers[0].split() != COLUMNS,
        f"{PROGRAM}'s table has other columns than {' '.join(COLUMNS)}",
        headers[:1],
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

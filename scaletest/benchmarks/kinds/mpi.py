"""Command line of Open MPI for the kinds that use it, and the kind MPIPingPong.

Hosts have names, as Open MPI accepts no IPv6 addresses. mpirun's daemon is started on other nodes
by the executor's agent, or by ssh with the executor's configuration, which has the names in a hosts
file.

MPIPingPong measures half round-trip times and bandwidth of MPI messages between two nodes: by
IMB-MPI1 where it is installed, else by our small program with the same output.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from scaletest.benchmarks.kinds import parsing
from scaletest.benchmarks.kinds.failure import Failure
from scaletest.benchmarks.kinds.kind import (
    ExecutionSite,
    Headline,
    Kind,
    Task,
    ToolMeasurement,
    ToolOutput,
    bound,
    master_and_workers,
)
from scaletest.benchmarks.kinds.spec import RDMA, TCP, MpiSpec

HOSTFILE = "hosts"
_TRANSPORTS = {
    RDMA: [
        "-x",
        "UCX_TLS=self,rc_x",
        "--mca",
        "btl",
        "^openib",
        "--mca",
        "pml",
        "ucx",
        "--mca",
        "osc",
        "ucx",
    ],
    TCP: ["--mca", "btl", "self,tcp", "--mca", "pml", "ob1", "--mca", "osc", "^ucx"],
}


def hostfile(site: ExecutionSite, slots: int) -> str:
    """The hostfile: one line for each host, with the slots of all its workers."""
    hosts = Counter(peer.host for peer in site.peers["worker"])
    return "".join(f"{host} slots={slots * count}\n" for host, count in hosts.items())


def one_host(site: ExecutionSite) -> bool:
    """Whether all workers are on one host, where only the loopback interface connects them."""
    return len({peer.host for peer in site.peers["worker"]}) == 1


def mpirun(spec: MpiSpec, site: ExecutionSite, processes: int, mapping: str) -> list[str]:
    """mpirun and its options, before the program's name."""
    alone = one_host(site)
    line = [
        *("mpirun", "--allow-run-as-root", "--display-map", "--hostfile", HOSTFILE),
        *("-np", str(processes), "--map-by", "slot" if alone else mapping),
        # nodes that are one machine have the same cores: all ranks would share the first
        *("--bind-to", "none"),
    ]
    if site.agent:
        # such nodes share the cores: a rank that waits must let the other one run
        line += ["--mca", "plm_rsh_agent", site.agent, "--mca", "mpi_yield_when_idle", "1"]
    if site.ssh:
        # only the master knows the hosts' names, so the daemons of workers must not start others
        line += ["--mca", "plm_rsh_args", f"-F {site.ssh}", "--mca", "plm_rsh_no_tree_spawn", "1"]
    if alone:
        # Open MPI ignores the loopback interface by default
        line += ["--mca", "btl_tcp_if_include", "lo"]
    # the other address family is turned off, since Open MPI tries every address of a node
    return [
        *line,
        *_TRANSPORTS[spec.transport],
        "--mca",
        "btl_tcp_disable_family",
        "6" if spec.ip_family == "IPv4" else "4",
    ]


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

    maxlog: Annotated[
        int, Meta(ge=1, le=30), "Message sizes are 0, 1, 2, 4, ... 2^maxlog bytes."
    ] = 22


def tasks(spec: MPIPingPongSpec, site: ExecutionSite) -> Sequence[Task]:
    """mpirun on the master, with one process on each of the two workers."""
    parsing.fail_if(
        spec.ip_family == "IPv6" and one_host(site),
        "Open MPI does not use the IPv6 loopback address",
        failure=Failure.REFUSED,
        remedy="use two nodes, or IPv4",
    )
    program = (site.programs.get("pingpong", OURS), "-msglog", str(spec.maxlog), "pingpong")
    return (
        Task(
            "master",
            0,
            bound(spec, [*mpirun(spec, site, 2, "ppr:1:node"), *program]),
            files={HOSTFILE: hostfile(site, 1)},
        ),
    )


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
    parsing.fail_if(
        latency <= 0 or bandwidth <= 0,
        f"{PROGRAM}'s table has times or bandwidths of 0",
        [header],
    )
    for size in results:
        _check_units(size, _SECONDS[time_unit], _BYTES[speed_unit])
    return ToolMeasurement(
        {
            "peakBandwidth": bandwidth * _BYTES[speed_unit],
            "minimumLatency": latency * _SECONDS[time_unit],
        },
        {
            "benchmark": "PingPong",
            "timeUnits": time_unit,
            "bandwidthUnits": speed_unit,
            "results": results,
        },
    )


def _header(output: ToolOutput) -> str:
    """The head of the only table. Raises BenchmarkFailed unless it is PingPong of 2 processes."""
    titles = _TITLE.findall(output.stdout)
    headers = [
        line for line in output.stdout.splitlines() if "#bytes" in line and "#repetitions" in line
    ]
    parsing.fail_if(
        not headers or not titles,
        f"{PROGRAM} wrote no table that begins with #bytes",
        parsing.last_lines(output),
    )
    measured = ", ".join(f"{name} of {count} processes" for name, count in titles)
    parsing.fail_if(
        titles != [("PingPong", "2")],
        f"IMB measured {measured} instead of PingPong of 2 processes",
        failure=Failure.MISMATCH,
    )
    return headers[0]


def _check_units(size: Mapping[str, Any], seconds: float, unit: float) -> None:
    """Raises BenchmarkFailed if bytes, time and bandwidth contradict each other.

    That is so where a megabyte is not 10^6 bytes.
    """
    # smaller numbers are rounded too much for a comparison
    if size["time"] >= LEAST_EXACT and size["bytes"] >= LEAST_EXACT * unit * size["time"] * seconds:
        parsing.check_agreement(
            size["bandwidth"] * unit,
            size["bytes"] / (size["time"] * seconds),
            f"the bandwidth of {size['bytes']} bytes",
        )


def _unit(names: Sequence[str], units: dict[str, float]) -> tuple[int, str]:
    """Index and unit of the last column with one of these units."""
    for index, name in reversed(list(enumerate(names))):
        unit = name[name.find("[") + 1 :].rstrip("]")
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
        Headline(
            "peakBandwidth",
            "peak bandwidth",
            "B/s",
            True,
            "Highest bandwidth of all message sizes.",
        ),
        Headline(
            "minimumLatency",
            "lowest latency",
            "s",
            False,
            "Lowest half round-trip time of all message sizes.",
        ),
    ),
    columns=("transport", "maxlog"),
)

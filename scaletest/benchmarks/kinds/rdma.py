"""Measure RDMA over all message sizes by perftest: ib_read_bw, ib_write_lat and so on.

The connection manager (-R) makes the connection, which needs no device name. The server prints when
it is ready, so the client never starts too early.
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
    PairSpec,
    Task,
    ToolMeasurement,
    ToolOutput,
    bind_to_cpus,
    fail_if,
    parsing,
    server_and_client,
)
from scaletest.model import checks, declared

GBIT, USEC = 1e9, 1e-6
BANDWIDTHS = ("bytes", "iterations", "peakBandwidth", "averageBandwidth", "messageRate")
LATENCIES = (
    "bytes",
    "iterations",
    "minimum",
    "maximum",
    "typical",
    "average",
    "stdev",
    "percentile99",
    "percentile999",
)


@dataclass(frozen=True, kw_only=True)
class RDMASpec(PairSpec):
    """Spec of both kinds.

    kube-perftest has mode, iterations and extraArgs; its successor has others.
    """

    mode: Annotated[str, declared.choice(("read", "write")), "RDMA operation."] = "read"
    iterations: Annotated[int, Meta(ge=5, le=1_000_000_000), "Iterations at each message size."] = (
        1000
    )
    extra_args: Annotated[
        tuple[str, ...], declared.TRUSTED, "More arguments of the tool, such as --tclass=96."
    ] = ()
    device: Annotated[
        str,
        declared.text(r"|[A-Za-z0-9_.:-]{1,64}", "a name"),
        "RDMA device, such as mlx5_0; empty: that of the route.",
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.raise_first_mistake(
            (
                "\x00" in "".join(self.extra_args),
                "extraArgs contain a NUL character",
                "leave it out",
            ),
            (
                {"-D", "-s"} & {argument[:2] for argument in self.extra_args},
                "extraArgs contain -D or -s, but all message sizes are measured, by iterations",
                "leave it out: duration mode has no minimum, maximum or percentiles",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class RDMABandwidthSpec(RDMASpec):
    """Spec of RDMABandwidth; qps is kube-perftest's."""

    qps: Annotated[int, Meta(ge=1, le=16384), "Queue pairs."] = 1


def _tasks(spec: RDMASpec, site: ExecutionSite, tool: str, *arguments: str) -> Sequence[Task]:
    """Run server and client of ib_read_bw, ib_write_lat and so on."""
    argv = [f"ib_{spec.mode}_{tool}", "-a", "-F", "-R", "-n", str(spec.iterations), *arguments]
    if spec.ip_family == "IPv6":
        argv.append("--ipv6")
    if spec.device:
        argv += ["-d", spec.device]
    argv += spec.extra_args
    return (
        Task("server", 0, bind_to_cpus(spec, argv), ready_text="Waiting for client to connect"),
        Task("client", 0, bind_to_cpus(spec, [*argv, site.address("server")])),
    )


def parse_bandwidth(spec: RDMABandwidthSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse bytes, iterations, peak and average in Gbit/s, and millions of messages per second."""
    program = f"ib_{spec.mode}_bw"
    rows = _read_rows(spec, output, test="BW", columns=BANDWIDTHS, units={"Gb/sec", "Mpps"})
    pairs = re.findall(r"Number of qps\s*:\s*(\d+)", output.stdout)
    fail_if(
        pairs != [str(spec.qps)],
        f"{program} used {', '.join(pairs) or 'an unknown number of'} queue pairs instead of"
        f" {spec.qps}",
        failure=Failure.MISMATCH,
    )
    peak, average, rate = (max(row[name] for row in rows) for name in BANDWIDTHS[2:])
    fail_if(average <= 0 or rate <= 0, f"{program} reports a bandwidth or message rate of 0")
    for row in rows:
        # smaller numbers are rounded too much for a comparison
        if row["averageBandwidth"] >= 1:
            parsing.check_agreement(
                row["averageBandwidth"],
                row["messageRate"] * row["bytes"] * 8e6 / GBIT,
                f"the bandwidth of {row['bytes']:.0f} bytes",
            )
    headlines = {"averageBandwidth": average * GBIT, "messageRate": rate * 1e6}
    return ToolMeasurement(
        {"peakBandwidth": peak * GBIT, **headlines} if peak > 0 else headlines,
        {"bandwidthUnits": "Gbit/s", "messageRateUnits": "10^6/s", "results": rows},
        notes=(() if peak > 0 else ("perftest measured no peak, as with very many iterations",)),
    )


def parse_latency(spec: RDMASpec, output: ToolOutput) -> ToolMeasurement:
    """Parse nine columns, with times in microseconds."""
    rows = _read_rows(spec, output, test="Latency", columns=LATENCIES, units={"usec"})
    best = min(rows, key=lambda row: row["average"])
    fail_if(
        min(min(row["minimum"], row["average"], row["percentile99"]) for row in rows) <= 0,
        f"ib_{spec.mode}_lat reports a latency of 0",
    )
    return ToolMeasurement(
        {
            "minimumAverageLatency": best["average"] * USEC,
            "minimumLatency": min(row["minimum"] for row in rows) * USEC,
            "percentile99": best["percentile99"] * USEC,
        },
        {"timeUnits": "usec", "results": rows},
    )


def _read_rows(
    spec: RDMASpec, output: ToolOutput, *, test: str, columns: Sequence[str], units: set[str]
) -> list[dict[str, float]]:
    """Return the rows of a complete run, each by column.

    test, units: perftest's names of the test and of the columns' units.
    """
    program = f"ib_{spec.mode}_{'bw' if test == 'BW' else 'lat'}"
    parsing.check_exit(output, program)
    rows = parsing.rows_after(output.stdout, "#bytes", len(columns), program)
    expected = (spec.mode.capitalize(), test)
    # with extraArgs there may be other words between, as in RDMA_Write Bidirectional BW Test
    titles = re.findall(r"RDMA_(Read|Write)\b[^\n]*\b(BW|Latency) Test", output.stdout)
    fail_if(
        titles != [expected],
        f"{program} did not measure RDMA_{' '.join(expected)} Test",
        [f"RDMA_{' '.join(title)}" for title in titles],
        failure=Failure.MISMATCH,
    )
    header = next(line for line in output.stdout.splitlines() if "#bytes" in line)
    fail_if(
        set(re.findall(r"\[([^\]]+)\]", header)) != units,
        f"{program} has other units than {', '.join(sorted(units))}",
        [header],
        failure=Failure.MISMATCH,
    )
    # perftest's -a measures 2, 4, ... 2^23 bytes
    parsing.check_sizes(rows, [2**power for power in range(1, 24)], program)
    return [dict(zip(columns, row, strict=True)) for row in rows]


BANDWIDTH = Kind(
    name="RDMABandwidth",
    plural="rdmabandwidths",
    help="Bandwidth of RDMA reads or writes between two nodes.",
    spec=RDMABandwidthSpec,
    measures="client",
    layout=server_and_client,
    programs=lambda spec: (f"ib_{spec.mode}_bw",),
    tasks=lambda spec, site: _tasks(spec, site, "bw", "--report_gbits", "-q", str(spec.qps)),
    parse=parse_bandwidth,
    limit_s=lambda spec: 300 + spec.iterations * spec.qps / 100,
    headlines=(
        Headline(
            "peakBandwidth", "peak bandwidth", "bit/s", True, "Highest peak of all message sizes."
        ),
        Headline(
            "averageBandwidth",
            "average bandwidth",
            "bit/s",
            True,
            "Highest average of all message sizes.",
        ),
        Headline("messageRate", "message rate", "1/s", True, "Most messages per second."),
    ),
    columns=("mode", "qps", "iterations"),
)
LATENCY = Kind(
    name="RDMALatency",
    plural="rdmalatencies",
    help="Latency of RDMA reads or writes between two nodes.",
    spec=RDMASpec,
    measures="client",
    layout=server_and_client,
    programs=lambda spec: (f"ib_{spec.mode}_lat",),
    tasks=lambda spec, site: _tasks(spec, site, "lat"),
    parse=parse_latency,
    limit_s=lambda spec: 300 + spec.iterations / 100,
    headlines=(
        Headline(
            "minimumAverageLatency",
            "lowest average latency",
            "s",
            False,
            "Lowest average of all message sizes.",
        ),
        Headline("minimumLatency", "lowest latency", "s", False, "Lowest single time."),
        Headline(
            "percentile99",
            "latency, 99th percentile",
            "s",
            False,
            "99th percentile at the message size with the lowest average.",
        ),
    ),
    columns=("mode", "iterations"),
)

"""RDMALatency: ib_read_lat and ib_write_lat over all message sizes."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.kinds import parsing, rdma
from scaletest.kinds.kind import (
    ExecutionSite,
    Headline,
    Kind,
    Task,
    ToolMeasurement,
    ToolOutput,
    server_and_client,
)

USEC = 1e-6
NAMES = (
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


def tasks(spec: rdma.RDMASpec, site: ExecutionSite) -> Sequence[Task]:
    """Server and client."""
    return rdma.tasks(spec, site, f"ib_{spec.mode}_lat", ())


def parse(spec: rdma.RDMASpec, output: ToolOutput) -> ToolMeasurement:
    """Parse nine columns, with times in microseconds."""
    program = f"ib_{spec.mode}_lat"
    table = rdma.table(spec, output, program, "Latency", len(NAMES), frozenset({"usec"}))
    rows = [dict(zip(NAMES, row, strict=True)) for row in table]
    best = min(rows, key=lambda row: row["average"])
    if min(min(row["minimum"], row["average"], row["percentile99"]) for row in rows) <= 0:
        raise parsing.bad(f"{program} reports a latency of 0")
    return ToolMeasurement(
        {
            "minimumAverageLatency": best["average"] * USEC,
            "minimumLatency": min(row["minimum"] for row in rows) * USEC,
            "percentile99": best["percentile99"] * USEC,
        },
        {"timeUnits": "usec", "results": rows},
    )


KIND = Kind(
    name="RDMALatency",
    plural="rdmalatencies",
    help="Latency of RDMA reads or writes between two nodes.",
    spec=rdma.RDMASpec,
    measures="client",
    layout=server_and_client,
    programs=lambda spec: (f"ib_{spec.mode}_lat",),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 300 + spec.iterations / 100,
    headlines=(
        Headline("minimumAverageLatency", "s", False, "Lowest average of all message sizes."),
        Headline("minimumLatency", "s", False, "Lowest single time."),
        Headline(
            "percentile99",
            "s",
            False,
            "99th percentile at the message size with the lowest average.",
        ),
    ),
    columns=("mode", "iterations"),
)

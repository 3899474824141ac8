"""RDMABandwidth: ib_read_bw and ib_write_bw over all message sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.kinds import parsing, rdma
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
    server_and_client,
)

GBIT = 1e9
NAMES = ("bytes", "iterations", "peakBandwidth", "averageBandwidth", "messageRate")
UNITS = frozenset({"Gb/sec", "Mpps"})
NO_PEAK = "perftest measured no peak, as with very many iterations"
_QPS = re.compile(r"Number of qps\s*:\s*(\d+)")


@dataclass(frozen=True, kw_only=True)
class RDMABandwidthSpec(rdma.RDMASpec):
    """Spec of RDMABandwidth; qps is kube-perftest's."""

    qps: int = spec_field(1, "Queue pairs.", minimum=1, maximum=16384)


def tasks(spec: RDMABandwidthSpec, site: ExecutionSite) -> Sequence[Task]:
    """Server and client."""
    return rdma.tasks(spec, site, f"ib_{spec.mode}_bw", ("--report_gbits", "-q", str(spec.qps)))


def parse(spec: RDMABandwidthSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse bytes, iterations, peak and average in Gbit/s, and millions of messages per second."""
    program = f"ib_{spec.mode}_bw"
    table = rdma.table(spec, output, program, "BW", len(NAMES), UNITS)
    pairs = _QPS.findall(output.stdout)
    if pairs != [str(spec.qps)]:
        message = (
            f"{program} used {', '.join(pairs) or 'an unknown number of'} queue pairs instead of"
            f" {spec.qps}"
        )
        raise BenchmarkFailed(Failure.MISMATCH, message)
    rows = [dict(zip(NAMES, row, strict=True)) for row in table]
    peak = max(row["peakBandwidth"] for row in rows)
    average = max(row["averageBandwidth"] for row in rows)
    rate = max(row["messageRate"] for row in rows)
    if average <= 0 or rate <= 0:
        raise parsing.bad(f"{program} reports a bandwidth or message rate of 0")
    for row in rows:
        # smaller numbers are rounded too much for a comparison
        if row["averageBandwidth"] >= 1:
            computed = row["messageRate"] * row["bytes"] * 8e6 / GBIT
            parsing.check_agreement(
                row["averageBandwidth"], computed, f"the bandwidth of {row['bytes']:.0f} bytes"
            )
    headlines = {
        "peakBandwidth": peak * GBIT,
        "averageBandwidth": average * GBIT,
        "messageRate": rate * 1e6,
    }
    notes = () if peak > 0 else (NO_PEAK,)
    return ToolMeasurement(
        {name: rate for name, rate in headlines.items() if rate > 0},
        {"bandwidthUnits": "Gbit/s", "messageRateUnits": "10^6/s", "results": rows},
        notes=notes,
    )


KIND = Kind(
    name="RDMABandwidth",
    plural="rdmabandwidths",
    help="Bandwidth of RDMA reads or writes between two nodes.",
    spec=RDMABandwidthSpec,
    measures="client",
    layout=server_and_client,
    programs=lambda spec: (f"ib_{spec.mode}_bw",),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 300 + spec.iterations * spec.qps / 100,
    headlines=(
        Headline("peakBandwidth", "bit/s", True, "Highest peak of all message sizes."),
        Headline("averageBandwidth", "bit/s", True, "Highest average of all message sizes."),
        Headline("messageRate", "1/s", True, "Most messages per second."),
    ),
    columns=("mode", "qps", "iterations"),
)

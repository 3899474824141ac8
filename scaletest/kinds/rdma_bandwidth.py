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
UNITS = frozenset({"Gb/sec", "Mpps"})
NO_PEAK = "perftest measured no peak, as with very many iterations"
_QPS = re.compile(r"Number of qps\s*:\s*(\d+)")


@dataclass(frozen=True, kw_only=True)
class RDMABandwidthSpec(rdma.RDMASpec):
    """All fields of its own are the original's."""

    qps: int = spec_field(1, "Queue pairs.", minimum=1, maximum=16384)


def tasks(spec: RDMABandwidthSpec, site: ExecutionSite) -> Sequence[Task]:
    """Server and client."""
    return rdma.tasks(spec, site, f"ib_{spec.mode}_bw", ("--report_gbits", "-q", str(spec.qps)))


def parse(spec: RDMABandwidthSpec, output: ToolOutput) -> ToolMeasurement:
    """Bytes, iterations, peak and average in Gbit/s, messages in millions a second. Raises Failed."""
    names, program = ("bytes", "iterations", "peakBandwidth", "averageBandwidth", "messageRate"), f"ib_{spec.mode}_bw"
    table = rdma.table(spec, output, program, "BW", len(names), UNITS)
    pairs = _QPS.findall(output.stdout)
    if pairs != [str(spec.qps)]:
        message = f"{program} used {', '.join(pairs) or 'an unknown number of'} queue pairs instead of {spec.qps}"
        raise BenchmarkFailed(Failure.MISMATCH, message)
    rows = [dict(zip(names, row, strict=True)) for row in table]
    peak, average, rate = (max(row[name] for row in rows) for name in names[2:])
    if average <= 0 or rate <= 0:
        raise parsing.bad(f"{program} reports a bandwidth or message rate of 0")
    for row in rows:
        # what has fewer digits was rounded too much to tell
        if row["averageBandwidth"] >= 1:
            computed = row["messageRate"] * row["bytes"] * 8e6 / GBIT
            parsing.check_agreement(row["averageBandwidth"], computed, f"the bandwidth of {row['bytes']:.0f} bytes")
    headlines = {"peakBandwidth": peak * GBIT, "averageBandwidth": average * GBIT, "messageRate": rate * 1e6}
    notes = () if peak > 0 else (NO_PEAK,)
    return ToolMeasurement(
        {name: value for name, value in headlines.items() if value > 0},
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
        Headline("peakBandwidth", "bit/s", True, "The highest peak of all message sizes."),
        Headline("averageBandwidth", "bit/s", True, "The highest average of all message sizes."),
        Headline("messageRate", "1/s", True, "The most messages a second."),
    ),
    columns=("mode", "qps", "iterations"),
)

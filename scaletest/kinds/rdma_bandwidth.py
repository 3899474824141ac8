"""RDMABandwidth: ib_read_bw and ib_write_bw over all message sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.kinds import rdma
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import Headline, Kind, Measured, Output, Site, Task, pair

GBIT = 1e9


@dataclass(frozen=True, kw_only=True)
class RDMABandwidthSpec(rdma.RDMASpec):
    """All fields of its own are the original's."""

    qps: int = spec_field(1, "Queue pairs.", minimum=1, maximum=16384)


def tasks(spec: RDMABandwidthSpec, site: Site) -> Sequence[Task]:
    """Server and client."""
    return rdma.tasks(spec, site, f"ib_{spec.mode}_bw", ("--report_gbits", "-q", str(spec.qps)))


def parse(spec: RDMABandwidthSpec, output: Output) -> Measured:
    """Bytes, iterations, peak and average in Gbit/s, messages in millions a second. Raises Failed."""
    names = ("bytes", "iterations", "peakBandwidth", "averageBandwidth", "messageRate")
    rows = [dict(zip(names, row, strict=True)) for row in rdma.table(output, f"ib_{spec.mode}_bw", len(names))]
    return Measured(
        {
            "peakBandwidth": max(row["peakBandwidth"] for row in rows) * GBIT,
            "averageBandwidth": max(row["averageBandwidth"] for row in rows) * GBIT,
            "messageRate": max(row["messageRate"] for row in rows) * 1e6,
        },
        {"bandwidthUnits": "Gbit/s", "messageRateUnits": "10^6/s", "results": rows},
    )


KIND = Kind(
    name="RDMABandwidth",
    plural="rdmabandwidths",
    help="Bandwidth of RDMA reads or writes between two nodes.",
    spec=RDMABandwidthSpec,
    measures="client",
    layout=pair,
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

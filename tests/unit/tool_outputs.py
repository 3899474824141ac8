"""Outputs of benchmark tools, real and altered, and what their parsers make of them."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.kinds.failure import BenchmarkFailed
from scaletest.benchmarks.kinds.kind import ToolMeasurement, ToolOutput

SAMPLES = Path(__file__).parent / "samples" / "benchmarks"
Report = dict[str, Any]


def sample(name: str) -> str:
    return (SAMPLES / name).read_text("utf-8")


def parse(
    kind: str, spec: dict[str, Any], text: str, errors: str = "", code: int = 0
) -> ToolMeasurement:
    asked = benchmark.read_benchmark({"kind": kind, "spec": spec})
    return asked.kind.parse(asked.spec, ToolOutput(text, errors, code))


def refused(kind: str, spec: dict[str, Any], text: str) -> BenchmarkFailed:
    with pytest.raises(BenchmarkFailed) as error:
        parse(kind, spec, text)
    return error.value


# -- fio
# --------------------------------------------------------------------------------------------------

FIO = {"rw": "randrw", "runtime": "3s"}


def fio_report(*workers: tuple[str, int]) -> Report:
    """What fio's client reports of these servers, each of which measured the same, with their
    sum.
    """
    text = sample("fio-client-1worker-1job.out")
    report: Report = json.loads(text[text.index("{") :])
    (row,) = report["client_stats"]
    rows = [{**copy.deepcopy(row), "hostname": host, "port": port} for host, port in workers]
    if len(rows) > 1:
        whole = {**copy.deepcopy(row), "jobname": "All clients"}
        for side in ("read", "write"):
            for name in ("io_bytes", "total_ios", "bw_bytes", "iops"):
                whole[side][name] *= len(rows)
            del whole[side]["clat_ns"]["percentile"]
        rows.append(whole)
    return {**report, "client_stats": rows}


# -- iperf
# --------------------------------------------------------------------------------------------------

TCP = {"streams": 2, "duration": 3}
BOTH = {"direction": "both", "duration": 2}
UDP = {"protocol": "UDP", "duration": 1}


def iperf_report(name: str = "iperf3-tcp-2streams.json") -> Report:
    report: Report = json.loads(sample(name))
    return report


def udp_report(*, packets: int = 100, lost: int = 10, ways: int = 1) -> Report:
    """What iperf3 reports of datagrams of 1250 bytes in a second, each way."""
    start = {"protocol": "UDP", "num_streams": 1, "duration": 1, "omit": 0, "reverse": 0}
    counts = {"packets": packets, "lost_packets": lost, "seconds": 1.0, "jitter_ms": 0.5}
    sent = {**counts, "bytes": 1250 * packets, "bits_per_second": 1e4 * packets}
    arrived = {
        **counts,
        "bytes": 1250 * (packets - lost),
        "bits_per_second": 1e4 * (packets - lost),
    }
    end: Report = {"streams": [{"udp": sent}] * ways}
    for suffix in ("", "_bidir_reverse")[:ways]:
        end |= {f"sum{suffix}": sent, f"sum_sent{suffix}": sent, f"sum_received{suffix}": arrived}
    return {"start": {"test_start": start}, "end": end}


IPERF2 = {"tool": "iperf", "streams": 2, "duration": 1}
TEXT_HEAD = (
    "Client connecting to 127.0.0.1, TCP port 5001\n"
    "[  1] local 127.0.0.1 port 56132 connected with 127.0.0.1 port 5001\n"
)
TEXT_STREAMS = """\
[  2] 0.0000-1.0115 sec  1337344 KBytes  10830774 Kbits/sec
[  1] 0.0000-1.0111 sec  1438336 KBytes  11653564 Kbits/sec
"""
TEXT_SUM = "[SUM] 0.0000-1.0004 sec  2775680 KBytes  22728439 Kbits/sec\n"

"""Parse the text that a client of iperf 2 writes with `--format k`."""

import re
from typing import NamedTuple

from scaletest.benchmarks.kinds import Failure, ToolMeasurement, ToolOutput, fail_if, parsing

_SUM = "SUM"  # iperf's name of the row with the sum of all streams
_PREFIXES = ("", "K", "M", "G")
_NUMBER = r"\d{1,15}(?:\.\d{1,9})?"
# [  1] 0.0000-3.0165 sec  8754688 KBytes  23775008 Kbits/sec
_ROW = re.compile(
    rf"^\[\s*(?P<name>\d+|SUM)\]\s+(?P<start>{_NUMBER})-\s*(?P<end>{_NUMBER}) sec"
    rf"\s+(?P<size>{_NUMBER}) (?P<size_prefix>[KMG]?)Bytes"
    rf"\s+(?P<rate>{_NUMBER}) (?P<rate_prefix>[KMG]?)bits/sec\s*$",
    re.MULTILINE,
)
# The relative error of one second when iperf 2 rounds both of its ends to tenths.
ROUNDED = 0.12


class _Stream(NamedTuple):
    """iperf 2's numbers of a stream, or of the sum."""

    name: str  # a number, or SUM
    seconds: float
    bytes: float
    bits_per_second: float


def parse(output: ToolOutput, streams: int, duration_s: float) -> ToolMeasurement:
    """Parse the output of a client with so many streams. Raises BenchmarkFailed."""
    parsing.check_exit(output, "iperf")
    lines = output.stdout.splitlines()
    fail_if(
        not output.stdout.endswith("\n"),
        "iperf's output ends in the middle of a line",
        lines[-1:],
    )
    datagrams = [line for line in lines if "UDP port" in line]
    fail_if(
        datagrams,
        "iperf measured UDP instead of TCP",
        datagrams,
        failure=Failure.MISMATCH,
    )
    rows = [
        _Stream(
            row["name"],
            float(row["end"]) - float(row["start"]),
            float(row["size"]) * 1024.0 ** _PREFIXES.index(row["size_prefix"]),
            float(row["rate"]) * 1000.0 ** _PREFIXES.index(row["rate_prefix"]),
        )
        for row in _ROW.finditer(output.stdout)
    ]
    # each stream once
    single = [row for row in rows if row.name != _SUM]
    fail_if(
        len(single) != streams or len({row.name for row in single}) != streams,
        f"iperf reports {len(single)} rows of streams instead of one for each of {streams}",
        lines[-4:],
    )
    for row in rows:
        # of iperf's own sum only the bytes can be compared: its interval differs
        if row.name == _SUM:
            parsing.check_agreement(
                row.bytes, sum(stream.bytes for stream in single), "the sum of the streams' bytes"
            )
        parsing.check_length(row.seconds, duration_s, "iperf")
        parsing.check_agreement(
            row.bits_per_second,
            8 * row.bytes / row.seconds,
            f"the rate of {row.name}",
            rounded=ROUNDED,
        )
    total = sum(row.bits_per_second for row in single)
    fail_if(total <= 0, "iperf sent nothing", lines[-4:])
    peer = re.search(r"connected with (\S+) port", output.stdout)
    return ToolMeasurement(
        {"bandwidth": total},
        {
            "streams": {
                row.name: {"bytes": row.bytes, "bits_per_second": row.bits_per_second}
                for row in single
            }
        },
        remote=peer[1] if peer else "",
        notes=("iperf 2 reports what the client sent, not what arrived",),
    )

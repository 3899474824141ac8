"""Parse the output of iperf 2: CSV, or the text format that it uses on slow links too."""

import re
from typing import NamedTuple

from scaletest.benchmarks.kinds import (
    BenchmarkFailed,
    Failure,
    ToolMeasurement,
    ToolOutput,
    fail_if,
    parsing,
)

CSV_COLUMNS = 9  # of a line about TCP; one about UDP has more
_SUM, _PREFIXES = "SUM", ("", "K", "M", "G")
_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"


class _Stream(NamedTuple):
    """iperf 2's numbers of a stream, or of the sum."""

    name: str  # a number, or SUM
    remote: str  # the peer's address, "" in the text format
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
    csv = [line.split(",") for line in lines if line.count(",") >= CSV_COLUMNS - 1]
    datagrams = [line for line in lines if "UDP port" in line]
    datagrams = datagrams or [",".join(row) for row in csv if len(row) > CSV_COLUMNS]
    fail_if(
        datagrams,
        "iperf measured UDP instead of TCP",
        datagrams,
        failure=Failure.MISMATCH,
    )
    # on slow links it may have written text in spite of --reportstyle C
    rows = list(map(_read_csv_row, csv))
    if not csv:
        for name, start, end, size, large, rate, prefix in re.findall(
            rf"^\[\s*(\d+|SUM)\]\s+{_NUMBER}-\s*{_NUMBER} sec\s+{_NUMBER} ([KMG]?)Bytes"
            rf"\s+{_NUMBER} ([KMG]?)bits/sec\s*$",
            output.stdout,
            re.MULTILINE,
        ):
            rows.append(
                _Stream(
                    name,
                    "",
                    float(end) - float(start),
                    float(size) * 1024.0 ** _PREFIXES.index(large),
                    float(rate) * 1000.0 ** _PREFIXES.index(prefix),
                )
            )
    # each stream once
    single, last_lines = [row for row in rows if row.name != _SUM], lines[-4:]
    fail_if(
        len(single) != streams,
        f"iperf reports {len(single)} streams instead of {streams}",
        last_lines,
    )
    fail_if(
        len({row.name for row in single}) != streams,
        "iperf reports a stream more than once",
        last_lines,
    )
    # of iperf's own sum only the bytes can be compared: its interval differs
    for row in rows:
        if row.name == _SUM:
            parsing.check_agreement(
                row.bytes, sum(stream.bytes for stream in single), "the sum of the streams' bytes"
            )
        parsing.check_length(row.seconds, duration_s, "iperf")
        parsing.check_agreement(
            row.bits_per_second,
            8 * row.bytes / row.seconds,
            f"the rate of {row.name}",
            # the relative error of one second when iperf 2 rounds both of its ends to tenths
            rounded=0.12,
        )
    total = sum(row.bits_per_second for row in single)
    fail_if(total <= 0, "iperf sent nothing", last_lines)
    return ToolMeasurement(
        {"bandwidth": total},
        {
            "streams": {
                row.name: {"bytes": row.bytes, "bits_per_second": row.bits_per_second}
                for row in single
            }
        },
        remote=single[0].remote,
        notes=("iperf 2 reports what the client sent, not what arrived",),
    )


def _read_csv_row(columns: list[str]) -> _Stream:
    """Read time,local,port,remote,port,id,interval,bytes,bit/s; the sum has id -1."""
    interval = re.fullmatch(rf"{_NUMBER}-{_NUMBER}", columns[6])
    if not interval or not all(number.isdecimal() and len(number) < 19 for number in columns[7:9]):
        raise BenchmarkFailed(
            Failure.BAD_OUTPUT, "iperf wrote a line without numbers", [",".join(columns)]
        )
    return _Stream(
        name=_SUM if columns[5] == "-1" else columns[5],
        remote=columns[3],
        seconds=float(interval[2]) - float(interval[1]),
        bytes=float(columns[7]),
        bits_per_second=float(columns[8]),
    )

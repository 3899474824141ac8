"""IPerf: bandwidth between two nodes over TCP or UDP, by iperf3's JSON, or by iperf 2's CSV.

The received rate counts, not the sent one: what lies in buffers at the end never arrived. iperf 2 knows the sent one
alone, and the result says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scaletest.kinds import parsing
from scaletest.kinds.common import PairSpec
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
    bound,
    server_and_client,
)
from scaletest.model.errors import InvalidValue

PORTS = {"iperf3": 5201, "iperf": 5001}
# So many of the intervals are kept; a long run's are taken evenly.
MOST_INTERVALS = 120
CSV_COLUMNS = 9
# By so much a second differs from itself that iperf 2 rounds to tenths at both of its ends.
INTERVAL_ROUNDED = 0.12
SENT = "iperf 2 reports what the client sent, not what arrived"
_RATES = ("bandwidth", "reverseBandwidth")
_SUM, _PREFIXES = "SUM", ("", "K", "M", "G")
_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_LINE = re.compile(
    rf"^\[\s*(\d+|SUM)\]\s+{_NUMBER}-\s*{_NUMBER} sec\s+{_NUMBER} ([KMG]?)Bytes\s+{_NUMBER} ([KMG]?)bits/sec\s*$",
    re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True)
class IPerfSpec(PairSpec):
    """duration and streams are the original's, which had no defaults; the rest is ours."""

    duration: int = spec_field(10, "Seconds of measuring.", minimum=1, maximum=86400)
    streams: int = spec_field(1, "Parallel streams.", minimum=1, maximum=128)
    tool: str = spec_field("iperf3", "The tool: iperf3, or iperf (version 2).", choices=("iperf3", "iperf"))
    protocol: str = spec_field("TCP", "What is sent.", choices=("TCP", "UDP"), aliases={"tcp": "TCP", "udp": "UDP"})
    direction: str = spec_field(
        "forward",
        "forward: the client sends; reverse: the server does; both: at once.",
        choices=("forward", "reverse", "both"),
    )
    bitrate: str = spec_field(
        "",
        "Rate of each stream to aim for, such as 10M or 1G; empty: no limit for TCP, 1M for UDP.",
        pattern=r"|\d{1,9}(\.\d{1,3})?[KMG]?",
        words="a number of bits a second, as in 10M",
    )
    omit: int = spec_field(0, "Seconds at the beginning that do not count.", minimum=0, maximum=3600)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tool == "iperf" and (self.protocol, self.direction, self.omit) != ("TCP", "forward", 0):
            raise InvalidValue("iperf 2 is used for TCP from the client only", hint="use tool iperf3")


class _Row(NamedTuple):
    """What iperf 2 says of a stream, or of their sum. remote: "" in its text for people."""

    stream: str
    remote: str
    seconds: float
    bytes: float
    bits_per_second: float


def tasks(spec: IPerfSpec, site: ExecutionSite) -> Sequence[Task]:
    """A server that listens on its own address, and the client that measures."""
    address, port = site.address("server"), PORTS[spec.tool]
    family = "-6" if spec.ip_family == "IPv6" else "-4"
    if spec.tool == "iperf":
        six = ("--ipv6_domain",) if spec.ip_family == "IPv6" else ()
        server = ("iperf", "--server", "--bind", address, *six)
        client = ["iperf", "--client", address, *six, "--time", str(spec.duration), "--parallel", str(spec.streams)]
        client += ["--reportstyle", "C", *(("--bandwidth", spec.bitrate) if spec.bitrate else ())]
    else:
        server = ("iperf3", family, "--server", "--one-off", "--bind", address, "--port", str(port), "--json")
        client = ["iperf3", family, "--client", address, "--port", str(port), "--json"]
        client += ["--time", str(spec.duration), "--parallel", str(spec.streams), "--connect-timeout", "10000"]
        client += _options(spec)
    return (
        Task("server", 0, bound(spec, server), port=port),
        Task("client", 0, bound(spec, client)),
    )


def _options(spec: IPerfSpec) -> list[str]:
    found = ["--udp"] if spec.protocol == "UDP" else []
    found += {"forward": [], "reverse": ["--reverse"], "both": ["--bidir"]}[spec.direction]
    found += ["--bitrate", spec.bitrate] if spec.bitrate else []
    return found + (["--omit", str(spec.omit)] if spec.omit else [])


def parse(spec: IPerfSpec, output: ToolOutput) -> ToolMeasurement:
    """iperf3's JSON or iperf 2's CSV. Raises Failed."""
    return _csv(spec, output) if spec.tool == "iperf" else _json(spec, output)


def _json(spec: IPerfSpec, output: ToolOutput) -> ToolMeasurement:
    if not output.stdout.strip():
        parsing.ended_well(output, "iperf3")
    data = parsing.json_object(output.stdout, "iperf3")
    said = data.get("error")
    if said:
        raise BenchmarkFailed(Failure.EXIT, "iperf3 says that it failed", [str(said)])
    parsing.ended_well(output, "iperf3")
    streams = parsing.at(data, "end", "streams")
    wanted = spec.streams * (2 if spec.direction == "both" else 1)
    if not isinstance(streams, list) or len(streams) != wanted:
        count = len(streams) if isinstance(streams, list) else 0
        raise parsing.bad(f"iperf3 reports {count} streams instead of {wanted}", list(data))
    _check_test(spec, data)
    headlines = _udp(spec, data, streams) if spec.protocol == "UDP" else _tcp(spec, data, streams)
    return ToolMeasurement(
        headlines, _result(data, streams), str(parsing.at(data, "start", "connected", 0, "remote_host") or "")
    )


def _check_test(spec: IPerfSpec, data: dict[str, Any]) -> None:
    """Raises Failed when iperf3 says that it did something else than it was asked for."""
    wanted = {
        "protocol": spec.protocol,
        "num_streams": spec.streams,
        "duration": spec.duration,
        "omit": spec.omit,
        "reverse": int(spec.direction == "reverse"),
    }
    for name, value in wanted.items():
        used = parsing.at(data, "start", "test_start", name)
        if used != value:
            raise BenchmarkFailed(Failure.MISMATCH, f"iperf3 measured with {name} {used} instead of {value}")


def _ways(spec: IPerfSpec, name: str) -> list[str]:
    """What iperf3 calls the sums of the directions that are measured."""
    return [name, *([f"{name}_bidir_reverse"] if spec.direction == "both" else [])]


def _check_sums(spec: IPerfSpec, data: dict[str, Any], streams: list[Any], part: str, name: str) -> None:
    """Raises Failed when the streams are not those of the sums, or did not measure as long as they should have."""
    total = sum(parsing.number(data, "end", way, "bytes") for way in _ways(spec, name))
    own = sum(parsing.number(stream, part, "bytes") for stream in streams)
    parsing.check_agreement(total, own, "the sum of the streams' bytes")
    for way in _ways(spec, name):
        parsing.check_length(parsing.number(data, "end", way, "seconds"), spec.duration, "iperf3")


def _rate(data: dict[str, Any], way: str) -> float:
    """The rate of a direction in bit/s, which is what was counted in its time. Raises Failed when it is not."""
    rate = parsing.positive(data, "end", way, "bits_per_second")
    size, seconds = (parsing.positive(data, "end", way, field) for field in ("bytes", "seconds"))
    parsing.check_agreement(rate, 8 * size / seconds, f"{way}.bits_per_second")
    return rate


def _tcp(spec: IPerfSpec, data: dict[str, Any], streams: list[Any]) -> dict[str, float]:
    _check_sums(spec, data, streams, "receiver", "sum_received")
    ways = zip(_RATES, _ways(spec, "sum_received"), strict=False)
    headlines = {headline: _rate(data, way) for headline, way in ways}
    sent = _ways(spec, "sum_sent")
    # not every system counts them
    if all(parsing.at(data, "end", way, "retransmits") is not None for way in sent):
        headlines["retransmits"] = sum(parsing.number(data, "end", way, "retransmits") for way in sent)
    return headlines


def _udp(spec: IPerfSpec, data: dict[str, Any], streams: list[Any]) -> dict[str, float]:
    """Both directions count together for what is lost, and the worse one for the jitter."""
    _check_sums(spec, data, streams, "udp", "sum")
    ways = _ways(spec, "sum")
    packets = [parsing.positive(data, "end", way, "packets") for way in ways]
    lost = [parsing.number(data, "end", way, "lost_packets") for way in ways]
    headlines = {
        "jitter": max(parsing.number(data, "end", way, "jitter_ms") for way in ways) / 1000,
        "lost": sum(lost) / sum(packets),
    }
    shares = [part / whole for part, whole in zip(lost, packets, strict=True)]
    for headline, way, share in zip(_RATES, _ways(spec, "sum_received"), shares, strict=False):
        headlines[headline] = _arrived(data, way, share)
    return headlines


def _arrived(data: dict[str, Any], way: str, lost: float) -> float:
    """The rate at which datagrams arrived, in bit/s; 0 where none did. Raises Failed.

    A version that does not give it says in `sum` what was sent.
    """
    if parsing.at(data, "end", way) is None:
        sent = parsing.positive(data, "end", way.replace("sum_received", "sum"), "bits_per_second")
        return sent * (1 - lost)
    return _rate(data, way) if lost < 1 else parsing.number(data, "end", way, "bits_per_second")


def _result(data: dict[str, Any], streams: list[Any]) -> dict[str, Any]:
    """The end of the report whole, and the sums of the intervals; those of every stream are what makes it large."""
    sums = [one.get("sum") for one in data.get("intervals") or [] if isinstance(one, dict)]
    step = -(-len(sums) // MOST_INTERVALS) or 1
    keep = ("start", "seconds", "bits_per_second", "retransmits", "omitted")
    return {
        "version": parsing.at(data, "start", "version"),
        "test": parsing.at(data, "start", "test_start"),
        "mss": parsing.at(data, "start", "tcp_mss_default"),
        "end": {name: value for name, value in (parsing.at(data, "end") or {}).items() if name != "streams"},
        "streams": streams,
        "intervals": [{name: one.get(name) for name in keep} for one in sums[::step] if isinstance(one, dict)],
    }


def absent(spec: IPerfSpec) -> dict[str, str]:
    """The headlines that this spec cannot have, with the reason."""
    missing = {}
    if spec.direction != "both":
        missing["reverseBandwidth"] = f"direction {spec.direction} measures one direction"
    if spec.protocol == "TCP":
        missing |= dict.fromkeys(("jitter", "lost"), "TCP has neither jitter nor lost datagrams")
    if spec.protocol == "UDP":
        missing["retransmits"] = "UDP sends nothing again"
    if spec.tool == "iperf":
        missing["retransmits"] = "iperf 2 does not count what is sent again"
    return missing


def _text(spec: IPerfSpec, output: ToolOutput) -> ToolMeasurement:
    """iperf 2's lines for people, decimals on slow links included."""
    rows = [
        _Row(stream, "", float(end) - float(start), float(size) * 1024.0 ** _PREFIXES.index(large), _bits(rate, prefix))
        for stream, start, end, size, large, rate, prefix in _LINE.findall(output.stdout)
    ]
    return _summed(spec, rows, output)


def _bits(rate: str, prefix: str) -> float:
    return float(rate) * 1000.0 ** _PREFIXES.index(prefix)


def _csv(spec: IPerfSpec, output: ToolOutput) -> ToolMeasurement:
    """iperf 2: a line a stream, time,local,port,remote,port,id,interval,bytes,bit/s; their sum has id -1."""
    parsing.ended_well(output, "iperf")
    lines = output.stdout.splitlines()
    if not output.stdout.endswith("\n"):
        raise parsing.bad("iperf's output ends within a line", lines[-1:])
    rows = [line.split(",") for line in lines if line.count(",") >= CSV_COLUMNS - 1]
    datagrams = [line for line in lines if "UDP port" in line] or [
        ",".join(row) for row in rows if len(row) > CSV_COLUMNS
    ]
    if datagrams:
        raise BenchmarkFailed(Failure.MISMATCH, "iperf measured UDP instead of TCP", datagrams)
    return _summed(spec, list(map(_csv_row, rows)), output) if rows else _text(spec, output)


def _csv_row(row: list[str]) -> _Row:
    interval = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)-(\d{1,9}(?:\.\d{1,9})?)", row[6])
    if not (row[7].isdecimal() and row[8].isdecimal() and len(row[8]) < 19 and len(row[7]) < 19 and interval):
        raise parsing.bad("iperf wrote a line without numbers", [",".join(row)])
    seconds = float(interval[2]) - float(interval[1])
    return _Row(_SUM if row[5] == "-1" else row[5], row[3], seconds, float(row[7]), float(row[8]))


def _summed(spec: IPerfSpec, rows: Sequence[_Row], output: ToolOutput) -> ToolMeasurement:
    """The sum of the streams' rates. iperf's own sum has an interval of its own, so only its bytes can be compared."""
    streams = [row for row in rows if row.stream != _SUM]
    lines = output.stdout.splitlines()[-4:]
    if len(streams) != spec.streams:
        raise parsing.bad(f"iperf reports {len(streams)} streams instead of {spec.streams}", lines)
    if len({row.stream for row in streams}) != spec.streams:
        raise parsing.bad("iperf reports a stream more than once", lines)
    own = sum(row.bytes for row in streams)
    for row in rows:
        if row.stream == _SUM:
            parsing.check_agreement(row.bytes, own, "the sum of the streams' bytes")
        parsing.check_length(row.seconds, spec.duration, "iperf")
        rate = 8 * row.bytes / row.seconds
        parsing.check_agreement(row.bits_per_second, rate, f"the rate of {row.stream}", INTERVAL_ROUNDED)
    total = sum(row.bits_per_second for row in streams)
    if total <= 0:
        raise parsing.bad("iperf sent nothing", lines)
    result = {row.stream: {"bytes": row.bytes, "bits_per_second": row.bits_per_second} for row in streams}
    return ToolMeasurement({"bandwidth": total}, {"streams": result}, streams[0].remote, notes=(SENT,))


KIND = Kind(
    name="IPerf",
    plural="iperfs",
    help="Bandwidth between two nodes, by iperf3 or iperf 2.",
    spec=IPerfSpec,
    measures="client",
    layout=server_and_client,
    programs=lambda spec: (spec.tool,),
    tasks=tasks,
    parse=parse,
    absent=absent,
    limit_s=lambda spec: spec.duration + spec.omit + 60,
    headlines=(
        Headline("bandwidth", "bit/s", True, "Received, all streams together; with iperf 2, sent."),
        Headline("reverseBandwidth", "bit/s", True, "Received by the client, when both directions are measured."),
        Headline("retransmits", "", None, "Segments sent again, all streams together."),
        Headline("jitter", "s", False, "UDP: as RFC 1889 defines it."),
        Headline("lost", "", False, "UDP: part of the datagrams that did not arrive."),
    ),
    columns=("duration", "streams"),
)

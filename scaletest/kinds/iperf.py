"""IPerf: bandwidth between two nodes over TCP or UDP, by iperf3's JSON, or by iperf 2's CSV.

The received rate counts, not the sent one: what lies in buffers at the end never arrived.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.kinds import reading
from scaletest.kinds.common import PairSpec
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import Failed, Failure, Headline, Kind, Measured, Output, Site, Task, bound, pair
from scaletest.model.errors import InvalidValue

PORTS = {"iperf3": 5201, "iperf": 5001}
# So many of the intervals are kept; a long run's are taken evenly.
MOST_INTERVALS = 120
CSV_COLUMNS = 9
_LINE = re.compile(
    r"^\[\s*(\d+)\]\s+[\d.]+-\s*[\d.]+ sec\s+[\d.]+ [KMG]?Bytes\s+(\d{1,15}(?:\.\d{1,6})?) ([KMG]?)bits/sec\s*$",
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


def tasks(spec: IPerfSpec, site: Site) -> Sequence[Task]:
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


def parse(spec: IPerfSpec, output: Output) -> Measured:
    """iperf3's JSON or iperf 2's CSV. Raises Failed."""
    return _csv(spec, output) if spec.tool == "iperf" else _json(spec, output)


def _json(spec: IPerfSpec, output: Output) -> Measured:
    if not output.stdout.strip():
        reading.ended_well(output, "iperf3")
    data = reading.json_object(output.stdout, "iperf3")
    said = data.get("error")
    if said:
        raise Failed(Failure.EXIT, "iperf3 says that it failed", [str(said)])
    reading.ended_well(output, "iperf3")
    streams = reading.at(data, "end", "streams")
    wanted = spec.streams * (2 if spec.direction == "both" else 1)
    if not isinstance(streams, list) or len(streams) != wanted:
        count = len(streams) if isinstance(streams, list) else 0
        raise reading.bad(f"iperf3 reports {count} streams instead of {wanted}", list(data))
    udp = reading.at(data, "start", "test_start", "protocol") == "UDP"
    headlines = _udp(data) if udp else _tcp(data)
    return Measured(
        headlines, _result(data, streams), str(reading.at(data, "start", "connected", 0, "remote_host") or "")
    )


def _tcp(data: dict[str, Any]) -> dict[str, float]:
    found = {"bandwidth": reading.number(data, "end", "sum_received", "bits_per_second")}
    if reading.at(data, "end", "sum_received_bidir_reverse") is not None:
        found["reverseBandwidth"] = reading.number(data, "end", "sum_received_bidir_reverse", "bits_per_second")
    if reading.at(data, "end", "sum_sent", "retransmits") is not None:
        found["retransmits"] = reading.number(data, "end", "sum_sent", "retransmits")
    return found


def _udp(data: dict[str, Any]) -> dict[str, float]:
    lost = reading.number(data, "end", "sum", "lost_percent") / 100
    # `sum` counts what was sent; since 3.16 the receiver's own sum stands beside it
    received = reading.at(data, "end", "sum_received", "bits_per_second")
    sent = reading.number(data, "end", "sum", "bits_per_second")
    return {
        "bandwidth": float(received) if isinstance(received, int | float) and received > 0 else sent * (1 - lost),
        "jitter": reading.number(data, "end", "sum", "jitter_ms") / 1000,
        "lost": lost,
    }


def _result(data: dict[str, Any], streams: list[Any]) -> dict[str, Any]:
    """The end of the report whole, and the sums of the intervals; those of every stream are what makes it large."""
    sums = [one.get("sum") for one in data.get("intervals") or [] if isinstance(one, dict)]
    step = -(-len(sums) // MOST_INTERVALS) or 1
    keep = ("start", "seconds", "bits_per_second", "retransmits", "omitted")
    return {
        "version": reading.at(data, "start", "version"),
        "test": reading.at(data, "start", "test_start"),
        "mss": reading.at(data, "start", "tcp_mss_default"),
        "end": {name: value for name, value in (reading.at(data, "end") or {}).items() if name != "streams"},
        "streams": streams,
        "intervals": [{name: one.get(name) for name in keep} for one in sums[::step] if isinstance(one, dict)],
    }


def _text(spec: IPerfSpec, output: Output) -> Measured:
    """iperf 2's lines for people, decimals on slow links included; the sum line is not needed."""
    factors = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
    found = {
        stream: {"bits_per_second": float(rate) * factors[prefix]}
        for stream, rate, prefix in _LINE.findall(output.stdout)
    }
    return _summed(spec, found, output, "")


def _summed(spec: IPerfSpec, found: Mapping[str, Mapping[str, float]], output: Output, remote: str) -> Measured:
    if len(found) != spec.streams:
        lines = output.stdout.splitlines()
        raise reading.bad(f"iperf reports {len(found)} streams instead of {spec.streams}", lines[-4:])
    total = sum(one["bits_per_second"] for one in found.values())
    return Measured({"bandwidth": total}, {"streams": dict(found)}, remote)


def _csv(spec: IPerfSpec, output: Output) -> Measured:
    """iperf 2: a line a stream, time,local,port,remote,port,id,interval,bytes,bit/s; their sum has id -1."""
    reading.ended_well(output, "iperf")
    rows = [line.split(",") for line in output.stdout.splitlines() if line.count(",") >= CSV_COLUMNS - 1]
    lines = output.stdout.splitlines()
    if not output.stdout.endswith("\n"):
        raise reading.bad("iperf's output ends within a line", lines[-1:])
    found: dict[str, dict[str, float]] = {}
    remote = ""
    for row in rows:
        if not (row[7].isdigit() and row[8].isdigit() and len(row[8]) < 19):
            raise reading.bad("iperf wrote a line without numbers", [",".join(row)])
        if row[5] != "-1":
            found[row[5]] = {"bytes": float(row[7]), "bits_per_second": float(row[8])}
            remote = row[3]
    return _summed(spec, found, output, remote) if rows else _text(spec, output)


KIND = Kind(
    name="IPerf",
    plural="iperfs",
    help="Bandwidth between two nodes, by iperf3 or iperf 2.",
    spec=IPerfSpec,
    measures="client",
    layout=pair,
    programs=lambda spec: (spec.tool,),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: spec.duration + spec.omit + 60,
    headlines=(
        Headline("bandwidth", "bit/s", True, "Received, all streams together."),
        Headline("reverseBandwidth", "bit/s", True, "Received by the client, when both directions are measured."),
        Headline("retransmits", "", None, "Segments sent again, all streams together."),
        Headline("jitter", "s", False, "UDP: as RFC 1889 defines it."),
        Headline("lost", "", False, "UDP: part of the datagrams that did not arrive."),
    ),
    columns=("duration", "streams"),
)

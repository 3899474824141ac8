"""Measure bandwidth between two nodes over TCP or UDP by iperf3, or by iperf 2.

The received rate counts, not the sent one, since data in buffers at the end never arrived. iperf 2
reports only the sent one, and the result notes it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

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
    iperf2,
    parsing,
    server_and_client,
)
from scaletest.model import checks, declared

_RATES = ("bandwidth", "reverseBandwidth")  # headlines in the order of `_directions`


@dataclass(frozen=True, kw_only=True)
class IPerfSpec(PairSpec):
    """Spec of IPerf. duration and streams are kube-perftest's, which has no defaults for them."""

    duration: Annotated[int, Meta(ge=1, le=86400), "Seconds of measuring."] = 10
    streams: Annotated[int, Meta(ge=1, le=128), "Parallel streams."] = 1
    tool: Annotated[
        str, declared.choice(("iperf3", "iperf")), "The tool: iperf3, or iperf (version 2)."
    ] = "iperf3"
    protocol: Annotated[
        str,
        declared.choice(("TCP", "UDP")),
        declared.text_aliases({"tcp": "TCP", "udp": "UDP"}),
        "Transport protocol.",
    ] = "TCP"
    direction: Annotated[
        str,
        declared.choice(("forward", "reverse", "both")),
        "forward: the client sends; reverse: the server sends; both: at the same time.",
    ] = "forward"
    bitrate: Annotated[
        str,
        declared.text(r"|\d{1,9}(\.\d{1,3})?[KMG]?", "a number of bits per second, e.g. 10M"),
        "Target rate of each stream, such as 10M or 1G; empty: no limit for TCP, 1M for UDP.",
    ] = ""
    omit: Annotated[int, Meta(ge=0, le=3600), "Seconds at the start that do not count."] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.raise_first_mistake(
            (
                self.tool == "iperf"
                and (self.protocol, self.direction, self.omit) != ("TCP", "forward", 0),
                "iperf 2 measures only TCP from the client",
                "use tool iperf3",
            )
        )


def tasks(spec: IPerfSpec, site: ExecutionSite) -> Sequence[Task]:
    """Run a server that listens on its address only, and a client that measures."""
    commands = _iperf2_commands if spec.tool == "iperf" else _iperf3_commands
    server, client, port = commands(spec, site.address("server"))
    return (
        Task("server", 0, bind_to_cpus(spec, server), port=port),
        Task("client", 0, bind_to_cpus(spec, client)),
    )


def _iperf2_commands(spec: IPerfSpec, address: str) -> tuple[list[str], list[str], int]:
    """Return the commands of server and client, and their port."""
    server = ["iperf", "--server", "--bind", address]
    client = ["iperf", "--client", address, *_load(spec), "--format", "k"]
    if spec.ip_family == "IPv6":
        server.append("--ipv6_domain")
        client.append("--ipv6_domain")
    if spec.bitrate:
        client += ["--bandwidth", spec.bitrate]
    return server, client, 5001


def _iperf3_commands(spec: IPerfSpec, address: str) -> tuple[list[str], list[str], int]:
    """Return the commands of server and client, and their port."""
    port = 5201
    common = ["iperf3", "-6" if spec.ip_family == "IPv6" else "-4", "--port", str(port), "--json"]
    server = [*common, "--server", "--one-off", "--bind", address]
    client = [*common, "--client", address, *_load(spec), "--connect-timeout", "10000"]
    client += {"forward": [], "reverse": ["--reverse"], "both": ["--bidir"]}[spec.direction]
    if spec.protocol == "UDP":
        client.append("--udp")
    if spec.bitrate:
        client += ["--bitrate", spec.bitrate]
    if spec.omit:
        client += ["--omit", str(spec.omit)]
    return server, client, port


def _load(spec: IPerfSpec) -> list[str]:
    return ["--time", str(spec.duration), "--parallel", str(spec.streams)]


def parse(spec: IPerfSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse iperf3's JSON or what iperf 2 wrote. Raises BenchmarkFailed."""
    if spec.tool == "iperf":
        return iperf2.parse(output, spec.streams, spec.duration)
    # its exit code counts at once only without JSON, which says more of what failed
    if not output.stdout.strip():
        parsing.check_exit(output, "iperf3")
    report = parsing.json_object(output.stdout, "iperf3")
    error = str(report.get("error") or "")
    fail_if(error, "iperf3 reports an error", [error], failure=Failure.EXIT)
    parsing.check_exit(output, "iperf3")
    streams = parsing.part_at(report, "end", "streams")
    count = len(streams) if isinstance(streams, list) else 0
    expected = spec.streams * len(_directions(spec, "sum"))
    fail_if(
        count != expected, f"iperf3 reports {count} streams instead of {expected}", list(report)
    )
    # it measured with the settings of the spec
    settings = {
        "protocol": spec.protocol,
        "num_streams": spec.streams,
        "duration": spec.duration,
        "omit": spec.omit,
        "reverse": int(spec.direction == "reverse"),
    }
    for name, setting in settings.items():
        reported = parsing.part_at(report, "start", "test_start", name)
        fail_if(
            reported != setting,
            f"iperf3 measured with {name} {reported} instead of {setting}",
            failure=Failure.MISMATCH,
        )
    # sums by interval, without the large lists of streams; a result has 120 intervals at most, and
    # those of a longer run are thinned out evenly
    sums = [parsing.part_at(interval, "sum") for interval in report.get("intervals") or []]
    stride = math.ceil(len(sums) / 120) or 1
    keep = ("start", "seconds", "bits_per_second", "retransmits", "omitted")
    read_headlines = _udp_headlines if spec.protocol == "UDP" else _tcp_headlines
    return ToolMeasurement(
        read_headlines(spec, report, streams),
        {
            "version": parsing.part_at(report, "start", "version"),
            "test": parsing.part_at(report, "start", "test_start"),
            "mss": parsing.part_at(report, "start", "tcp_mss_default"),
            "end": {name: part for name, part in report["end"].items() if name != "streams"},
            "streams": streams,
            "intervals": [
                parsing.pick_keys(total, keep)
                for total in sums[::stride]
                if isinstance(total, dict)
            ],
        },
        str(parsing.part_at(report, "start", "connected", 0, "remote_host") or ""),
    )


def _directions(spec: IPerfSpec, name: str) -> list[str]:
    """Return iperf3's keys of a sum, such as sum_received, for each direction that is measured."""
    return [name, f"{name}_bidir_reverse"] if spec.direction == "both" else [name]


def _check_sums(
    spec: IPerfSpec, report: dict[str, Any], streams: list[Any], part: str, name: str
) -> None:
    """Raise BenchmarkFailed unless the streams match the sums and the duration.

    part, name: iperf3's keys of a stream's bytes and of their sum.
    """
    parsing.check_agreement(
        sum(parsing.number(report, "end", key, "bytes") for key in _directions(spec, name)),
        sum(parsing.number(stream, part, "bytes") for stream in streams),
        "the sum of the streams' bytes",
    )
    for key in _directions(spec, name):
        parsing.check_length(parsing.number(report, "end", key, "seconds"), spec.duration, "iperf3")


def _rate(report: dict[str, Any], key: str) -> float:
    """Return the rate of a direction in bit/s.

    Raises BenchmarkFailed unless it is bytes divided by time.
    """
    rate = parsing.positive(report, "end", key, "bits_per_second")
    size_bytes = parsing.positive(report, "end", key, "bytes")
    seconds = parsing.positive(report, "end", key, "seconds")
    parsing.check_agreement(rate, 8 * size_bytes / seconds, f"{key}.bits_per_second")
    return rate


def _tcp_headlines(spec: IPerfSpec, report: dict[str, Any], streams: list[Any]) -> dict[str, float]:
    """Return rates, and retransmits where they are counted."""
    _check_sums(spec, report, streams, "receiver", "sum_received")
    headlines = {
        headline: _rate(report, key)
        for headline, key in zip(_RATES, _directions(spec, "sum_received"), strict=False)
    }
    # some systems do not count them
    retransmits = [(report, "end", key, "retransmits") for key in _directions(spec, "sum_sent")]
    if all(parsing.part_at(*path) is not None for path in retransmits):
        headlines["retransmits"] = sum(parsing.number(*path) for path in retransmits)
    return headlines


def _udp_headlines(spec: IPerfSpec, report: dict[str, Any], streams: list[Any]) -> dict[str, float]:
    """Return rates, loss in both directions together, and jitter of the worse direction."""
    _check_sums(spec, report, streams, "udp", "sum")
    keys = _directions(spec, "sum")
    packets = [parsing.positive(report, "end", key, "packets") for key in keys]
    lost = [parsing.number(report, "end", key, "lost_packets") for key in keys]
    headlines = {
        "jitter": max(parsing.number(report, "end", key, "jitter_ms") for key in keys) / 1000,
        "lost": sum(lost) / sum(packets),
    }
    for headline, key, lost_here, sent_here in zip(_RATES, keys, lost, packets, strict=False):
        received = key.replace("sum", "sum_received")
        if lost_here < sent_here:
            headlines[headline] = _rate(report, received)
        else:
            # nothing arrived: bytes and rate are 0, which is fine
            headlines[headline] = parsing.number(report, "end", received, "bits_per_second")
    return headlines


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
    limit_s=lambda spec: spec.duration + spec.omit + 60,
    headlines=(
        Headline(
            "bandwidth",
            "bandwidth",
            "bit/s",
            True,
            "Received, all streams together; with iperf 2, sent.",
        ),
        Headline(
            "reverseBandwidth",
            "bandwidth, other direction",
            "bit/s",
            True,
            "Received by the client, when both directions are measured.",
        ),
        Headline(
            "retransmits",
            "retransmits",
            "",
            None,
            "TCP with iperf3: retransmitted segments, all streams together.",
        ),
        Headline("jitter", "jitter", "s", False, "UDP: as RFC 1889 defines it."),
        Headline(
            "lost",
            "share of datagrams lost",
            "",
            False,
            "UDP: share of the datagrams that did not arrive.",
        ),
    ),
    columns=("duration", "streams"),
)

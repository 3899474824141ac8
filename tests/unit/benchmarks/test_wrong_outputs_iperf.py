"""Outputs of iperf that are not what the spec asks for: none gives a number."""

import json
from typing import Any

import pytest

from tests.unit.tool_outputs import (
    BOTH,
    CSV_STREAMS,
    CSV_SUM,
    IPERF2,
    TCP,
    TEXT_HEAD,
    TEXT_STREAMS,
    TEXT_SUM,
    UDP,
    Report,
    iperf_report,
    parse,
    refused,
    udp_report,
)


@pytest.mark.parametrize(
    ("spec", "report", "message"),
    [
        (TCP, udp_report(), "streams instead of 2"),
        ({"duration": 1}, udp_report(), "protocol UDP instead of TCP"),
        ({**TCP, "protocol": "UDP"}, iperf_report(), "protocol TCP instead of UDP"),
        ({**TCP, "streams": 1}, iperf_report(), "2 streams instead of 1"),
        ({**TCP, "duration": 10}, iperf_report(), "duration 3 instead of 10"),
        ({**TCP, "omit": 1}, iperf_report(), "omit 0 instead of 1"),
        # two streams are not both directions of one, and both of one are not two
        ({**TCP, "streams": 1, "direction": "both"}, iperf_report(), "num_streams 2 instead of 1"),
        (
            {"streams": 2, "duration": 2},
            iperf_report("iperf3-tcp-bidir.json"),
            "num_streams 1 instead of 2",
        ),
        ({"duration": 2}, iperf_report("iperf3-tcp-reverse.json"), "reverse 1 instead of 0"),
        (
            {**BOTH, "direction": "reverse"},
            iperf_report("iperf3-tcp-bidir.json"),
            "2 streams instead of 1",
        ),
    ],
)
def test_an_iperf3_report_of_another_measurement_is_refused(
    spec: dict[str, Any], report: Report, message: str
) -> None:
    assert message in refused("IPerf", spec, json.dumps(report)).message


@pytest.mark.parametrize(
    ("way", "values", "message"),
    [
        ("sum_received", {"bits_per_second": 0}, "nothing was measured"),
        ("sum_received", {"bits_per_second": 4e10}, "contradicts itself"),
        ("sum_received", {"bytes": 7553548288 // 2}, "the sum of the streams"),
        ("sum_received", {"seconds": 0.5}, "0.5 s instead of 3 s"),
        ("sum_sent", {"retransmits": -1}, "no number"),
    ],
)
def test_an_iperf3_report_whose_sum_cannot_be_is_refused(
    way: str, values: Report, message: str
) -> None:
    report = iperf_report()
    report["end"][way] |= values
    assert message in refused("IPerf", TCP, json.dumps(report)).message


def test_datagrams_are_counted_where_they_arrive_in_both_directions() -> None:
    measured = parse(
        "IPerf", {**UDP, "direction": "both"}, json.dumps(udp_report(ways=2))
    ).headlines
    assert (measured["bandwidth"], measured["reverseBandwidth"], measured["lost"]) == (
        9e5,
        9e5,
        0.1,
    )
    # where none arrived that is the result, and where all should have it cannot be
    assert parse("IPerf", UDP, json.dumps(udp_report(lost=100))).headlines["bandwidth"] == 0
    report = udp_report(lost=0)
    report["end"]["sum_received"]["bits_per_second"] = 0
    assert "nothing was measured" in refused("IPerf", UDP, json.dumps(report)).message
    assert (
        "nothing was measured"
        in refused("IPerf", UDP, json.dumps(udp_report(packets=0, lost=0))).message
    )


def test_retransmits_count_in_both_directions() -> None:
    measured = parse("IPerf", BOTH, json.dumps(iperf_report("iperf3-tcp-bidir.json")))
    assert measured.headlines["retransmits"] == 33 + 83


@pytest.mark.parametrize(
    ("text", "total"),
    [
        (TEXT_HEAD + TEXT_STREAMS + TEXT_SUM, 10830774e3 + 11653564e3),
        (CSV_STREAMS + CSV_SUM, 22177485386 + 20768130618),
    ],
)
def test_the_streams_of_iperf_2_count_and_its_sum_is_checked(text: str, total: float) -> None:
    measured = parse("IPerf", IPERF2, text)
    assert measured.headlines == {"bandwidth": total}
    assert "sent" in measured.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT_STREAMS + TEXT_SUM.replace("2775680 K", "2775680 M"), "the sum of the streams"),
        (CSV_STREAMS + CSV_SUM.replace("5413535864", "2413535864"), "the sum of the streams"),
        (TEXT_STREAMS + TEXT_STREAMS.splitlines()[0] + "\n", "3 streams"),
        (CSV_STREAMS.replace(",1,0.0", ",2,0.0"), "more than once"),
        (CSV_STREAMS * 2, "4 streams"),
        (CSV_STREAMS.replace("0.0-1.0", "0.0-0.4"), "0.4 s instead of 1 s"),
        (TEXT_STREAMS.replace("10830774", "0"), "the rate of 2 is 0"),
        (
            TEXT_STREAMS.replace("1337344", "0")
            .replace("1438336", "0")
            .replace("10830774", "0")
            .replace("11653564", "0"),
            "sent nothing",
        ),
        (TEXT_HEAD.replace("TCP", "UDP") + TEXT_STREAMS, "UDP instead of TCP"),
        (CSV_STREAMS.replace("\n", ",0.000,0,-1,-0.000,0\n"), "UDP instead of TCP"),
        (CSV_STREAMS.replace("0.0-1.0", "-"), "without numbers"),
    ],
)
def test_numbers_that_iperf_2_cannot_have_measured_are_refused(text: str, message: str) -> None:
    assert message in refused("IPerf", IPERF2, text).message

"""Outputs of tools that did something else than the spec asks for: none gives a number, and each
says what is wrong.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.benchmarks.kinds import BenchmarkFailed, Failure, openfoam_case
from tests.unit.tool_outputs import (
    BOTH,
    FIO,
    IPERF2,
    TCP,
    TEXT_HEAD,
    TEXT_STREAMS,
    TEXT_SUM,
    UDP,
    Report,
    fio_report,
    iperf_report,
    parse,
    refused,
    sample,
    udp_report,
)

# -- MPI
# --------------------------------------------------------------------------------------------------

PINGPONG = sample("imb-mpi1-pingpong-tcp.txt")


def _row_of(size: int, text: str = PINGPONG) -> str:
    return next(line for line in text.splitlines(keepends=True) if line.split()[:1] == [str(size)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PINGPONG + PINGPONG, "instead of PingPong of 2 processes"),
        (PINGPONG.replace("#processes = 2", "#processes = 4"), "PingPong of 4 processes instead"),
        (
            PINGPONG.replace("Benchmarking PingPong", "Benchmarking PingPing"),
            "PingPing of 2 processes instead",
        ),
        (PINGPONG.replace(_row_of(1024), ""), "2048 bytes instead of 1024 bytes"),
        (PINGPONG.replace(_row_of(1024), _row_of(1024) * 2), "1024 bytes instead of 2048 bytes"),
        (PINGPONG.replace("5.36 ", "0.00 "), "of 0"),
        (PINGPONG.replace("8883.39", "17766.78"), "the bandwidth of 1048576 bytes"),
        (PINGPONG.replace("6.32 ", "-6.32 "), "impossible number"),
        (PINGPONG.replace("t[usec]", "t[msec]"), "other columns"),
        (PINGPONG.replace("Mbytes/sec", "Gbytes/sec"), "other columns"),
    ],
)
def test_a_ping_pong_of_another_kind_or_with_holes_is_refused(text: str, message: str) -> None:
    assert message in refused("MPIPingPong", {}, text).message


# -- RDMA
# --------------------------------------------------------------------------------------------------

BANDWIDTH, LATENCY = (
    sample("perftest-synthetic-ib_write_bw-all.txt"),
    sample("perftest-synthetic-ib_read_lat-all.txt"),
)


@pytest.mark.parametrize(
    ("kind", "spec", "text", "message"),
    [
        ("RDMABandwidth", {"mode": "read"}, BANDWIDTH, "did not measure RDMA_Read BW"),
        ("RDMALatency", {"mode": "write"}, LATENCY, "did not measure RDMA_Write Latency"),
        (
            "RDMABandwidth",
            {"mode": "write", "qps": 2},
            BANDWIDTH,
            "used 1 queue pairs instead of 2",
        ),
        ("RDMABandwidth", {"mode": "write"}, BANDWIDTH.replace("Gb/sec", "MB/sec"), "other units"),
        ("RDMABandwidth", {"mode": "write"}, BANDWIDTH * 2, "2 tables"),
        ("RDMALatency", {}, LATENCY * 2, "2 tables"),
        (
            "RDMABandwidth",
            {"mode": "write"},
            BANDWIDTH.replace("49.22", "98.44"),
            "the bandwidth of 1024 bytes",
        ),
        ("RDMALatency", {}, LATENCY.replace("usec", "cycles"), "other units"),
        ("RDMALatency", {}, LATENCY.replace(_row_of(4096, LATENCY), ""), "instead of 4096 bytes"),
        ("RDMALatency", {}, LATENCY.replace("2.60 ", "0.00 "), "a latency of 0"),
    ],
)
def test_a_perftest_of_another_kind_or_with_holes_is_refused(
    kind: str, spec: dict[str, Any], text: str, message: str
) -> None:
    assert message in refused(kind, spec, text).message


def test_a_peak_that_perftest_did_not_measure_is_left_out() -> None:
    rows = [line.split() for line in BANDWIDTH.splitlines()]
    lines = [
        "  ".join([*row[:2], "0.00", *row[3:]]) if row[:1] and row[0].isdigit() else " ".join(row)
        for row in rows
    ]
    measured = parse("RDMABandwidth", {"mode": "write"}, "\n".join(lines) + "\n")
    assert (
        set(measured.headlines) == {"averageBandwidth", "messageRate"}
        and "no peak" in measured.notes[0]
    )
    zeros = [
        " ".join([*line.split()[:3], "0", "0"]) if line[:1].isdigit() else line for line in lines
    ]
    assert "of 0" in refused("RDMABandwidth", {"mode": "write"}, "\n".join(zeros) + "\n").message


# -- OpenFOAM
# --------------------------------------------------------------------------------------------------


def openfoam_log(steps: int = openfoam_case.STEPS) -> str:
    """The log of the sample with so many steps in place of its cut middle."""
    head, _, tail = sample("openfoam-icofoam-2procs.log").partition(
        "[... middle of the log cut ...]\n"
    )
    step = "ExecutionTime = 0.18 s  ClockTime = 1 s\n"
    assert tail.count(step) == 2
    return head + step * (steps - 2) + tail


def test_a_whole_log_of_openfoam_gives_its_own_times() -> None:
    measured = parse("OpenFOAM", {"numProcs": 2}, openfoam_log())
    assert measured.headlines == {"wallTime": 0.41, "executionTime": 0.18, "timePerStep": 0.18 / 50}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (openfoam_log(49), "49 time steps instead of 50"),
        (openfoam_log() * 2, "2, 2 processes instead of 2"),
        (openfoam_log().replace("nProcs : 2\n", ""), "an unknown number of processes"),
        (openfoam_log() + "real 0.10\n", "does not have the times"),
        (openfoam_log().replace("real 0.41", "real 0.00"), "no time"),
        (openfoam_log().replace("ExecutionTime = 0.18", "ExecutionTime = 0"), "no time"),
    ],
)
def test_a_log_of_openfoam_with_holes_or_of_two_runs_is_refused(text: str, message: str) -> None:
    assert message in refused("OpenFOAM", {"numProcs": 2}, text).message


# -- PyTorch
# --------------------------------------------------------------------------------------------------

FIGURES = {
    "batch_wall_ms": 12.5,
    "samples_per_s": 5120.0,
    "cpu_peak_mib": 100,
    "torch_device": "cpu",
}
FIGURES |= {"samples": 640, "batches": 10}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps({"figures": {**FIGURES, "samples": 320}}), "320 samples instead of 640"),
        (json.dumps({"figures": {**FIGURES, "batches": 5}}), "5 batches instead of 10"),
        (json.dumps({"figures": {**FIGURES, "batch_wall_ms": 0}}), "nothing was measured"),
        (json.dumps({"figures": {**FIGURES, "batch_wall_ms": 25}}), "contradicts itself"),
        (json.dumps({"figures": {**FIGURES, "samples_per_s": -1}}), "no number samples_per_s"),
        (json.dumps({"figures": FIGURES}) * 2, "more than one"),
        (
            json.dumps({"figures": FIGURES}) + "\n" + json.dumps({"figures": FIGURES}),
            "more than one",
        ),
    ],
)
def test_an_answer_of_pytorch_to_another_question_is_refused(text: str, message: str) -> None:
    assert message in refused("PyTorch", {}, text).message


# -- fio
# --------------------------------------------------------------------------------------------------


def test_two_fio_workers_on_one_host_are_counted_as_two() -> None:
    report = fio_report(("198.18.0.1", 8765), ("198.18.0.1", 8766))
    single = fio_report(("198.18.0.1", 8765))
    measured = parse("Fio", {**FIO, "numWorkers": 2}, json.dumps(report))
    alone = parse("Fio", FIO, json.dumps(single))
    assert measured.headlines["readBandwidth"] == 2 * alone.headlines["readBandwidth"]
    assert "readLatency99" in alone.headlines and "readLatency99" not in measured.headlines
    assert [row["port"] for row in measured.result["jobs"]][:2] == [8765, 8766]


@pytest.mark.parametrize(
    ("spec", "workers", "message"),
    [
        # one too many, one too few, one twice
        ({}, [("198.18.0.1", 8765), ("198.18.0.2", 8765)], "2 workers instead of 1"),
        ({}, [("198.18.0.1", 8765), ("198.18.0.1", 8766)], "2 workers instead of 1"),
        ({"numWorkers": 3}, [("198.18.0.1", 8765), ("198.18.0.2", 8765)], "2 workers instead of 3"),
        ({"numWorkers": 2}, [("198.18.0.1", 8765), ("198.18.0.1", 8765)], "1 workers instead of 2"),
        (
            {},
            [("198.18.0.1", 8765), ("198.18.0.1", 8765)],
            "neither once nor once for each of its 1 jobs",
        ),
        # something else than what was asked for, or not as long
        ({"rw": "randread"}, [("198.18.0.1", 8765)], "writes with rw randread"),
        ({"runtime": "4s"}, [("198.18.0.1", 8765)], "3.001 s instead of 4 s"),
    ],
)
def test_fio_reports_of_other_workers_or_work_are_refused(
    spec: dict[str, Any], workers: Sequence[tuple[str, int]], message: str
) -> None:
    assert message in refused("Fio", {**FIO, **spec}, json.dumps(fio_report(*workers))).message


@pytest.mark.parametrize(
    "changes",
    [
        {"read/total_ios": 0, "read/io_bytes": 0, "read/bw_bytes": 0, "read/iops": 0},
        {"read/bw_bytes": 0},
        {"write/lat_ns/mean": 0},
        {"read/clat_ns/percentile/99.000000": -1},
        {"read/iops": -1},
    ],
)
def test_a_fio_report_without_what_was_measured_is_refused(changes: dict[str, int]) -> None:
    report = fio_report(("198.18.0.1", 8765))
    for path, value in changes.items():
        *parents, name = path.split("/")
        row = report["client_stats"][0]
        for parent in parents:
            row = row[parent]
        row[name] = value
    assert refused("Fio", FIO, json.dumps(report)).failure is Failure.BAD_OUTPUT


@pytest.mark.parametrize(("side", "name"), [("read", "bw_bytes"), ("write", "iops")])
def test_a_rate_of_fio_that_is_not_that_of_its_counts_is_refused(side: str, name: str) -> None:
    report = fio_report(("198.18.0.1", 8765))
    report["client_stats"][0][side][name] *= 2
    assert refused("Fio", FIO, json.dumps(report)).failure is Failure.BAD_OUTPUT


def test_a_sum_of_fio_that_is_not_that_of_its_workers_is_refused() -> None:
    report = fio_report(("198.18.0.1", 8765), ("198.18.0.2", 8765))
    report["client_stats"][-1]["read"]["io_bytes"] *= 2
    assert "add up to" in refused("Fio", {**FIO, "numWorkers": 2}, json.dumps(report)).message
    doubled = fio_report(("198.18.0.1", 8765), ("198.18.0.2", 8765))
    doubled["client_stats"].append(doubled["client_stats"][-1])
    assert "2 times" in refused("Fio", {**FIO, "numWorkers": 2}, json.dumps(doubled)).message


# -- iperf
# --------------------------------------------------------------------------------------------------


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


def test_the_streams_of_iperf_2_count_and_its_sum_is_checked() -> None:
    measured = parse("IPerf", IPERF2, TEXT_HEAD + TEXT_STREAMS + TEXT_SUM)
    assert measured.headlines == {"bandwidth": 10830774e3 + 11653564e3}
    assert measured.remote == "127.0.0.1"
    assert "sent" in measured.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT_STREAMS + TEXT_SUM.replace("2775680 K", "2775680 M"), "the sum of the streams"),
        (TEXT_STREAMS + TEXT_STREAMS.splitlines()[0] + "\n", "3 rows of streams"),
        (TEXT_STREAMS.replace("[  1]", "[  2]"), "one for each of 2"),
        (TEXT_STREAMS * 2, "4 rows of streams"),
        (TEXT_STREAMS.replace("1.0115", "0.4"), "0.4 s instead of 1 s"),
        (TEXT_STREAMS.replace("10830774", "0"), "the rate of 2 is 0"),
        (
            TEXT_STREAMS.replace("1337344", "0")
            .replace("1438336", "0")
            .replace("10830774", "0")
            .replace("11653564", "0"),
            "sent nothing",
        ),
        (TEXT_HEAD.replace("TCP", "UDP") + TEXT_STREAMS, "UDP instead of TCP"),
        (TEXT_STREAMS.replace("0.0000-1.0115", "-"), "1 rows of streams"),
    ],
)
def test_numbers_that_iperf_2_cannot_have_measured_are_refused(text: str, message: str) -> None:
    assert message in refused("IPerf", IPERF2, text).message


# -- every tool that writes JSON
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "spec", "text"),
    [
        ("Fio", FIO, sample("fio-client-1worker-1job.out")),
        ("IPerf", {"streams": 2, "duration": 3}, sample("iperf3-tcp-2streams.json")),
    ],
)
def test_a_report_that_stands_twice_is_refused(kind: str, spec: dict[str, Any], text: str) -> None:
    parse(kind, spec, text)
    assert "more than one" in refused(kind, spec, f"{text}\n{text}").message


# -- all of them
# --------------------------------------------------------------------------------------------------

WHOLE: list[tuple[str, dict[str, Any], str]] = [
    ("Fio", FIO, sample("fio-client-1worker-1job.out")),
    (
        "Fio",
        {**FIO, "numWorkers": 2},
        json.dumps(fio_report(("198.18.0.1", 1), ("198.18.0.1", 2)), indent=0),
    ),
    ("IPerf", TCP, sample("iperf3-tcp-2streams.json")),
    ("IPerf", BOTH, sample("iperf3-tcp-bidir.json")),
    ("IPerf", UDP, json.dumps(udp_report(), indent=0)),
    ("IPerf", IPERF2, TEXT_HEAD + TEXT_STREAMS + TEXT_SUM),
    ("MPIPingPong", {}, PINGPONG),
    ("RDMABandwidth", {"mode": "write"}, BANDWIDTH),
    ("RDMALatency", {}, LATENCY),
    ("OpenFOAM", {"numProcs": 2}, openfoam_log()),
    ("PyTorch", {}, json.dumps({"figures": FIGURES}, indent=0) + "\n"),
]


@given(st.sampled_from(WHOLE), st.floats(0, 1, exclude_max=True), st.sampled_from([0, 2]))
@settings(max_examples=400)
def test_a_line_that_is_missing_or_stands_twice_never_gives_another_number(
    whole: tuple[str, dict[str, Any], str], place: float, times: int
) -> None:
    kind, spec, text = whole
    lines = text.splitlines(keepends=True)
    number = int(place * len(lines))
    lines[number : number + 1] = lines[number : number + 1] * times
    try:
        measured = parse(kind, spec, "".join(lines)).headlines
    except BenchmarkFailed as error:
        assert error.message
        return
    same = parse(kind, spec, text).headlines
    # what two directions share is left out where one of them does not tell
    assert measured.items() <= same.items()

"""Outputs of tools that did something else than the spec asks for: none gives a number, and each
says what is wrong. Those of fio and iperf have files of their own.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.benchmarks.kinds import openfoam_case
from scaletest.benchmarks.kinds.failure import BenchmarkFailed
from tests.unit.tool_outputs import (
    BOTH,
    CSV_STREAMS,
    CSV_SUM,
    FIO,
    IPERF2,
    TCP,
    TEXT_HEAD,
    TEXT_STREAMS,
    TEXT_SUM,
    UDP,
    fio_report,
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
        (PINGPONG.replace("t[usec]", "t[msec]"), "contradicts itself"),
        (PINGPONG.replace("Mbytes/sec", "Gbytes/sec"), "contradicts itself"),
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
    ("IPerf", IPERF2, CSV_STREAMS + CSV_SUM),
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

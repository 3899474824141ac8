"""Parsers of benchmark kinds: what they make of real output, of half of it and of anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.kinds import benchmark
from scaletest.kinds.benchmark import MARK, BenchmarkPhase, BenchmarkResult, frame, unframe
from scaletest.kinds.kind import BenchmarkFailed, Failure, ToolOutput
from scaletest.kinds.network import Network, check, used
from scaletest.kinds.registry import KINDS
from scaletest.model.checks import printable

SAMPLES = Path(__file__).parent / "samples" / "benchmarks"

_JOBS = {"numJobs": 2, "runtime": "3s"}
# kind, spec, sample, exit code, the headlines that the tool's own summary gives
GOOD: list[tuple[str, dict[str, Any], str, dict[str, float]]] = [
    (
        "IPerf",
        {"streams": 2, "duration": 3},
        "iperf3-tcp-2streams.json",
        {"bandwidth": 20138901913.63003, "retransmits": 21},
    ),
    ("IPerf", {"direction": "reverse", "duration": 2}, "iperf3-tcp-reverse.json", {}),
    (
        "IPerf",
        {"direction": "both", "duration": 2},
        "iperf3-tcp-bidir.json",
        {"reverseBandwidth": 15935880948.690746},
    ),
    ("IPerf", {"tool": "iperf", "duration": 3}, "iperf2-1stream.txt", {"bandwidth": 23775008e3}),
    (
        "IPerf",
        {"tool": "iperf", "streams": 2, "duration": 2},
        "iperf2-2streams.csv",
        {"bandwidth": 16617798848 + 18045452075},
    ),
    ("MPIPingPong", {}, "imb-mpi1-pingpong-tcp.txt", {"minimumLatency": 5.36e-6}),
    ("MPIPingPong", {}, "imb-mpi1-pingpong-shm.txt", {"minimumLatency": 0.12e-6}),
    (
        "RDMABandwidth",
        {"mode": "write"},
        "perftest-synthetic-ib_write_bw-all.txt",
        {"peakBandwidth": 96.5e9, "messageRate": 6.0085e6},
    ),
    (
        "RDMALatency",
        {},
        "perftest-synthetic-ib_read_lat-all.txt",
        {"minimumAverageLatency": 2.68e-6, "minimumLatency": 2.6e-6, "percentile99": 2.76e-6},
    ),
    (
        "Fio",
        {"rw": "randrw", "runtime": "3s"},
        "fio-client-1worker-1job.out",
        {"readBandwidth": 110885448, "readIops": 27071.642786},
    ),
    ("Fio", {"rw": "rw", **_JOBS}, "fio-client-1worker-2jobs.out", {"readBandwidth": 134213950}),
    (
        "Fio",
        {"rw": "randrw", **_JOBS},
        "fio-local-json.json",
        {"readBandwidth": 75644289 + 75166581},
    ),
]
# kind, spec, sample, exit code, why it fails, a word of the lines that say so
BAD: list[tuple[str, dict[str, Any], str, int, Failure, str]] = [
    ("IPerf", {}, "iperf3-error.json", 1, Failure.EXIT, "unable to connect to server"),
    ("Fio", {}, "fio-error.out", 1, Failure.EXIT, "No such file or directory"),
    ("RDMABandwidth", {}, "perftest-no-device.txt", 1, Failure.NO_DEVICE, "Unable to find"),
    ("RDMALatency", {}, "perftest-no-device.txt", 1, Failure.NO_DEVICE, "Unable to find"),
    (
        "RDMABandwidth",
        {},
        "perftest-synthetic-out_json-v6.06.txt",
        0,
        Failure.BAD_OUTPUT,
        "MsgRate",
    ),
    (
        "MPIPingPong",
        {},
        "imb-mpi1-rdma-transport-no-device.txt",
        1,
        Failure.NO_DEVICE,
        "PML ucx cannot be selected",
    ),
    ("IPerf", {"streams": 3}, "iperf3-tcp-2streams.json", 0, Failure.BAD_OUTPUT, "start"),
    ("MPIPingPong", {"maxlog": 23}, "imb-mpi1-pingpong-tcp.txt", 0, Failure.BAD_OUTPUT, "4194304"),
    ("MPIPingPong", {"maxlog": 8}, "imb-mpi1-collectives.txt", 0, Failure.MISMATCH, ""),
    ("OpenFOAM", {"numProcs": 2}, "openfoam-icofoam-2procs.log", 0, Failure.BAD_OUTPUT, ""),
    (
        "OpenFOAM",
        {"numProcs": 4},
        "openfoam-icofoam-2procs.log",
        0,
        Failure.BAD_OUTPUT,
        "nProcs : 2",
    ),
    ("PyTorch", {}, "gnu-time-posix.txt", 0, Failure.BAD_OUTPUT, ""),
]


def text_of(name: str) -> str:
    return (SAMPLES / name).read_text("utf-8")


def parse(kind: str, spec: dict[str, Any], output: ToolOutput) -> Any:
    parsed = benchmark.read({"kind": kind, "spec": spec})
    return parsed.kind.parse(parsed.spec, output)


@pytest.mark.parametrize(("kind", "spec", "name", "wanted"), GOOD)
def test_a_real_output_gives_the_numbers_of_its_own_summary(
    kind: str, spec: dict[str, Any], name: str, wanted: dict[str, float]
) -> None:
    parsed = parse(kind, spec, ToolOutput(text_of(name)))
    for headline, value in wanted.items():
        assert parsed.headlines[headline] == pytest.approx(value, rel=1e-9)
    known = {declared.name for declared in KINDS[kind].headlines}
    assert parsed.headlines and set(parsed.headlines) <= known
    json.dumps(parsed.result, allow_nan=False)


@pytest.mark.parametrize(("kind", "spec", "name", "code", "failure", "reason"), BAD)
def test_output_without_a_result_fails_with_the_lines_that_say_why(
    kind: str, spec: dict[str, Any], name: str, code: int, failure: Failure, reason: str
) -> None:
    with pytest.raises(BenchmarkFailed) as error:
        parse(kind, spec, ToolOutput(text_of(name), exit_code=code))
    assert error.value.failure is failure
    assert reason in "\n".join(error.value.lines)


@pytest.mark.parametrize(
    ("kind", "errors", "code"),
    [
        (
            "PyTorch",
            "bash: line 1: python3: command not found\nreal 0.00\nuser 0.00\nsys 0.00\n",
            127,
        ),
        ("IPerf", "taskset: failed to execute iperf3: No such file or directory\n", 127),
        (
            "OpenFOAM",
            (
                "mpirun was unable to find the specified executable file, and therefore\ndid not"
                " launch"
            ),
            1,
        ),
        (
            "MPIPingPong",
            "mpirun was unable to launch the specified application as it could not access\nor",
            134,
        ),
    ],
)
def test_a_program_that_is_missing_where_it_is_started_is_classed_as_that(
    kind: str, errors: str, code: int
) -> None:
    with pytest.raises(BenchmarkFailed) as error:
        parse(kind, {}, ToolOutput("", errors, code))
    assert error.value.failure is Failure.NO_BINARY and error.value.lines == (
        errors.splitlines()[0],
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
@pytest.mark.parametrize("code", [0, 1])
def test_every_parser_takes_every_sample(kind: str, name: str, code: int) -> None:
    try:
        parsed = parse(kind, {}, ToolOutput(text_of(name), exit_code=code))
    except BenchmarkFailed as error:
        assert error.message and error.failure
    else:
        assert parsed.headlines and code == 0


@given(st.sampled_from(GOOD), st.floats(0, 1, exclude_max=True))
@settings(max_examples=300)
def test_output_that_was_cut_off_never_passes_for_a_whole_one(row: Any, part: float) -> None:
    kind, spec, name, _ = row
    whole = text_of(name)
    cut = whole[: int(len(whole) * part)]
    try:
        parsed = parse(kind, spec, ToolOutput(cut))
    except BenchmarkFailed as error:
        assert error.message and error.failure
    else:
        # what was cut off said nothing more: the same numbers come out
        assert parsed.headlines == parse(kind, spec, ToolOutput(whole)).headlines


@given(
    st.sampled_from(sorted(KINDS)), st.text(max_size=400), st.sampled_from([0, 1, -9]), st.data()
)
@settings(max_examples=300)
def test_foreign_output_fails_and_never_raises_anything_else(
    kind: str, text: str, code: int, data: Any
) -> None:
    sample = data.draw(st.sampled_from([*(row[2] for row in GOOD), ""]))
    mixed = text + (text_of(sample) if sample else "")
    try:
        parsed = parse(kind, {}, ToolOutput(mixed, text, code))
    except BenchmarkFailed as error:
        assert len(error.lines) <= 8 and all(len(line) <= 200 for line in error.lines)
    else:
        assert parsed.headlines


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=20,
)
KEYS = [
    "end",
    "start",
    "sum_received",
    "client_stats",
    "jobs",
    "read",
    "bits_per_second",
    "streams",
    "figures",
]
KEYS += ["torch_device"]


@given(
    st.sampled_from(["IPerf", "Fio", "PyTorch"]),
    st.dictionaries(st.sampled_from(KEYS), JSON),
)
@settings(max_examples=200)
def test_json_of_another_shape_fails(kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(BenchmarkFailed):
        parse(kind, {}, ToolOutput(json.dumps(data)))


def test_pytorch_is_marked_as_no_torchbench_and_checks_its_device() -> None:
    figures = {
        "batch_wall_ms": 12.5,
        "samples_per_s": 5120.0,
        "cpu_peak_mib": 100,
        "torch_device": "cpu",
    }
    figures |= {"samples": 640, "batches": 10}
    answer = ToolOutput(json.dumps({"figures": figures}), text_of("gnu-time-posix.txt"))
    parsed = parse("PyTorch", {}, answer)
    assert parsed.headlines["batchTime"] == 0.0125
    assert "not TorchBench" in parsed.notes[0]
    assert parsed.result["time"]["real"] == 0.2
    with pytest.raises(BenchmarkFailed, match="on cpu instead of cuda"):
        parse("PyTorch", {"device": "cuda"}, answer)
    with pytest.raises(BenchmarkFailed) as error:
        parse(
            "PyTorch",
            {"device": "cuda"},
            ToolOutput('{"error": "torch finds no CUDA device here", "no_device": true}'),
        )
    assert error.value.failure is Failure.NO_DEVICE


def test_the_network_that_was_used_must_be_the_one_asked_for() -> None:
    route = '[{"dst":"198.18.0.1","dev":"eth0","prefsrc":"198.18.0.2"}]'
    links = '[{"ifname":"lo","mtu":65536},{"ifname":"eth0","mtu":9000}]'
    network = used("198.18.0.1", route, links)
    assert network == Network("eth0", "IPv4", 9000, "198.18.0.2", "198.18.0.1")
    spec = benchmark.read({"kind": "IPerf", "spec": {"mtu": 9000}}).spec
    check(spec, network, "198.18.0.1")
    check(spec, network, "::ffff:198.18.0.1")
    for wrong, remote, problem in (
        ({"mtu": 1500}, "", "MTU of 9000 instead of 1500"),
        ({"ipFamily": "IPv6"}, "", "over IPv4 instead of IPv6"),
        ({}, "2001:2::1", "the tool used IPv6"),
        ({}, "198.18.0.9", "talked to 198.18.0.9"),
    ):
        with pytest.raises(BenchmarkFailed, match=problem) as error:
            check(benchmark.read({"kind": "IPerf", "spec": wrong}).spec, network, remote)
        assert error.value.failure is Failure.MISMATCH
    with pytest.raises(BenchmarkFailed):
        used("198.18.0.1", "", "")


def test_a_framed_result_is_found_in_any_log() -> None:
    ended = BenchmarkResult(
        "one",
        BenchmarkPhase.FAILED,
        failure=Failure.NO_DEVICE,
        message="none\nhere",
        lines=("a",),
        repetition=2,
    )
    log = f"noise\n{MARK}{{broken\n{frame(ended)}\nmore noise\n{MARK}"
    assert unframe(log) == ended
    assert unframe("nothing") is None
    # separators of lines, spaces and directions that a terminal must not get are part of what tools
    # say
    foreign = replace(ended, message="1\u00a0234 \u2028\u0085\u202e\x7f", lines=("\u200b",))
    assert unframe(printable(frame(foreign))) == foreign
    large = frame(
        BenchmarkResult("one", BenchmarkPhase.COMPLETED, {"a": 1.0}, {"rows": ["x" * 1000] * 1000})
    )
    read_result = unframe(large)
    assert (
        len(large) < 10_000
        and read_result
        and read_result.headlines == {"a": 1.0}
        and "too many" in read_result.notes[0]
    )

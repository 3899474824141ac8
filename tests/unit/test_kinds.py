"""Kinds: what their parsers make of real output, of half of it, of anything else; what specs take
and refuse.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.benchmarks.sweep import plan_of
from scaletest.kinds import benchmark, fio, openfoam_case, pytorch, torch
from scaletest.kinds.benchmark import BenchmarkPhase, BenchmarkResult
from scaletest.kinds.fields import fields_of
from scaletest.kinds.kind import BenchmarkFailed, ExecutionSite, Failure, PartAddress, ToolOutput
from scaletest.kinds.log_framing import MARK, frame, unframe
from scaletest.kinds.network import Network, check, used
from scaletest.kinds.registry import KINDS
from scaletest.model.checks import printable
from scaletest.model.errors import InvalidValue

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
    ("PyTorch", {}, "gnu-time-verbose.txt", 0, Failure.BAD_OUTPUT, ""),
]
# what other tools, or the same ones asked for help, say
FOREIGN = {"qperf-loopback.txt", "perftest-ib_write_bw-help.txt", "perftest-ib_read_lat-help.txt"}
TORCHBENCH = """Running eval method from resnet50 on cuda in eager mode with input batch size 64 and precision fp32.
GPU Time per batch:    7.123 milliseconds
CPU Wall Time per batch:  7.456 milliseconds
CPU Peak Memory:                1.5000 GB
GPU 0 Peak Memory:              2.2500 GB
"""  # noqa: E501


def text_of(name: str) -> str:
    return (SAMPLES / name).read_text("utf-8")


def parse(kind: str, spec: dict[str, Any], output: ToolOutput) -> Any:
    one = benchmark.read({"kind": kind, "spec": spec})
    return one.kind.parse(one.spec, output)


@pytest.mark.parametrize(("kind", "spec", "name", "wanted"), GOOD)
def test_a_real_output_gives_the_numbers_of_its_own_summary(
    kind: str, spec: dict[str, Any], name: str, wanted: dict[str, float]
) -> None:
    found = parse(kind, spec, ToolOutput(text_of(name)))
    for headline, value in wanted.items():
        assert found.headlines[headline] == pytest.approx(value, rel=1e-9)
    known = {one.name for one in KINDS[kind].headlines}
    assert found.headlines and set(found.headlines) <= known
    json.dumps(found.result, allow_nan=False)


@pytest.mark.parametrize(("kind", "spec", "name", "code", "failure", "words"), BAD)
def test_what_is_no_result_fails_with_the_lines_that_say_why(
    kind: str, spec: dict[str, Any], name: str, code: int, failure: Failure, words: str
) -> None:
    with pytest.raises(BenchmarkFailed) as error:
        parse(kind, spec, ToolOutput(text_of(name), exit_code=code))
    assert error.value.failure is failure
    assert words in "\n".join(error.value.lines)


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
        found = parse(kind, {}, ToolOutput(text_of(name), exit_code=code))
    except BenchmarkFailed as error:
        assert error.message and error.failure
    else:
        assert found.headlines and code == 0


def test_every_sample_is_read_by_some_test() -> None:
    read = {row[2] for row in GOOD} | {row[2] for row in BAD} | {"gnu-time-posix.txt"} | FOREIGN
    assert {path.name for path in SAMPLES.iterdir()} == read


@given(st.sampled_from(GOOD), st.floats(0, 1, exclude_max=True))
@settings(max_examples=300)
def test_output_that_was_cut_off_never_passes_for_a_whole_one(row: Any, part: float) -> None:
    kind, spec, name, _ = row
    whole = text_of(name)
    cut = whole[: int(len(whole) * part)]
    try:
        found = parse(kind, spec, ToolOutput(cut))
    except BenchmarkFailed as error:
        assert error.message and error.failure
    else:
        # what was cut off said nothing more: the same numbers come out
        assert found.headlines == parse(kind, spec, ToolOutput(whole)).headlines


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
        found = parse(kind, {}, ToolOutput(mixed, text, code))
    except BenchmarkFailed as error:
        assert len(error.lines) <= 8 and all(len(line) <= 200 for line in error.lines)
    else:
        assert found.headlines


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
KEYS += ["verdict", "kind", "steps", "throughput", "torch_device"]


@given(
    st.sampled_from(["IPerf", "Fio", "PyTorch", "Validation", "Lifecycle"]),
    st.dictionaries(st.sampled_from(KEYS), JSON),
)
@settings(max_examples=200)
def test_json_of_another_shape_fails(kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(BenchmarkFailed):
        parse(kind, {}, ToolOutput(json.dumps(data)))


def test_torchbench_is_read_in_both_of_its_forms() -> None:
    found = parse(
        "PyTorch", {"device": "cuda"}, ToolOutput(TORCHBENCH, text_of("gnu-time-verbose.txt"))
    )
    assert found.headlines["batchTime"] == pytest.approx(7.456e-3)
    assert found.headlines["gpuBatchTime"] == pytest.approx(7.123e-3)
    assert found.result["time"] == {"user": 0.0, "sys": 0.0, "real": 0.2}
    total = parse(
        "PyTorch",
        {"device": "cuda"},
        ToolOutput(TORCHBENCH.replace("CPU Wall Time per batch:  ", "CPU Total Wall Time: ")),
    )
    assert total.headlines["batchTime"] == pytest.approx(7.456e-3)
    assert total.notes


def test_pytorch_is_marked_as_no_torchbench_and_checks_its_device() -> None:
    figures = {
        "batch_wall_ms": 12.5,
        "samples_per_s": 5120.0,
        "cpu_peak_mib": 100,
        "torch_device": "cpu",
    }
    figures |= {"samples": 640, "batches": 10}
    answer = ToolOutput(json.dumps({"figures": figures}), text_of("gnu-time-posix.txt"))
    found = parse("PyTorch", {"resources": {"limits": {"nvidia.com/gpu": 2}}}, answer)
    assert found.headlines["batchTime"] == 0.0125
    assert "not TorchBench" in found.notes[0]
    assert found.result["gpuCount"] == 2 and found.result["time"]["real"] == 0.2
    with pytest.raises(BenchmarkFailed, match="on cpu instead of cuda"):
        parse("PyTorch", {"device": "cuda"}, answer)
    with pytest.raises(BenchmarkFailed) as error:
        parse(
            "PyTorch",
            {"device": "cuda"},
            ToolOutput('{"error": "torch finds no CUDA device here", "no_device": true}'),
        )
    assert error.value.failure is Failure.NO_DEVICE


@pytest.mark.parametrize(
    ("model", "mode"),
    [("alexnet", "train"), ("resnet50", "train"), ("llama", "eval"), ("matmul", "eval")],
)
def test_the_torch_workload_takes_the_words_of_the_kind(model: str, mode: str) -> None:
    spec = {"model": model, "benchmarkType": mode, "inputBatchSize": 8, "batches": 3}
    one = benchmark.read({"kind": "PyTorch", "spec": spec})
    (task,) = one.kind.tasks(one.spec, ExecutionSite({}))
    work = torch.from_words(json.loads(task.argv[4]))
    assert (work.model, work.train, work.device, work.batch, work.batches) == (
        model,
        mode == "train",
        "cpu",
        8,
        3,
    )
    assert find_spec(pytorch.MODULE) is not None


def test_an_own_result_without_a_verdict_or_invalid_is_no_measurement() -> None:
    last = {"workers": 4, "throughput_per_s": 3.0, "efficiency": 0.5}
    good = {"kind": "validation", "verdict": {"kind": "FAIL"}, "steps": [last]}
    assert parse("Validation", {}, ToolOutput(json.dumps(good), exit_code=3)).headlines == {
        "throughput": 3,
        "efficiency": 0.5,
    }
    for verdict in ({"kind": "INVALID", "reason": "too few", "remedy": "wait"}, {}, None):
        with pytest.raises(BenchmarkFailed):
            parse(
                "Validation", {}, ToolOutput(json.dumps({**good, "verdict": verdict}), exit_code=4)
            )
    rate = {
        "kind": "lifecycle",
        "verdict": {"kind": "PASS"},
        "throughput": {"per_s": 7.5},
        "steps": [],
    }
    rate["books"] = {"planned": 10}
    assert parse("Lifecycle", {}, ToolOutput(json.dumps(rate))).headlines == {"podsPerSecond": 7.5}


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        ("IPerf", {"stream": 2}, "unknown key"),
        ("IPerf", {"streams": "2"}, "not a whole number"),
        ("IPerf", {"streams": True}, "not a whole number"),
        ("IPerf", {"streams": 0}, "streams of the spec of IPerf is 0"),
        ("IPerf", {"mtu": 900, "ipFamily": "IPv6"}, "too small for IPv6"),
        ("IPerf", {"hostNetwork": True, "networkName": "a/b"}, "exclude each other"),
        ("IPerf", {"tool": "iperf", "protocol": "UDP"}, "iperf 2"),
        ("IPerf", {"cpuAffinity": "0; rm"}, "cpuAffinity"),
        ("IPerf", {"pods": {"labels": 3}}, "not a table"),
        ("IPerf", {"pods": {"tolerations": ["a"]}}, "not a table"),
        ("IPerf", [], "not a table"),
        ("Fio", {"runtime": "500ms"}, "too short"),
        ("Fio", {"directory": "/a:/b"}, "not a plain path"),
        ("Fio", {"bs": "4 k"}, "bs of the spec"),
        ("OpenFOAM", {"numNodes": 2}, "cannot use 2 nodes"),
        ("RDMALatency", {"extraArgs": ["-D", "10"]}, "all message sizes"),
        ("RDMALatency", {"iterations": 4}, "iterations"),
        ("PyTorch", {"inputBatchSize": 3}, "inputBatchSize"),
        ("PyTorch", {"model": "llama", "benchmarkType": "train"}, "inference only"),
        ("Iperf4", {}, "no kind"),
    ],
)
def test_a_spec_that_cannot_work_is_refused_with_what_to_do(
    kind: str, spec: Any, words: str
) -> None:
    with pytest.raises(InvalidValue, match=words) as error:
        benchmark.read({"kind": kind, "spec": spec if spec != [] else [1]})
    assert error.value.hint


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_document_survives_being_written_and_read(kind: Any) -> None:
    one = benchmark.read({"kind": kind.name})
    assert benchmark.read(one.document()).spec == one.spec
    assert all(field.rule.help.endswith(".") for field in fields_of(kind.spec))


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_has_one_part_that_measures_and_a_task_for_it(kind: Any) -> None:
    spec = benchmark.read({"kind": kind.name}).spec
    parts = kind.layout(spec)
    assert [part.role for part in parts].count(kind.measures) == 1
    peers: dict[str, list[PartAddress]] = {}
    for part in parts:
        peers.setdefault(part.role, []).append(
            PartAddress(part.role, part.index, f"n{part.node}", f"198.18.0.{part.node + 1}", "/w")
        )
    tasks = kind.tasks(spec, ExecutionSite(peers))
    assert tasks[-1].role == kind.measures
    assert all(task.port or task.ready_text for task in tasks[:-1]), (
        "a server must say when it is ready"
    )
    assert all(isinstance(word, str) and word for task in tasks for word in task.argv)
    assert kind.limit_s(spec) > 0


def test_the_original_arguments_are_what_the_tools_get() -> None:
    peers = {
        "server": [PartAddress("server", 0, "a", "198.18.0.1")],
        "client": [PartAddress("client", 0, "b", "198.18.0.2")],
    }
    spec = benchmark.read(
        {"kind": "RDMABandwidth", "spec": {"qps": 4, "extraArgs": ["--tclass=96"]}}
    )
    server, client = spec.kind.tasks(spec.spec, ExecutionSite(peers))
    assert " ".join(server.argv) == "ib_read_bw -a -F -R -n 1000 --report_gbits -q 4 --tclass=96"
    assert client.argv == (*server.argv, "198.18.0.1")
    assert server.ready_text


def test_fio_defaults_are_those_of_the_original_crd() -> None:
    one = benchmark.read({"kind": "Fio"})
    rows = dict(line.split("=") for line in fio.job_file(one.spec).splitlines()[1:])  # type: ignore[arg-type]
    wanted = {
        "rw": "read",
        "bs": "4M",
        "iodepth": "1",
        "ioengine": "libaio",
        "nrfiles": "1",
        "numjobs": "1",
    }
    wanted |= {
        "rwmixread": "50",
        "direct": "1",
        "runtime": "30s",
        "size": "10G",
        "time_based": "1",
        "thread": "0",
    }
    assert wanted.items() <= rows.items()
    assert fio.bytes_of("10G") == 10 * 1024**3 and fio.bytes_of("512") == 512
    assert fio.seconds("90s") == 90 and fio.seconds("2m") == 120 and fio.seconds("500ms") == 0.5


@given(st.integers(1, 512))
def test_the_cavity_is_split_into_as_many_boxes_as_there_are_processes(processes: int) -> None:
    x, y, z = openfoam_case.boxes(processes)
    assert x * y * z == processes


def test_the_network_that_was_used_must_be_the_one_asked_for() -> None:
    route = '[{"dst":"198.18.0.1","dev":"eth0","prefsrc":"198.18.0.2"}]'
    links = '[{"ifname":"lo","mtu":65536},{"ifname":"eth0","mtu":9000}]'
    network = used("198.18.0.1", route, links)
    assert network == Network("eth0", "IPv4", 9000, "198.18.0.2", "198.18.0.1")
    spec = benchmark.read({"kind": "IPerf", "spec": {"mtu": 9000}}).spec
    check(spec, network, "198.18.0.1")
    check(spec, network, "::ffff:198.18.0.1")
    for wrong, remote, words in (
        ({"mtu": 1500}, "", "MTU of 9000 instead of 1500"),
        ({"ipFamily": "IPv6"}, "", "over IPv4 instead of IPv6"),
        ({}, "2001:2::1", "the tool used IPv6"),
        ({}, "198.18.0.9", "talked to 198.18.0.9"),
    ):
        with pytest.raises(BenchmarkFailed, match=words) as error:
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
    found = unframe(large)
    assert (
        len(large) < 10_000
        and found
        and found.headlines == {"a": 1.0}
        and "too many" in found.notes[0]
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "kind",
                        "spec",
                        "metadata",
                        "name",
                        "mtu",
                        "streams",
                        "apiVersion",
                        "pods",
                        "labels",
                        "template",
                        "permutations",
                        "product",
                        "matrix",
                        "explicit",
                        "repetitions",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(["IPerf", "BenchmarkSet", "Fio"]),
)
def test_any_document_is_read_or_refused(body: Any, kind: str) -> None:
    for document in (
        body,
        {"kind": kind, "spec": body},
        {"kind": "BenchmarkSet", "spec": {"template": body, "permutations": body}},
    ):
        try:
            plan_of(document, list)
        except InvalidValue as error:
            assert error.message

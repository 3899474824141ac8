"""Benchmark kinds: what their specs take and refuse, the arguments that tools get, and what parsers
make of real output, of half of it and of anything else. What went wrong in kube-perftest, and does
not here, has a test for each defect that kinds, sets and reports can have.
"""

import json
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.benchmarks.documents import (
    BenchmarkPhase,
    BenchmarkResult,
    benchmark,
    frame_result,
    read_framed_result,
)
from scaletest.benchmarks.documents.result import MARK
from scaletest.benchmarks.documents.sweep import plan_of
from scaletest.benchmarks.kinds import (
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    PartAddress,
    ToolOutput,
    fio,
    openfoam_case,
    pytorch,
)
from scaletest.benchmarks.kinds.network import Network, check_network, parse_network
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.measure import machine, namespaces, programs
from scaletest.model.checks import escape_unprintable
from scaletest.model.errors import InvalidValue
from scaletest.render.numbers import format_quantity, quantity_with_half_width
from scaletest.stats.repetitions import summarise_repetitions
from scaletest_workers.workloads import torch_options as torch

SAMPLES = Path(__file__).parents[1] / "samples" / "benchmarks"

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
    parsed = benchmark.read_benchmark({"kind": kind, "spec": spec})
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
    sample = data.draw(st.sampled_from([*sorted(path.name for path in SAMPLES.iterdir()), ""]))
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
    "torch_device",
]


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
        "samples": 640,
        "batches": 10,
    }
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
    network = parse_network("198.18.0.1", route, links)
    assert network == Network("eth0", "IPv4", 9000, "198.18.0.2", "198.18.0.1")
    spec = benchmark.read_benchmark({"kind": "IPerf", "spec": {"mtu": 9000}}).spec
    check_network(spec, network, "198.18.0.1")
    check_network(spec, network, "::ffff:198.18.0.1")
    for wrong, remote, problem in (
        ({"mtu": 1500}, "", "MTU of 9000 instead of 1500"),
        ({"ipFamily": "IPv6"}, "", "over IPv4 instead of IPv6"),
        ({}, "2001:2::1", "the tool used IPv6"),
        ({}, "198.18.0.9", "talked to 198.18.0.9"),
    ):
        with pytest.raises(BenchmarkFailed, match=problem) as error:
            check_network(
                benchmark.read_benchmark({"kind": "IPerf", "spec": wrong}).spec, network, remote
            )
        assert error.value.failure is Failure.MISMATCH
    with pytest.raises(BenchmarkFailed):
        parse_network("198.18.0.1", "", "")


def test_a_framed_result_is_found_in_any_log() -> None:
    ended = BenchmarkResult(
        "one",
        BenchmarkPhase.FAILED,
        failure=Failure.NO_DEVICE,
        message="none\nhere",
        lines=("a",),
        notes=("b",),
    )
    log = f"noise\n{MARK}{{broken\n{frame_result(ended)}\nmore noise\n{MARK}"
    assert read_framed_result(log) == ended
    assert read_framed_result("nothing") is None
    # separators of lines, spaces and directions that a terminal must not get are part of what tools
    # say
    foreign = replace(ended, message="1\u00a0234 \u2028\u0085\u202e\x7f", lines=("\u200b",))
    assert read_framed_result(escape_unprintable(frame_result(foreign))) == foreign
    large = frame_result(
        BenchmarkResult("one", BenchmarkPhase.COMPLETED, {"a": 1.0}, {"rows": ["x" * 1000] * 1000})
    )
    read_result = read_framed_result(large)
    assert (
        len(large) < 10_000
        and read_result
        and read_result.headlines == {"a": 1.0}
        and "too many" in read_result.notes[0]
    )


@pytest.mark.parametrize(
    ("model", "mode"),
    [("alexnet", "train"), ("resnet50", "train"), ("llama", "eval")],
)
def test_the_torch_workload_accepts_the_arguments_of_the_kind(model: str, mode: str) -> None:
    spec = {"model": model, "benchmarkType": mode, "inputBatchSize": 8, "batches": 3}
    torch_benchmark = benchmark.read_benchmark({"kind": "PyTorch", "spec": spec})
    (task,) = torch_benchmark.kind.tasks(torch_benchmark.spec, ExecutionSite({}))
    _, words = json.loads(task.argv[4])
    work = torch.from_words(words)
    assert (work.model, work.train, work.device, work.batch, work.batches) == (
        model,
        mode == "train",
        "cpu",
        8,
        3,
    )
    assert find_spec(pytorch.MODULE) is not None


@pytest.mark.parametrize(
    ("kind", "spec", "problem"),
    [
        ("IPerf", {"stream": 2}, "unknown key"),
        ("IPerf", {"streams": "2"}, "not a whole number"),
        ("IPerf", {"streams": True}, "not a whole number"),
        ("IPerf", {"streams": 0}, "streams in the spec of IPerf is 0"),
        ("IPerf", {"mtu": 900, "ipFamily": "IPv6"}, "too small for IPv6"),
        ("IPerf", {"tool": "iperf", "protocol": "UDP"}, "iperf 2"),
        ("IPerf", {"cpuAffinity": "0; rm"}, "cpuAffinity"),
        ("IPerf", {"pods": {"labels": 3}}, "not a table"),
        ("IPerf", {"pods": {"tolerations": ["a"]}}, "not a table"),
        ("IPerf", [], "not a table"),
        ("Fio", {"runtime": "500ms"}, "too short"),
        ("Fio", {"directory": "/a:/b"}, "not a plain path"),
        ("Fio", {"bs": "4 k"}, "bs in the spec"),
        ("OpenFOAM", {"numNodes": 2}, "cannot use 2 nodes"),
        ("OpenFOAM", {"iterativeMethod": "PETSc-ICC-CG.fixedNORM"}, "PETSc"),
        ("RDMALatency", {"extraArgs": ["-D", "10"]}, "all message sizes"),
        ("RDMALatency", {"iterations": 4}, "iterations"),
        ("PyTorch", {"inputBatchSize": 3}, "inputBatchSize"),
        ("PyTorch", {"model": "llama", "benchmarkType": "train"}, "inference only"),
        ("Iperf4", {}, "no kind"),
    ],
)
def test_a_spec_that_cannot_work_is_refused_with_what_to_do(
    kind: str, spec: Any, problem: str
) -> None:
    with pytest.raises(InvalidValue, match=problem) as error:
        benchmark.read_benchmark({"kind": kind, "spec": spec if spec != [] else [1]})
    assert error.value.hint


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_has_one_part_that_measures_and_a_task_for_it(kind: Any) -> None:
    spec = benchmark.read_benchmark({"kind": kind.name}).spec
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


def test_the_original_arguments_are_what_the_tools_get() -> None:
    peers = {
        "server": [PartAddress("server", 0, "a", "198.18.0.1")],
        "client": [PartAddress("client", 0, "b", "198.18.0.2")],
    }
    spec = benchmark.read_benchmark(
        {"kind": "RDMABandwidth", "spec": {"qps": 4, "extraArgs": ["--tclass=96"]}}
    )
    server, client = spec.kind.tasks(spec.spec, ExecutionSite(peers))
    assert " ".join(server.argv) == "ib_read_bw -a -F -R -n 1000 --report_gbits -q 4 --tclass=96"
    assert client.argv == (*server.argv, "198.18.0.1")
    assert server.ready_text


def test_fio_defaults_are_those_of_the_original_crd() -> None:
    default = benchmark.read_benchmark({"kind": "Fio"})
    rows = dict(line.split("=") for line in fio.job_file(default.spec).splitlines()[1:])  # type: ignore[arg-type]
    wanted = {
        "rw": "read",
        "bs": "4M",
        "iodepth": "1",
        "ioengine": "libaio",
        "nrfiles": "1",
        "numjobs": "1",
        "rwmixread": "50",
        "direct": "1",
        "runtime": "30s",
        "size": "10G",
        "time_based": "1",
        "thread": "0",
    }
    assert wanted.items() <= rows.items()
    assert fio.parse_bytes("10G") == 10 * 1024**3 and fio.parse_bytes("512") == 512
    assert (
        fio.parse_seconds("90s") == 90
        and fio.parse_seconds("2m") == 120
        and fio.parse_seconds("500ms") == 0.5
    )


@given(st.integers(1, 512))
def test_the_cavity_is_split_into_as_many_boxes_as_there_are_processes(processes: int) -> None:
    x, y, z = openfoam_case.split_into_boxes(processes)
    assert x * y * z == processes


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


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1999e3, "bit/s", "1.999 Mbit/s"),
        (1000010e3, "bit/s", "1.000 Gbit/s"),
        (0.5, "bit/s", "0.5000 bit/s"),
        (999.96e6, "bit/s", "1.000 Gbit/s"),
        (999.9e6, "bit/s", "999.9 Mbit/s"),
        (0, "B/s", "0 B/s"),
        (37.59e9, "bit/s", "37.59 Gbit/s"),
        (16441.5, "1/s", "16.44 k/s"),
        (1e30, "B/s", "1000000000000 EB/s"),
        (5.36e-6, "s", "5.360 µs"),
        (0.12e-6, "s", "120.0 ns"),
        (24.68, "s", "24.68 s"),
        (7200, "s", "7200 s"),
        (0.99999, "s", "1.000 s"),
        (21.0, "", "21"),
        (0.25, "", "0.2500"),
    ],
)
def test_1_units_are_right_at_every_size(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


def test_1_an_interval_has_the_unit_of_its_value() -> None:
    summary = summarise_repetitions([10e9, 11e9, 12e9])
    assert (
        quantity_with_half_width(summary.mean, summary.half_width, "bit/s") == "11.0 ± 2.5 Gbit/s"
    )
    assert quantity_with_half_width(5e9, float("inf"), "bit/s") == "5.000 Gbit/s"


def test_4_a_slow_link_has_decimals() -> None:
    iperf = benchmark.read_benchmark({"kind": "IPerf", "spec": {"tool": "iperf", "duration": 2}})
    line = "[  1] 0.0000-2.1448 sec  14.1 KBytes  53.8 Kbits/sec\n"
    assert iperf.kind.parse(iperf.spec, ToolOutput(line)).headlines == {"bandwidth": 53800.0}


@pytest.mark.parametrize("pattern", ["rw,readwrite", "rw", "readwrite"])
def test_9_an_alias_of_a_fio_pattern_is_read_as_readwrite_with_a_warning(pattern: str) -> None:
    fio_benchmark = benchmark.read_benchmark({"kind": "Fio", "spec": {"rw": pattern}})
    assert "rw=readwrite\n" in fio.job_file(fio_benchmark.spec)  # type: ignore[arg-type]
    assert bool(fio_benchmark.warnings) == (pattern != "readwrite")


def test_9_an_empty_claim_template_is_ignored_and_an_existing_volume_is_used() -> None:
    fio_benchmark: Any = benchmark.read_benchmark(
        {"kind": "Fio", "spec": {"volumeClaimTemplate": {}, "volume": {"emptyDir": {}}}}
    ).spec
    assert fio_benchmark.volume == {"emptyDir": {}} and not fio_benchmark.volume_claim_template
    with pytest.raises(InvalidValue, match="exclude each other"):
        benchmark.read_benchmark(
            {"kind": "Fio", "spec": {"volumeClaimTemplate": {"a": 1}, "volume": {"emptyDir": {}}}}
        )


def test_12_a_list_is_replaced_and_a_value_can_be_unset() -> None:
    template = {"kind": "RDMALatency", "spec": {"extraArgs": ["--tclass=96"], "mode": "write"}}
    explicit = [{"extraArgs": ["--sl=3"], "mode": None}, {"extraArgs": None}]
    plan, _ = plan_of(
        {
            "kind": "BenchmarkSet",
            "spec": {"template": template, "permutations": {"explicit": explicit}},
        },
        list,
    )
    first, second = (planned.spec for planned in plan.benchmarks)
    assert (first.extra_args, first.mode) == (("--sl=3",), "read")  # type: ignore[attr-defined]
    assert (second.extra_args, second.mode) == ((), "write")  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["IPerf", "Fio", "RDMALatency", "RDMABandwidth"])
def test_13_commands_reach_peers_over_ipv6_where_the_spec_asks_for_it(kind: str) -> None:
    peers_benchmark = benchmark.read_benchmark({"kind": kind, "spec": {"ipFamily": "IPv6"}})
    peers = {
        role: [PartAddress(role, 0, "a", "2001:2::1", "/w")]
        for role in ("server", "client", "worker", "master")
    }
    command = " ".join(
        word
        for task in peers_benchmark.kind.tasks(peers_benchmark.spec, ExecutionSite(peers))
        for word in task.argv
    )
    assert "2001:2::1" in command and "6" in command.replace("2001:2::1", "")


def test_15_results_do_not_grow_with_bins_and_intervals() -> None:
    fio_benchmark = benchmark.read_benchmark(
        {"kind": "Fio", "spec": {"rw": "randrw", "numJobs": 2, "runtime": "3s"}}
    )
    text = (SAMPLES / "fio-client-1worker-2jobs.out").read_text("utf-8")
    parsed = fio_benchmark.kind.parse(fio_benchmark.spec, ToolOutput(text))
    assert len(json.dumps(parsed.result)) < len(text) / 10
    data = json.loads((SAMPLES / "iperf3-tcp-2streams.json").read_text("utf-8"))
    data["intervals"] = data["intervals"] * 5000
    long = benchmark.read_benchmark({"kind": "IPerf", "spec": {"streams": 2, "duration": 3}})
    assert len(long.kind.parse(long.spec, ToolOutput(json.dumps(data))).result["intervals"]) <= 120


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_17_every_benchmark_has_a_deadline(kind: Any) -> None:
    assert 0 < benchmark.read_benchmark({"kind": kind.name}).limit_s < float("inf")
    assert benchmark.read_benchmark({"kind": kind.name, "spec": {"timeLimit": 7}}).limit_s == 7


def test_18_percentiles_retransmits_directions_and_datagrams_are_there() -> None:
    names = {name: {headline.name for headline in kind.headlines} for name, kind in KINDS.items()}
    assert {"readLatency99", "writeLatency99"} <= names["Fio"]
    assert {"retransmits", "reverseBandwidth", "jitter", "lost"} <= names["IPerf"]
    udp = {
        "start": {
            "test_start": {
                "protocol": "UDP",
                "num_streams": 1,
                "duration": 10,
                "omit": 0,
                "reverse": 0,
            }
        },
        "end": {
            "streams": [{"udp": {"bytes": 1.25e6}}],
            "sum": {"bytes": 1.25e6, "seconds": 10, "bits_per_second": 1e6, "jitter_ms": 0.5}
            | {"packets": 100, "lost_packets": 10, "lost_percent": 10},
            "sum_received": {"bytes": 1.125e6, "seconds": 10, "bits_per_second": 9e5},
        },
    }
    iperf = benchmark.read_benchmark({"kind": "IPerf", "spec": {"protocol": "UDP"}})
    headlines = iperf.kind.parse(iperf.spec, ToolOutput(json.dumps(udp))).headlines
    assert headlines == {
        "bandwidth": pytest.approx(9e5),
        "jitter": pytest.approx(5e-4),
        "lost": pytest.approx(0.1),
    }


def test_19_a_program_that_does_not_say_its_version_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given programs that do not answer, as on a node that is busy
    for name in ("mpirun", "ip"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(programs, "VERSION_LIMIT_S", 0.05)
    monkeypatch.setattr(namespaces, "COMMAND_LIMIT_S", 0.05)
    # expect their words to be missing, and nothing else
    pingpong = benchmark.read_benchmark({"kind": "MPIPingPong"})
    assert machine.describe_machine(pingpong)["programs"]["mpirun"] == ""
    assert machine.describe_card("fast0", tmp_path) == {"name": "fast0"}


def test_19_a_machine_and_its_card_are_recorded(tmp_path: Path) -> None:
    iperf = benchmark.read_benchmark({"kind": "IPerf"})
    facts = machine.describe_machine(iperf)
    assert facts["kernel"] == os.uname().release
    assert {"processor", "memory", "cores", "system", "programs"} <= set(facts)
    # given a card with a driver, as the kernel shows it
    (tmp_path / "drivers" / "mlx5_core").mkdir(parents=True)
    (tmp_path / "fast0" / "device").mkdir(parents=True)
    (tmp_path / "fast0" / "device" / "driver").symlink_to(tmp_path / "drivers" / "mlx5_core")
    (tmp_path / "fast0" / "speed").write_text("100000\n")
    assert machine.describe_card("fast0", tmp_path) == {
        "name": "fast0",
        "driver": "mlx5_core",
        "speed_bit_s": 10**11,
    }
    # and one that says nothing of its speed
    (tmp_path / "fast0" / "speed").write_text("-\n")
    assert machine.describe_card("fast0", tmp_path) == {"name": "fast0", "driver": "mlx5_core"}

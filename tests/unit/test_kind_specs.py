"""Specs of benchmark kinds: what they take and refuse, and the arguments that tools get."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.benchmarks.sweep import plan_of
from scaletest.kinds import benchmark, fio, openfoam, pytorch, torch
from scaletest.kinds.kind import ExecutionSite, PartAddress
from scaletest.kinds.registry import KINDS
from scaletest.model.errors import InvalidValue


@pytest.mark.parametrize(
    ("model", "mode"),
    [("alexnet", "train"), ("resnet50", "train"), ("llama", "eval")],
)
def test_the_torch_workload_accepts_the_arguments_of_the_kind(model: str, mode: str) -> None:
    spec = {"model": model, "benchmarkType": mode, "inputBatchSize": 8, "batches": 3}
    torch_benchmark = benchmark.read({"kind": "PyTorch", "spec": spec})
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
        benchmark.read({"kind": kind, "spec": spec if spec != [] else [1]})
    assert error.value.hint


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_document_survives_being_written_and_read(kind: Any) -> None:
    default = benchmark.read({"kind": kind.name})
    assert benchmark.read(default.document()).spec == default.spec


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
    default = benchmark.read({"kind": "Fio"})
    rows = dict(line.split("=") for line in fio.job_file(default.spec).splitlines()[1:])  # type: ignore[arg-type]
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
    x, y, z = openfoam.boxes(processes)
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

"""Benchmarks as objects on a real node: iperf3 runs in pods, and what it measured is in the status."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from hack.kubernetes import ControlPlane
from scaletest.benchmarks.kubernetes import stored
from scaletest.cluster.connection import connect
from scaletest.cluster.documents import Documents
from tests.cluster.conftest import restricted
from tests.conftest import eventually, program


@pytest.fixture(scope="module", autouse=True)
def operator(real: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all namespaces, as a process of this machine."""
    environment = {**os.environ, "KUBECONFIG": str(real.kubeconfig)}
    with (tmp_path_factory.mktemp("operator") / "log").open("wb") as log:
        process = subprocess.Popen(program("operator"), env=environment, stdout=log, stderr=log)
    yield
    process.terminate()
    process.wait(60)


@pytest.fixture
def namespace(real: ControlPlane) -> str:
    """One that admits only what is restricted."""
    return restricted(real)


def get(real: ControlPlane, namespace: str, what: str) -> Any:
    return json.loads(real.kubectl("-n", namespace, "get", what, "-o", "json"))["items"]


def ask(real: ControlPlane, namespace: str, kind: str, name: str, spec: dict[str, Any]) -> None:
    meta = {"name": name, "namespace": namespace}
    real.apply([{"apiVersion": "scaletest.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}])


def ended(real: ControlPlane, namespace: str, what: str) -> dict[str, Any]:
    """The status of the only benchmark of that kind when it has ended."""

    def status() -> dict[str, Any]:
        return dict(get(real, namespace, what)[0].get("status", {}))

    eventually(lambda: status().get("phase") in ("Completed", "Failed"), 300)
    return status()


@pytest.mark.timeout(900)
def test_a_set_of_iperf_is_measured_by_real_pods(
    real: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given 3 x 2 benchmarks
    spec = {
        "template": {"kind": "IPerf", "spec": {"duration": 1}},
        "permutations": {"product": {"streams": [1, 2, 4]}},
        "repetitions": 2,
    }
    ask(real, namespace, "BenchmarkSet", "sweep", spec)

    def status() -> dict[str, Any]:
        return dict(get(real, namespace, "benchmarksets")[0].get("status", {}))

    eventually(lambda: "finishedAt" in status(), 600)
    # expect each measured, and the network that was used
    rows = {one["metadata"]["name"]: one for one in get(real, namespace, "iperfs")}
    assert (status()["succeeded"], status()["count"]) == (6, 6), [one["status"] for one in rows.values()]
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig))
    objects = Documents(connect())
    for number in range(1, 7):
        one = rows[f"sweep-{number}"]
        ended = stored(objects, namespace, one["metadata"]["name"], one["metadata"]["uid"])
        assert ended is not None and ended.headlines["bandwidth"] > 1e6
        # the tool's own report says the same
        assert ended.headlines["bandwidth"] == ended.result["end"]["sum_received"]["bits_per_second"]
        assert len(ended.result["streams"]) == one["spec"]["streams"] == [1, 1, 2, 2, 4, 4][number - 1]
        assert one["status"]["network"]["interface"] == "eth0"
        assert one["status"]["summary"] in real.kubectl("-n", namespace, "get", "iperf", one["metadata"]["name"])
    # and when the set is deleted nothing is left
    real.kubectl("-n", namespace, "delete", "benchmarkset", "sweep", "--timeout=60s")
    eventually(lambda: not get(real, namespace, "iperfs,jobs,pods,services"), 120)


@pytest.mark.timeout(900)
def test_fio_on_two_workers_names_both(real: ControlPlane, namespace: str) -> None:
    small = {"numWorkers": 2, "size": "4M", "bs": "64k", "runtime": "1s", "ioengine": "psync", "direct": 0}
    ask(real, namespace, "Fio", "disk", {**small, "rw": "randrw"})
    found = ended(real, namespace, "fios")
    assert found["phase"] == "Completed", found
    assert {"readBandwidth", "writeIops"} <= set(found["headlines"])
    assert len(found["pods"]["worker"]) == 2 and len(found["pods"]["master"]) == 1


@pytest.mark.timeout(900)
def test_an_mtu_is_that_of_the_pod_and_the_result_says_so(real: ControlPlane) -> None:
    # given a namespace that lets an init container change the pod's own network
    real.kubectl("create", "namespace", "open")
    eventually(lambda: real.kubectl("-n", "open", "get", "serviceaccount", "default", "--ignore-not-found"))
    ask(real, "open", "IPerf", "small", {"duration": 1, "mtu": 1300})
    found = ended(real, "open", "iperfs")
    assert (found["phase"], found["network"]["mtu"]) == ("Completed", 1300), found


@pytest.mark.timeout(900)
def test_a_tool_that_fails_says_why_in_the_status(real: ControlPlane, namespace: str) -> None:
    # given RDMA where there is no device
    ask(real, namespace, "RDMALatency", "wire", {"iterations": 5})
    found = ended(real, namespace, "rdmalatencies")
    assert (found["phase"], found["failure"]) == ("Failed", "no_device"), found

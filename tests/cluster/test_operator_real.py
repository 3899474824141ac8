"""Benchmarks as objects on a real node: iperf3 runs in pods, and what it measured is in the status."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hack.kubernetes import ControlPlane, NotBuilt, Pool
from hack.kubernetes.box import ADDRESS
from hack.kubernetes.images import archives
from hack.kubernetes.settings import has_ipv6
from scaletest.benchmarks.kubernetes import stored
from scaletest.cluster.connection import connect
from scaletest.cluster.documents import Documents
from scaletest.kinds.crd import definitions
from tests.cluster.conftest import restricted
from tests.conftest import eventually, missing, program

IMAGES = ("benchmarks", "pause")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with one real node that has the image of the tools, and our definitions."""
    made = ControlPlane(tmp_path_factory.mktemp("real"))
    try:
        made.up([Pool("plain", 1, 0)], real=True, images=archives(IMAGES))
        made.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(definitions()))
        made.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        yield made
    except NotBuilt as error:
        missing(str(error))
    finally:
        made.down()


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


SMALL = {"numWorkers": 2, "size": "4M", "bs": "64k", "runtime": "1s", "ioengine": "psync", "direct": 0, "rw": "randrw"}


@pytest.mark.timeout(900)
def test_fio_measures_claims_of_every_sort(real: ControlPlane, namespace: str) -> None:
    # given a claim of somebody's own, and benchmarks of it, of one that is shared, and of one for each worker
    mine = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": "mine", "namespace": namespace}
    real.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": mine}])
    shared = {**mine, "accessModes": ["ReadWriteMany"]}
    ask(real, namespace, "Fio", "existing", {**SMALL, "volume": {"persistentVolumeClaim": {"claimName": "mine"}}})
    ask(real, namespace, "Fio", "shared", {**SMALL, "volumeClaimTemplate": shared})
    ask(real, namespace, "Fio", "each", {**SMALL, "volumeClaimTemplate": mine})
    # when all have run, one after the other
    seen: dict[str, str] = {}

    def over() -> bool:
        for one in get(real, namespace, "persistentvolumeclaims"):
            if one["status"]["phase"] == "Bound":
                seen[one["metadata"]["name"]] = one["metadata"].get("ownerReferences", [{}])[0].get("kind", "nobody")
        rows = get(real, namespace, "fios")
        return all(one.get("status", {}).get("phase") in ("Completed", "Failed") for one in rows)

    eventually(over, 300)
    # expect each measured on both workers
    for one in get(real, namespace, "fios"):
        assert one["status"]["phase"] == "Completed", one
        assert {"readBandwidth", "writeIops"} <= set(one["status"]["headlines"])
        assert len(one["status"]["pods"]["worker"]) == 2 and len(one["status"]["pods"]["master"]) == 1
    # the shared claim the benchmark's, the others the pods'
    assert seen.pop("mine") == "nobody" and seen.pop("shared-scratch") == "Fio"
    assert sorted(name[: len("each-worker-0")] for name in seen) == ["each-worker-0", "each-worker-1"]
    assert set(seen.values()) == {"Pod"}
    # and in the end what was there before
    left = ["mine"]
    eventually(lambda: [one["metadata"]["name"] for one in get(real, namespace, "persistentvolumeclaims")] == left, 120)


@pytest.mark.timeout(900)
def test_the_network_that_was_asked_for_is_used_and_the_result_says_so(real: ControlPlane) -> None:
    # given a namespace that lets an init container change the pod's own network, and pods use the node's
    if not has_ipv6():
        missing("this machine has no IPv6")
    real.kubectl("create", "namespace", "open")
    eventually(lambda: real.kubectl("-n", "open", "get", "serviceaccount", "default", "--ignore-not-found"))
    ask(real, "open", "IPerf", "small", {"duration": 1, "mtu": 1300})
    ask(real, "open", "IPerf", "node", {"duration": 1, "hostNetwork": True})
    ask(real, "open", "IPerf", "six", {"duration": 1, "ipFamily": "IPv6"})
    ask(real, "open", "IPerf", "both", {"duration": 1, "hostNetwork": True, "mtu": 1300})

    def found() -> dict[str, dict[str, Any]]:
        return {one["metadata"]["name"]: one.get("status", {}) for one in get(real, "open", "iperfs")}

    eventually(lambda: all(one.get("phase") in ("Completed", "Failed") for one in found().values()), 300)
    # expect what the kernel says of each
    used = {name: one["network"] for name, one in found().items() if one["phase"] == "Completed"}
    keys = ("interface", "family", "mtu")
    assert {name: [one[key] for key in keys] for name, one in used.items()} == {
        "small": ["eth0", "IPv4", 1300],
        # both parts are on the one node
        "node": ["lo", "IPv4", 65536],
        "six": ["eth0", "IPv6", 1500],
    }, found()
    assert used["node"]["peer"] == ADDRESS
    # and nobody's node changed
    assert (found()["both"]["phase"], found()["both"]["failure"]) == ("Failed", "refused")


@pytest.mark.timeout(900)
def test_a_tool_that_fails_says_why_in_the_status(real: ControlPlane, namespace: str) -> None:
    # given RDMA where there is no device
    ask(real, namespace, "RDMALatency", "wire", {"iterations": 5})
    found = ended(real, namespace, "rdmalatencies")
    assert (found["phase"], found["failure"]) == ("Failed", "no_device"), found

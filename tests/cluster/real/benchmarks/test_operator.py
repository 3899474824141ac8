"""Benchmarks as objects on a real node: the operator is the chart's pod, iperf3 and others run in
pods, and what they measured is in the status.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane
from hack.kubernetes.box import ADDRESS
from hack.kubernetes.settings import has_ipv6
from scaletest.benchmarks.objects.config_maps import load_result
from scaletest.cluster.api_calls import connect_cluster
from scaletest.cluster.objects import ObjectClient
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, helm_program, restricted
from tests.conftest import eventually, missing

OPERATOR = "bench-scaletest-operator"
# Its image has 800 MB: that alone takes as long as the tests of benchmarks
OPENFOAM = os.environ.get("SCALETEST_TEST_OPENFOAM")


@pytest.fixture(scope="module", autouse=True)
def home(real: ControlPlane, images: Callable[..., list[Path]]) -> str:
    """The namespace of the chart's release, whose operator works in all namespaces with the chart's
    own rights.
    """
    real.node.load(images("benchmarks", *(["openfoam"] if OPENFOAM else [])))
    name = restricted(real)
    wanted = "operator.enabled=true,operator.everywhere=true,exporter.enabled=false"
    line = ["--set", wanted, "--wait", "--timeout=180s"]
    done = Helm(real, helm_program())("install", "bench", str(CHART), "-n", name, *line)
    assert done.stderr == ""
    assert "created by hand" in done.stdout
    return name


@pytest.fixture
def namespace(real: ControlPlane) -> str:
    """One that admits only what is restricted."""
    return restricted(real)


def get(real: ControlPlane, namespace: str, kinds: str) -> Any:
    return json.loads(real.kubectl("-n", namespace, "get", *kinds.split(), "-o", "json"))["items"]


def ask(real: ControlPlane, namespace: str, kind: str, name: str, spec: dict[str, Any]) -> None:
    meta = {"name": name, "namespace": namespace}
    real.apply(
        [{"apiVersion": "scaletest.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}]
    )


def ended(real: ControlPlane, namespace: str, kind: str) -> dict[str, Any]:
    """The status of the only benchmark of that kind when it has ended."""

    def status() -> dict[str, Any]:
        return dict(get(real, namespace, kind)[0].get("status", {}))

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
    rows = {row["metadata"]["name"]: row for row in get(real, namespace, "iperfs")}
    assert (status()["succeeded"], status()["count"]) == (6, 6), [
        row["status"] for row in rows.values()
    ]
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig))
    objects = ObjectClient(connect_cluster())
    for number in range(1, 7):
        benchmark = rows[f"sweep-{number}"]
        ended = load_result(
            objects, namespace, benchmark["metadata"]["name"], benchmark["metadata"]["uid"]
        )
        assert ended is not None and ended.headlines["bandwidth"] > 1e6
        # the tool's own report says the same
        assert (
            ended.headlines["bandwidth"] == ended.result["end"]["sum_received"]["bits_per_second"]
        )
        assert (
            len(ended.result["streams"])
            == benchmark["spec"]["streams"]
            == [1, 1, 2, 2, 4, 4][number - 1]
        )
        assert benchmark["status"]["network"]["interface"] == "eth0"
        assert ended.environment["card"] == {"name": "eth0"}
        assert ended.environment["kernel"] and ended.environment["kubernetes"].startswith("v1.")
        assert all("sha256:" in digest for digest in ended.environment["images"].values())
        assert benchmark["status"]["summary"] in real.kubectl(
            "-n", namespace, "get", "iperf", benchmark["metadata"]["name"]
        )
    # and when the set is deleted nothing is left
    real.kubectl("-n", namespace, "delete", "benchmarkset", "sweep", "--timeout=60s")
    eventually(lambda: not get(real, namespace, "iperfs,jobs,pods"))


SMALL = {
    "numWorkers": 2,
    "size": "4M",
    "bs": "64k",
    "runtime": "1s",
    "ioengine": "psync",
    "direct": 0,
    "rw": "randrw",
}


@pytest.mark.timeout(900)
def test_mpi_starts_its_processes_in_worker_pods(real: ControlPlane, namespace: str) -> None:
    # given a namespace that lets nobody be root
    ask(real, namespace, "MPIPingPong", "ping", {"maxlog": 8})
    status = ended(real, namespace, "mpipingpongs")
    # expect the table of the whole range, over the pods' network
    assert status["phase"] == "Completed", status
    assert set(status["headlines"]) == {"peakBandwidth", "minimumLatency"}
    assert (status["network"]["interface"], len(status["pods"]["worker"])) == ("eth0", 2)
    # and that its key has gone with its pods
    eventually(lambda: not get(real, namespace, "secrets,jobs,pods"))


@pytest.mark.skipif(not OPENFOAM, reason="SCALETEST_TEST_OPENFOAM is not set: its image is large")
@pytest.mark.timeout(900)
def test_openfoam_has_its_case_on_every_worker(real: ControlPlane, namespace: str) -> None:
    ask(real, namespace, "OpenFOAM", "cavity", {"problemSize": "XS", "numProcs": 2, "numNodes": 2})
    status = ended(real, namespace, "openfoams")
    assert status["phase"] == "Completed", status
    assert {"wallTime", "executionTime"} <= set(status["headlines"])
    assert len(status["pods"]["worker"]) == 2


@pytest.mark.timeout(900)
def test_fio_measures_existing_shared_and_per_worker_claims(
    real: ControlPlane, namespace: str
) -> None:
    # given a claim of somebody's own, and benchmarks of it, of one that is shared, and of one for
    # each worker
    mine = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": "mine", "namespace": namespace}
    real.apply(
        [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": mine}]
    )
    shared = {**mine, "accessModes": ["ReadWriteMany"]}
    ask(
        real,
        namespace,
        "Fio",
        "existing",
        {**SMALL, "volume": {"persistentVolumeClaim": {"claimName": "mine"}}},
    )
    ask(real, namespace, "Fio", "shared", {**SMALL, "volumeClaimTemplate": shared})
    ask(real, namespace, "Fio", "each", {**SMALL, "volumeClaimTemplate": mine})
    # when all have run, one after the other
    owners: dict[str, str] = {}

    def over() -> bool:
        for claim in get(real, namespace, "persistentvolumeclaims"):
            if claim["status"]["phase"] == "Bound":
                owners[claim["metadata"]["name"]] = (
                    claim["metadata"].get("ownerReferences", [{}])[0].get("kind", "nobody")
                )
        rows = get(real, namespace, "fios")
        return all(row.get("status", {}).get("phase") in ("Completed", "Failed") for row in rows)

    eventually(over, 300)
    # expect each measured on both workers
    for benchmark in get(real, namespace, "fios"):
        assert benchmark["status"]["phase"] == "Completed", benchmark
        assert {"readBandwidth", "writeIops"} <= set(benchmark["status"]["headlines"])
        assert (
            len(benchmark["status"]["pods"]["worker"]) == 2
            and len(benchmark["status"]["pods"]["master"]) == 1
        )
    # the shared claim the benchmark's, the others the pods'
    assert owners.pop("mine") == "nobody" and owners.pop("shared-scratch") == "Fio"
    assert sorted(name[: len("each-worker-0")] for name in owners) == [
        "each-worker-0",
        "each-worker-1",
    ]
    assert set(owners.values()) == {"Pod"}
    # and in the end what was there before
    left = ["mine"]
    eventually(
        lambda: (
            [claim["metadata"]["name"] for claim in get(real, namespace, "persistentvolumeclaims")]
            == left
        )
    )


@pytest.mark.timeout(900)
def test_the_requested_network_is_used_and_named_in_the_result(real: ControlPlane) -> None:
    # given a namespace that lets an init container change the pod's own network, and pods use the
    # node's
    if not has_ipv6():
        missing("this machine has no IPv6")
    real.kubectl("create", "namespace", "open")
    eventually(
        lambda: real.kubectl("-n", "open", "get", "serviceaccount", "default", "--ignore-not-found")
    )
    ask(real, "open", "IPerf", "small", {"duration": 1, "mtu": 1300})
    ask(real, "open", "IPerf", "node", {"duration": 1, "hostNetwork": True})
    ask(real, "open", "IPerf", "six", {"duration": 1, "ipFamily": "IPv6"})
    ask(real, "open", "IPerf", "both", {"duration": 1, "hostNetwork": True, "mtu": 1300})

    def statuses() -> dict[str, dict[str, Any]]:
        return {
            row["metadata"]["name"]: row.get("status", {}) for row in get(real, "open", "iperfs")
        }

    eventually(
        lambda: all(
            status.get("phase") in ("Completed", "Failed") for status in statuses().values()
        ),
        300,
    )
    # expect what the kernel says of each
    used = {
        name: status["network"]
        for name, status in statuses().items()
        if status["phase"] == "Completed"
    }
    keys = ("interface", "family", "mtu")
    assert {name: [network[key] for key in keys] for name, network in used.items()} == {
        "small": ["eth0", "IPv4", 1300],
        # both parts are on the one node
        "node": ["lo", "IPv4", 65536],
        "six": ["eth0", "IPv6", 1500],
        # nobody's node changes: the MTU that was asked for is ignored
        "both": ["lo", "IPv4", 65536],
    }, statuses()
    assert used["node"]["peer"] == ADDRESS
    # and the status says so
    assert "mtu is ignored" in json.dumps(statuses()["both"])


@pytest.mark.timeout(900)
def test_a_tool_that_fails_says_why_in_the_status(real: ControlPlane, namespace: str) -> None:
    # given RDMA where there is no device
    ask(real, namespace, "RDMALatency", "wire", {"iterations": 5})
    status = ended(real, namespace, "rdmalatencies")
    assert (status["phase"], status["failure"]) == ("Failed", "no_device"), status


def test_the_operators_pod_shows_its_metrics(real: ControlPlane, home: str, namespace: str) -> None:
    ask(real, namespace, "IPerf", "one", {"duration": 1})
    assert ended(real, namespace, "iperfs")["phase"] == "Completed"
    at = f"/api/v1/namespaces/{home}/services/{OPERATOR}:9997/proxy/metrics"
    assert 'scaletest_operator_phases_total{kind="IPerf",phase="Completed"}' in real.kubectl(
        "get", "--raw", at
    )
    # and was never found dead by its probe
    (pod,) = get(real, home, "pods -l app.kubernetes.io/component=operator")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.timeout(900)
def test_a_set_is_measured_exactly_once_though_the_operators_pod_is_killed(
    real: ControlPlane, home: str, namespace: str
) -> None:
    # given a set that runs
    spec = {"template": {"kind": "IPerf", "spec": {"duration": 2}}, "repetitions": 2}
    ask(real, namespace, "BenchmarkSet", "twice", spec)
    # when the operator's pod is killed while each of its benchmarks is prepared or measured
    for name, phase in (("twice-1", "Preparing"), ("twice-1", "Running"), ("twice-2", "Running")):

        def reached(name: str = name, phase: str = phase) -> bool:
            rows = {
                row["metadata"]["name"]: row.get("status", {}).get("phase")
                for row in get(real, namespace, "iperfs")
            }
            order = ("Preparing", "Running", "Summarising", "Completed")
            return rows.get(name) in order[order.index(phase) :]

        eventually(reached)
        labels = "app.kubernetes.io/component=operator"
        real.kubectl("-n", home, "delete", "pod", "-l", labels, "--force", "--grace-period=0")
    eventually(
        lambda: "finishedAt" in get(real, namespace, "benchmarksets")[0].get("status", {}), 300
    )
    # expect both measured, each by pods that were made once
    status = get(real, namespace, "benchmarksets")[0]["status"]
    assert (status["succeeded"], status["failed"]) == (2, 0), get(real, namespace, "iperfs")
    creations = [
        event for event in get(real, namespace, "events") if event["reason"] == "SuccessfulCreate"
    ]
    jobs = sorted(
        event["involvedObject"]["name"] for event in creations for _ in range(event.get("count", 1))
    )
    assert jobs == ["twice-1-client", "twice-1-server", "twice-2-client", "twice-2-server"]


@pytest.mark.timeout(900)
def test_a_benchmark_refused_by_pod_security_fails_with_the_message_of_the_api_server(
    real: ControlPlane, namespace: str
) -> None:
    ask(real, namespace, "IPerf", "host", {"duration": 1, "hostNetwork": True})
    status = ended(real, namespace, "iperfs")
    assert (status["phase"], status["failure"]) == ("Failed", "refused")
    assert "violates PodSecurity" in status["message"] and "hostNetwork=true" in status["message"]

"""Benchmarks as objects, on fake nodes with scripted results: phases, sets, kill -9, and nothing
left behind.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.kubernetes import CommandFailed, ControlPlane
from scaletest.benchmarks.documents.custom_resources import make_definitions
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, established, kubeconfig_of, needs_own
from tests.conftest import eventually, program

pytestmark = needs_own
CREATED_KINDS = "jobs,pods,configmaps"
API = "scaletest.dev/v1alpha1"
ACCOUNT = "bench-scaletest-operator"


class Operator:
    """The operator as a process of this machine, in one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane, self.namespace, self._folder = plane, namespace, folder
        self.journal = folder / "journal"
        self.kubeconfig = plane.kubeconfig
        self.perftest_group = ""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        line = [
            sys.executable,
            "-m",
            "tests.cluster.operator_process",
            self.namespace,
            str(self.journal),
            *filter(None, [self.perftest_group]),
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                line, env={**os.environ, "KUBECONFIG": str(self.kubeconfig)}, stdout=log, stderr=log
            )

    def end(self, number: int = signal.SIGTERM) -> None:
        if self._process:
            self._process.send_signal(number)
            self._process.wait(60)
        self._process = None

    def kubectl(self, *arguments: str) -> str:
        return self._plane.kubectl("-n", self.namespace, *arguments)

    def get(self, kind: str, name: str = "") -> Any:
        return json.loads(self.kubectl("get", kind, *filter(None, [name]), "-o", "json"))

    def apply(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        body = {
            "apiVersion": API,
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }
        self._plane.apply([body])

    def create(self, body: dict[str, Any]) -> None:
        self._plane.kubectl("-n", self.namespace, "create", "-f", "-", stdin=json.dumps(body))

    def status(self, kind: str, name: str) -> dict[str, Any]:
        status = self.get(kind, name).get("status", {})
        assert isinstance(status, dict)
        return status

    def measured(self) -> list[list[str]]:
        """Benchmark and pod of every measurement, once each."""
        rows = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [row.split() for row in sorted(set(rows))]


@pytest.fixture(scope="module", autouse=True)
def defined(plane: ControlPlane) -> Iterator[None]:
    """Our definitions."""
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(make_definitions()))
    established(plane)
    yield


@pytest.fixture
def operator(plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Operator]:
    """One that runs."""
    operator = Operator(plane, namespace, tmp_path)
    operator.start()
    yield operator
    operator.end()
    # what has a finalizer goes only while an operator is there; the test is over
    for kind in ("iperfs", "fios", "benchmarksets"):
        for row in operator.get(kind)["items"]:
            clear = json.dumps({"metadata": {"finalizers": None}})
            operator.kubectl("patch", kind, row["metadata"]["name"], "--type=merge", "-p", clear)


def test_a_benchmark_goes_through_its_phases_and_shows_its_headline(operator: Operator) -> None:
    # given nobody who measures; when a benchmark is asked for
    operator.apply("IPerf", "one", {"duration": 5, "streams": 1})
    # expect it measured, and what kubectl prints
    eventually(lambda: operator.status("iperf", "one").get("phase") == "Completed")
    status = operator.status("iperf", "one")
    assert status["headlines"] == {"bandwidth": "5.000 Gbit/s", "retransmits": "3"}
    assert status["summary"] == "5.000 Gbit/s"
    assert {condition["type"]: condition["status"] for condition in status["conditions"]} == {
        "Complete": "True",
        "Failed": "False",
    }
    assert "5.000 Gbit/s" in operator.kubectl("get", "iperf", "one")
    reasons = [
        event["reason"]
        for event in operator.get("events")["items"]
        if event["involvedObject"]["kind"] == "IPerf"
    ]
    assert "Completed" in reasons
    # and of what it made only the result
    eventually(lambda: not operator.get("jobs,pods")["items"])
    assert len(operator.measured()) == 1


def test_the_rights_of_the_chart_suffice(
    plane: ControlPlane, operator: Operator, main_helm: Helm, tmp_path: Path
) -> None:
    # given an operator with the account of the chart, whose own pod nobody runs
    operator.end()
    main_helm(
        "install",
        "bench",
        str(CHART),
        "-n",
        operator.namespace,
        "--set",
        "operator.enabled=true,operator.crds=false",
    )
    operator.kubeconfig = kubeconfig_of(plane, operator.namespace, ACCOUNT, tmp_path)
    # expect them to be enough for a set that is measured and deleted
    operator.start()
    spec = {"template": {"kind": "IPerf", "spec": {"duration": 5}}, "repetitions": 2}
    operator.apply("BenchmarkSet", "plain", spec)
    eventually(lambda: operator.status("benchmarkset", "plain").get("succeeded") == 2)
    operator.kubectl("delete", "benchmarkset", "plain", "--timeout=60s")
    eventually(lambda: not operator.get("iperfs")["items"])
    # and a claim for all workers of fio made and deleted
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    operator.apply("Fio", "disk", {"numWorkers": 2, "volumeClaimTemplate": claim})
    mine = ("get", "pvc", "disk-scratch", "--ignore-not-found", "-o", "name")
    eventually(lambda: operator.kubectl(*mine))
    operator.kubectl("delete", "fio", "disk", "--timeout=60s")
    eventually(lambda: not operator.kubectl(*mine))
    assert "forbidden" not in (tmp_path / "log").read_text("utf-8").lower()


def test_deleting_a_set_removes_everything_that_it_made(operator: Operator) -> None:
    before = sorted(created["metadata"]["name"] for created in operator.get(CREATED_KINDS)["items"])
    spec = {
        "template": {"kind": "IPerf", "spec": {"duration": 5}},
        "permutations": {"product": {"streams": [1, 2]}},
    }
    # given a set of which one has ended
    operator.apply("BenchmarkSet", "set", spec)
    eventually(lambda: operator.status("benchmarkset", "set").get("succeeded"))
    # when it is deleted
    operator.kubectl("delete", "benchmarkset", "set", "--timeout=60s")
    # expect nothing left but the lock
    eventually(lambda: not operator.get("iperfs")["items"])
    eventually(
        lambda: (
            sorted(created["metadata"]["name"] for created in operator.get(CREATED_KINDS)["items"])
            == before
        )
    )


def test_a_set_is_measured_exactly_once_though_the_operator_is_killed(operator: Operator) -> None:
    # given a set of 3 x 2
    template = {"kind": "IPerf", "spec": {"duration": 5}}
    spec = {
        "template": template,
        "permutations": {"product": {"streams": [1, 2, 4]}},
        "repetitions": 2,
    }
    operator.apply("BenchmarkSet", "sweep", spec)
    # when the operator is killed at ten random moments
    chance = random.Random(11)
    for _ in range(10):
        time.sleep(chance.uniform(0.3, 4.0))
        operator.end(signal.SIGKILL)
        operator.start()
    eventually(lambda: operator.status("benchmarkset", "sweep").get("finishedAt"), 150)
    # expect every benchmark measured, by one pod each, and the counts as kubectl prints them
    names = [f"sweep-{number}" for number in range(1, 7)]
    assert [name for name, _ in operator.measured()] == names
    assert sorted(row["metadata"]["name"] for row in operator.get("iperfs")["items"]) == names
    status = operator.status("benchmarkset", "sweep")
    assert (status["phase"], status["count"], status["succeeded"], status["failed"]) == (
        "Completed",
        6,
        6,
        0,
    )
    rows = status["results"]
    assert [row["permutation"] for row in rows] == ["streams 1", "streams 2", "streams 4"]
    assert operator.kubectl("get", "benchmarkset", "sweep", "--no-headers").split()[1:6] == [
        "3",
        "2",
        "6",
        "0",
        "6",
    ]
    # one at a time: each began after the one before had ended
    times = [operator.status("iperf", name)["startedAt"] for name in names]
    assert times == sorted(times)
    assert not operator.get("jobs")["items"]


def test_a_second_operator_disturbs_nothing(
    plane: ControlPlane, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # given two operators in one namespace, as when one is on a node that nobody reaches
    other = Operator(plane, operator.namespace, tmp_path_factory.mktemp("other"))
    other.start()
    try:
        spec = {"template": {"kind": "IPerf", "spec": {"duration": 5}}, "repetitions": 4}
        operator.apply("BenchmarkSet", "both", spec)
        eventually(lambda: operator.status("benchmarkset", "both").get("finishedAt"), 150)
    finally:
        other.end()
    # expect each measured, and nothing left
    status = operator.status("benchmarkset", "both")
    assert (status["phase"], status["succeeded"], status["failed"]) == ("Completed", 4, 0)
    eventually(lambda: not operator.get("jobs,pods")["items"])


def test_a_benchmark_that_cannot_run_fails_with_the_reason_and_blocks_no_other(
    operator: Operator,
) -> None:
    # given one that cannot be, one whose pod prints nothing and is lost, and one that waits for it
    operator.apply("OpenFOAM", "cavity", {"numNodes": 2, "numProcs": 2, "nodes": ["one"]})
    operator.apply("IPerf", "slow", {"duration": 5})
    eventually(lambda: operator.status("iperf", "slow").get("phase") == "Running")
    operator.apply("IPerf", "next", {"duration": 5})
    eventually(
        lambda: "waiting for its turn" in operator.status("iperf", "next").get("message", "")
    )
    # when its Job is deleted by somebody
    operator.kubectl("delete", "job", "slow-client")
    # expect it failed, not measured again, and the next one measured
    eventually(lambda: operator.status("iperf", "slow").get("phase") == "Failed")
    assert operator.status("iperf", "slow")["failure"] == "interrupted"
    eventually(lambda: operator.status("iperf", "next").get("phase") == "Completed")
    assert [name for name, _ in operator.measured()] == ["next", "slow"]
    status = operator.status("openfoam", "cavity")
    assert (status["phase"], status["failure"]) == ("Failed", "refused")


def test_the_command_line_has_the_operator_measure_a_sweep(
    operator: Operator, tmp_path: Path
) -> None:
    # when a sweep is run in the cluster
    environment = {**os.environ, "KUBECONFIG": str(operator.kubeconfig)}

    def scaletest(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            program(*arguments), capture_output=True, text=True, env=environment, check=False
        )

    def run(name: str, threshold: str) -> subprocess.CompletedProcess[str]:
        line = [
            "bench",
            "run",
            "IPerf",
            "--set",
            "duration=5",
            "--repetitions",
            "2",
            "--threshold",
            threshold,
        ]
        return scaletest(
            *line,
            "--namespace",
            operator.namespace,
            "--run-dir",
            str(tmp_path / name),
            "--format",
            "json",
        )

    done = run("base", "bandwidth>=4Gbit/s")
    # expect the result as of any executor, and nothing left in the cluster
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"]["kind"] == "PASS"
    # and when it is run again, with a bound that it does not reach, a FAIL, and a comparison of
    # both
    assert run("candidate", "bandwidth>=6Gbit/s").returncode == 3
    compared = scaletest(
        "compare", str(tmp_path / "base"), str(tmp_path / "candidate"), "--format", "json"
    )
    (candidate,) = json.loads(compared.stdout)["candidates"]
    row = next(row for row in candidate["measures"] if row["measure"] == "bandwidth")
    assert (row["measure"], row["change"], compared.returncode) == (
        "bandwidth",
        "equivalent",
        0,
    ), compared.stdout
    assert len(operator.measured()) == 4
    eventually(lambda: not operator.get("iperfs,jobs,pods")["items"])


def test_names_that_no_job_can_have_are_refused_at_admission(operator: Operator) -> None:
    for kind, name in (("IPerf", "x" * 41), ("BenchmarkSet", "x" * 41), ("IPerf", "a.b")):
        with pytest.raises(CommandFailed, match="characters at most"):
            operator.apply(
                kind, name, {"template": {"kind": "IPerf"}} if kind == "BenchmarkSet" else {}
            )


def test_benchmarks_that_share_no_node_run_side_by_side(operator: Operator) -> None:
    # given all pairs of four nodes, and benchmarks that do not end by themselves
    pairs = {"combinations": {"length": 2, "source": {"nodes": {"selector": {}}}}}
    template = {"kind": "IPerf", "spec": {"duration": 5, "placement": "differentNodes"}}
    spec = {
        "template": template,
        "permutations": {"product": {"nodes": pairs}},
        "parallelism": "nodeDisjoint",
    }
    operator.apply("BenchmarkSet", "slow", spec)

    def running() -> dict[str, set[str]]:
        """Where the parts of those that measure are."""
        rows = operator.get("iperfs")["items"]
        live = {
            row["metadata"]["name"]
            for row in rows
            if row.get("status", {}).get("phase") == "Running"
        }
        nodes_used: dict[str, set[str]] = {name: set() for name in live}
        for pod in operator.get("pods")["items"]:
            if pod["metadata"]["labels"]["scaletest.dev/benchmark"] in live:
                nodes_used[pod["metadata"]["labels"]["scaletest.dev/benchmark"]].add(
                    pod["spec"]["nodeName"]
                )
        return nodes_used

    nodes = [node["metadata"]["name"] for node in operator.get("nodes")["items"]]
    a, b, c, d = sorted(nodes)
    for first, second in (
        ({"slow-1": {a, b}}, {"slow-6": {c, d}}),
        ({"slow-2": {a, c}}, {"slow-5": {b, d}}),
    ):
        # expect two, which share no node, and no third
        eventually(lambda wanted={**first, **second}: running() == wanted)
        assert operator.status("benchmarkset", "slow")["running"] == 2
        # when both are over
        for name in (*first, *second):
            operator.kubectl("delete", "job", f"{name}-client")
    eventually(lambda: operator.status("benchmarkset", "slow")["failed"] == 4)


def test_peers_talk_over_the_network_of_multus_or_the_benchmark_fails(operator: Operator) -> None:
    # given a network of Multus, which tells each pod's address there when it likes
    def annotations(address: str) -> dict[str, str]:
        rows = [
            {"name": "cbr0", "ips": ["10.9.9.9"]},
            {"name": "default/sriov", "interface": "net1", "ips": [address]},
        ]
        return {"k8s.v1.cni.cncf.io/network-status": json.dumps(rows)}

    def pods(name: str) -> list[str]:
        rows = operator.kubectl(
            "get", "pods", "-l", f"scaletest.dev/benchmark={name}", "-o", "name"
        ).split()
        return [row.removeprefix("pod/") for row in sorted(rows)]

    for name, used, phase in (
        ("right", "198.18.7.2", "Completed"),
        ("wrong", "10.9.9.9", "Failed"),
    ):
        client = {"annotations": {"test/address": used, **annotations("198.18.7.2")}}
        operator.apply(
            "IPerf", name, {"duration": 5, "networkName": "default/sriov", "client": client}
        )
        # when the server has its address there
        eventually(
            lambda name=name: operator.status("iperf", name).get("pods", {}).get("server"), 60
        )
        (server,) = pods(name)
        note = {"metadata": {"annotations": annotations("198.18.7.1")}}
        operator.kubectl("patch", "pod", server, "--type=merge", "-p", json.dumps(note))
        # expect the client made with that one, not the cluster's
        eventually(lambda name=name: len(pods(name)) == 2)
        peers = operator.get("configmap", f"{name}-peers")["data"]
        assert [peer["address"] for peer in json.loads(peers["peers.json"])] == ["198.18.7.1"]
        assert "198.18.7.1 " in peers["hosts"]
        # and its result taken when it was measured from there, and only then
        eventually(
            lambda name=name, phase=phase: operator.status("iperf", name).get("phase") == phase, 60
        )
    status = operator.status("iperf", "wrong")
    assert (status["failure"], "10.9.9.9" in status["message"]) == ("mismatch", True)

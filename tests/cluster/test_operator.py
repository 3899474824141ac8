"""Benchmarks as objects, on fake nodes with scripted results: phases, sets, kill -9, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.kubernetes import ControlPlane
from scaletest.kinds.crd import definitions
from tests.cluster.conftest import needs_own
from tests.conftest import eventually

pytestmark = needs_own
MADE = "jobs,pods,services,configmaps"
API = "scaletest.dev/v1alpha1"


class Operator:
    """The operator as a process of this machine, in one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane, self.namespace, self._folder = plane, namespace, folder
        self.journal = folder / "journal"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        line = [sys.executable, "-m", "tests.cluster.operator_process", self.namespace, str(self.journal)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                line, env={**os.environ, "KUBECONFIG": str(self._plane.kubeconfig)}, stdout=log, stderr=log
            )

    def end(self, number: int = signal.SIGTERM) -> None:
        if self._process:
            self._process.send_signal(number)
            self._process.wait(60)
        self._process = None

    def kubectl(self, *arguments: str) -> str:
        return self._plane.kubectl("-n", self.namespace, *arguments)

    def get(self, what: str, name: str = "") -> Any:
        return json.loads(self.kubectl("get", what, *filter(None, [name]), "-o", "json"))

    def apply(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        body = {"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": self.namespace}, "spec": spec}
        self._plane.apply([body])

    def status(self, what: str, name: str) -> dict[str, Any]:
        found = self.get(what, name).get("status", {})
        assert isinstance(found, dict)
        return found

    def measured(self) -> list[list[str]]:
        """Benchmark and pod of every measurement, once each."""
        rows = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [row.split() for row in sorted(set(rows))]


@pytest.fixture(scope="module", autouse=True)
def defined(plane: ControlPlane) -> Iterator[None]:
    """Our definitions."""
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(definitions()))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    yield


@pytest.fixture
def operator(plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Operator]:
    """One that runs."""
    one = Operator(plane, namespace, tmp_path)
    one.start()
    yield one
    one.end()
    # what has a finalizer goes only while an operator is there; the test is over
    for what in ("iperfs", "benchmarksets"):
        for row in one.get(what)["items"]:
            clear = json.dumps({"metadata": {"finalizers": None}})
            one.kubectl("patch", what, row["metadata"]["name"], "--type=merge", "-p", clear)


def test_a_benchmark_goes_through_its_phases_and_shows_its_headline(operator: Operator) -> None:
    # given nobody who measures; when a benchmark is asked for
    operator.apply("IPerf", "one", {"duration": 5, "streams": 1})
    # expect it measured, and what kubectl prints
    eventually(lambda: operator.status("iperf", "one").get("phase") == "Completed", 90)
    found = operator.status("iperf", "one")
    assert found["headlines"] == {"bandwidth": "5.000 Gbit/s", "retransmits": "3"}
    assert found["summary"] == "5.000 Gbit/s"
    assert {one["type"]: one["status"] for one in found["conditions"]} == {"Complete": "True", "Failed": "False"}
    assert "5.000 Gbit/s" in operator.kubectl("get", "iperf", "one")
    reasons = [one["reason"] for one in operator.get("events")["items"] if one["involvedObject"]["kind"] == "IPerf"]
    assert {"Preparing", "Completed"} <= set(reasons)
    # and of what it made only the result
    eventually(lambda: not operator.get("jobs,pods,services")["items"], 60)
    assert len(operator.measured()) == 1


def test_deleting_a_set_removes_everything_that_it_made(operator: Operator) -> None:
    before = sorted(one["metadata"]["name"] for one in operator.get(MADE)["items"])
    spec = {"template": {"kind": "IPerf", "spec": {"duration": 5}}, "permutations": {"product": {"streams": [1, 2]}}}
    # given a set of which one has ended
    operator.apply("BenchmarkSet", "set", spec)
    eventually(lambda: operator.status("benchmarkset", "set").get("succeeded"), 90)
    # when it is deleted
    operator.kubectl("delete", "benchmarkset", "set", "--timeout=60s")
    # expect nothing left but the lock
    eventually(lambda: not operator.get("iperfs")["items"], 60)
    eventually(lambda: sorted(one["metadata"]["name"] for one in operator.get(MADE)["items"]) == before, 60)

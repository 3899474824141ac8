"""Deletion costs against an API server that is made here: what is written, when, and what its
refusals do.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client, Queues
from scaletest.broker.snapshot import WorkerState
from scaletest.cluster.connection import Busy
from scaletest.cluster.deletion import ANNOTATION, DeletionCosts, cost, costs
from scaletest.model import Request
from tests.conftest import Gate, call_here, eventually, program, wait_for


class ApiServer(ThreadingHTTPServer):
    """Pods of one namespace. `refuse` is a status to answer instead."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pods: dict[str, dict[str, str]] = {}
        self.patches: list[tuple[str, str]] = []
        self.refuse = 0
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        *_, namespaces, namespace, pods, name = self.path.split("?")[0].split("/")
        with self.server.lock:
            if (namespaces, namespace, pods) != (
                "namespaces",
                "scale",
                "pods",
            ) or name not in self.server.pods:
                self.answer(404, {"kind": "Status", "code": 404})
            elif "merge-patch+json" not in self.headers["Content-Type"]:
                self.answer(415, {})
            elif self.server.refuse:
                self.answer(self.server.refuse, {"kind": "Status"})
            else:
                self.server.pods[name].update(body["metadata"]["annotations"])
                self.server.patches.append((name, body["metadata"]["annotations"][ANNOTATION]))
                self.answer(200, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def api() -> Iterator[ApiServer]:
    server = ApiServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def environment(api: ApiServer, tmp_path: Path) -> dict[str, str]:
    """A kubeconfig for that server, as an environment."""
    import os

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{api.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "scale"}}
        ],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return {**os.environ, "KUBECONFIG": str(path)}


def test_a_busy_pod_costs_more_and_is_written_when_that_changes(
    client: Client,
    start: Any,
    api: ApiServer,
    environment: dict[str, str],
    url: str,
    queues: Queues,
    gate: Gate,
) -> None:
    # given two workers in pods, one of them busy
    api.pods = {"pod-a": {}, "pod-b": {}}
    for pod in api.pods:
        start("--pod-env", "POD", "--", *gate.command, env={**environment, "POD": pod})
    client.submit_one(Request(client.new_id(), "q"))
    eventually(lambda: queues.state("q").running == 1)
    line = program("cluster", "deletion-cost", "--redis-url", url, "--interval", "0.1")
    keeper = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)
    # expect idle 0 and busy high, each written once
    eventually(lambda: len(api.patches) >= 2)
    assert sorted(value == "0" for _, value in api.patches) == [False, True]
    busy = next(name for name, value in api.patches if value != "0")
    assert 1_000_000_000 < int(api.pods[busy][ANNOTATION]) < 2**31
    # when the request ends, expect that pod written again, and nothing else for a while
    gate.open()
    wait_for(client, 1)
    eventually(lambda: len(api.patches) >= 3)
    assert api.patches[2:] == [(busy, "0")]
    keeper.terminate()
    keeper.communicate(timeout=60)
    assert keeper.returncode == 0
    assert len(api.patches) == 3


def test_the_exporter_writes_deletion_costs_too(
    client: Client, start: Any, api: ApiServer, environment: dict[str, str], url: str
) -> None:
    api.pods = {"pod-a": {}}
    start("--pod-env", "POD", env={**environment, "POD": "pod-a"})
    line = program(
        "exporter",
        "--redis-url",
        url,
        "--listen",
        "127.0.0.1:0",
        "--heartbeat",
        "0.2",
        "--deletion-cost",
    )
    exporter = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)
    eventually(lambda: api.patches == [("pod-a", "0")])
    exporter.terminate()
    exporter.communicate(timeout=60)
    assert exporter.returncode == 0


def test_failed_writes_of_deletion_costs_are_reported(
    start: Any, api: ApiServer, environment: dict[str, str], url: str, tmp_path: Path
) -> None:
    line = ("cluster", "deletion-cost", "--redis-url", url, "--once")
    assert call_here(*line, env=environment).stdout == "0 pods written\n"
    start("--pod-env", "POD", env={**environment, "POD": "pod-a"})
    assert call_here(*line, env=environment).stdout == "0 pods written\n"  # there is no such pod
    api.pods = {"pod-a": {}}
    assert call_here(*line, env=environment).stdout == "1 pods written\n"
    api.refuse = 403
    forbidden = call_here(*line, env=environment)
    assert forbidden.returncode == 7
    assert "right to patch pods" in forbidden.stderr
    api.refuse = 429
    later = call_here(*line, env=environment)
    assert (later.returncode, later.stdout) == (7, "0 pods written\n")
    assert "1 pods could not be written" in later.stderr
    api.refuse = 422
    never = call_here(*line, env=environment)
    assert (never.returncode, never.stdout) == (0, "0 pods written\n")
    assert "422" in never.stderr
    nothing = call_here(*line, env={**environment, "KUBECONFIG": str(tmp_path / "none")})
    assert nothing.returncode == 7
    assert "no Kubernetes cluster is configured" in nothing.stderr


class Recorder:
    """Takes annotations down."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str]] = []

    def annotate(self, name: str, annotations: dict[str, str]) -> None:
        self.written.append((name, annotations[ANNOTATION]))


def test_the_rate_is_kept_and_busy_pods_come_first() -> None:
    now = [0.0]
    pods = Recorder()
    keeper = DeletionCosts(pods.annotate, per_s=2.0, clock=lambda: now[0])
    wanted = {f"p{number}": number % 2 * 100 for number in range(8)}
    assert keeper.update(wanted) == 2
    now[0] = 1.0
    assert keeper.update(wanted) == 2
    assert [value for _, value in pods.written] == ["100"] * 4
    now[0] = 100.0  # what was not used is not saved for ever
    assert keeper.update(wanted) == 2
    now[0] = 101.0
    assert keeper.update(wanted) == 2
    now[0] = 102.0
    assert keeper.update(wanted) == 0
    # a pod that went and came back is written again
    assert keeper.update({}) == 0
    assert keeper.update({"p0": 0}) == 1


def test_a_rate_below_one_a_second_is_kept() -> None:
    now = [0.0]
    pods = Recorder()
    keeper = DeletionCosts(pods.annotate, per_s=0.1, clock=lambda: now[0])
    wanted = {"a": 0, "b": 0}
    assert keeper.update(wanted) == 1
    now[0] = 9.0
    assert keeper.update(wanted) == 0
    now[0] = 11.0
    assert keeper.update(wanted) == 1


def test_a_pod_that_always_fails_keeps_no_other_waiting() -> None:
    class Picky(Recorder):
        def annotate(self, name: str, annotations: dict[str, str]) -> None:
            if name == "broken":
                raise Busy("500")
            super().annotate(name, annotations)

    pods = Picky()
    keeper = DeletionCosts(pods.annotate)
    wanted = {"broken": 300, "a": 200, "b": 0}
    assert (keeper.update(wanted), keeper.left) == (0, 3)
    assert (keeper.update(wanted), keeper.left) == (2, 1)
    assert pods.written == [("a", "200"), ("b", "0")]


def test_the_deletion_cost_grows_with_the_time_that_a_pod_has_worked() -> None:
    now_s = 1_790_000_000.0
    assert 0 < cost(now_s) < cost(now_s - 1) < 2**31
    assert 0 < cost(None) < 2**31
    cost_of = costs(
        [
            WorkerState("w", True, False, "a", started_s=now_s),
            WorkerState("w", False, False, "a"),
            WorkerState("w", False, False, "b"),
            WorkerState("w", True, False, "../x"),
            WorkerState("w", True, False, ""),
        ]
    )
    assert cost_of == {"a": cost(now_s), "b": 0}

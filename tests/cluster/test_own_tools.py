"""Our own tools for clusters: what is read without kubectl is what kubectl prints, and processes
that hack/cluster runs for pods on fake nodes end with it.
"""

import json
import os
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from hack.kubernetes import ControlPlane, tool
from hack.kubernetes.reader import ObjectReader
from tests.cluster.conftest import needs_own
from tests.conftest import eventually

CALLS = [
    "get nodes -o json",
    "get node plain-0 -o json",
    "-n kube-system get configmaps,sa -o json",
    "get endpointslices.discovery.k8s.io -A -o json",
    "-n default get svc kubernetes -o json",
    "get clusterrole -l kubernetes.io/bootstrapping=rbac-defaults -o json",
    "get events -A -o json",
    "get scaledobjects -A -o json",
    "get --raw /readyz",
]
# Errors, other forms, several names.
LEFT = [
    "get nodes",
    "get node none -o json",
    "get none -o json",
    "get pod a b -o json",
    "get nodes -o name",
]
LEFT += [
    "get nodes --watch -o json",
    "delete pod a -o json",
    "get node/plain-0 -o json",
    "get -o json",
    "get --raw /no",
]


@pytest.fixture
def reader(plane: ControlPlane) -> ObjectReader:
    return plane.reader()


@needs_own
@pytest.mark.parametrize("call", CALLS)
def test_the_reader_answers_as_kubectl_does(
    plane: ControlPlane, reader: ObjectReader, call: str
) -> None:
    def kubectl() -> str:
        line = [tool("kubernetes", "kubectl"), f"--kubeconfig={plane.kubeconfig}", *call.split()]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    # the cluster goes on: twice the same is what there was meanwhile
    for _ in range(20):
        before, answer, after = kubectl(), reader(call.split()), kubectl()
        if before == after:
            break
    assert answer is not None
    assert answer == before if "--raw" in call else json.loads(answer) == json.loads(before)


@needs_own
@pytest.mark.parametrize("call", LEFT)
def test_the_reader_leaves_other_commands_to_kubectl(reader: ObjectReader, call: str) -> None:
    assert reader(call.split()) is None


def marked(mark: str) -> list[int]:
    """The processes of this machine with that text in their environment."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it ended meanwhile
            if mark.encode() in path.read_bytes():
                processes.append(int(path.parent.name))
    return processes


@needs_own
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_processes_of_the_pods_too(
    plane: ControlPlane, namespace: str, tmp_path: Path, number: signal.Signals
) -> None:
    mark = uuid.uuid4().hex
    # where hack/cluster looks for this user's cluster and tools
    cache = tmp_path / "scaletest"
    cache.mkdir()
    (cache / "cluster").symlink_to(plane.folder)
    (cache / "tools").symlink_to(Path(tool("kubernetes", "")).parent)
    line = [sys.executable, "-m", "hack.kubernetes", "pods", namespace]
    command = subprocess.Popen(line, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    try:
        plane.apply([_pod(namespace, mark)])
        eventually(lambda: marked(mark) or command.poll() is not None)
        command.send_signal(number)
        assert command.wait() == 0
        assert marked(mark) == []
    finally:
        command.kill()
        command.wait()


def _pod(namespace: str, mark: str) -> dict[str, object]:
    """A pod that serves a page until it is ended."""
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "ui",
        "image": "scaletest",
        "args": ["ui", "--listen", "127.0.0.1:0"],
        "env": [{"name": "MARK", "value": mark}],
        "securityContext": restricted,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ui", "namespace": namespace},
        "spec": {"containers": [container]},
    }

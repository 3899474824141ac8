"""What is read without kubectl is what kubectl prints."""

from __future__ import annotations

import json
import subprocess

import pytest

from hack.kubernetes import ControlPlane, tool
from hack.kubernetes.reader import ObjectReader
from tests.cluster.conftest import needs_own

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

"""Objects of kube-perftest's API group, as its README has them, on fake nodes with scripted
results.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.kubernetes import ControlPlane
from scaletest.benchmarks.documents.custom_resources import make_definitions
from tests.cluster.benchmarks.test_operator import ACCOUNT, Operator
from tests.cluster.charts import CHART, objects, render
from tests.cluster.conftest import Helm, established, helm_program, kubeconfig_of, needs_own
from tests.conftest import eventually
from tests.unit.benchmarks.test_kube_perftest import DOCUMENTS, FILE, GROUP

pytestmark = needs_own
PLURALS = {
    each["spec"]["names"]["kind"]: each["spec"]["names"]["plural"]
    for each in make_definitions(GROUP)
}


@pytest.fixture(scope="module", autouse=True)
def defined(plane: ControlPlane) -> Iterator[None]:
    """Our definitions, and theirs while tests need them: they have the same short names."""
    every = make_definitions(GROUP)
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(every))
    established(plane)
    yield
    names = [each["metadata"]["name"] for each in every if each["spec"]["group"] == GROUP]
    # until it is done, their short names stand for ours, too
    plane.kubectl("delete", "crd", *names, "--timeout=120s")


@pytest.fixture
def operator(
    plane: ControlPlane, namespace: str, main_helm: Helm, tmp_path: Path
) -> Iterator[Operator]:
    """One with the rights that the chart gives for their group, and no others."""
    values = f"operator.enabled=true,operator.crds=false,operator.perftestGroup={GROUP}"
    main_helm("install", "bench", str(CHART), "-n", namespace, "--set", values)
    operator = Operator(plane, namespace, tmp_path)
    operator.perftest_group = GROUP
    operator.kubeconfig = kubeconfig_of(plane, namespace, ACCOUNT, tmp_path)
    operator.start()
    yield operator
    operator.end()
    assert "forbidden" not in (tmp_path / "log").read_text("utf-8").lower()


def theirs(document: dict[str, Any]) -> str:
    return f"{PLURALS[document['kind']]}.{GROUP}"


def change_nodes(plane: ControlPlane, nodes: list[Any], gpus: str | None) -> None:
    """Give the nodes so many GPUs and an address each; with None take both away again."""
    amount = {"nvidia.com/gpu": gpus}
    for number, node in enumerate(nodes):
        address = {"type": "InternalIP", "address": f"10.9.0.{number + 1}"}
        addresses = [address] if gpus else node["status"].get("addresses")
        status = {"capacity": amount, "allocatable": amount, "addresses": addresses}
        body, name = json.dumps({"status": status}), node["metadata"]["name"]
        plane.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", body)


@pytest.fixture
def equipped(plane: ControlPlane, namespace: str) -> Iterator[None]:
    """What the documents ask for: nodes with addresses for hostNetwork, which `restricted` refuses,
    two GPUs, and a volume of the class csi-cinder. Other tests on this plane find it as it was.
    """
    level = "pod-security.kubernetes.io/enforce=privileged"
    plane.kubectl("label", "namespace", namespace, "--overwrite", level)
    nodes = json.loads(plane.kubectl("get", "nodes", "-o", "json"))["items"]
    change_nodes(plane, nodes, "2")
    volume = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "csi-cinder",
        "hostPath": {"path": "/none"},
    }
    meta = {"name": "kube-perftest"}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": volume}
    plane.apply([body])
    yield
    change_nodes(plane, nodes, None)
    plane.kubectl("delete", "persistentvolume", "kube-perftest", "--wait=false")


def test_every_document_of_the_readme_is_measured_by_the_operator(
    equipped: None, operator: Operator
) -> None:
    # given a cluster with what they ask for; when the documents are applied as they are
    operator.kubectl("apply", "-f", str(FILE))
    # expect each of them ended, with a result in its own status
    for document in DOCUMENTS:
        kind, name = theirs(document), document["metadata"]["name"]
        eventually(lambda k=kind, n=name: "finishedAt" in operator.status(k, n), 300)
        assert operator.status(kind, name)["phase"] == "Completed", operator.status(kind, name)
    status = operator.status(f"iperfs.{GROUP}", "iperf")
    assert status["summary"] == "5.000 Gbit/s"
    assert operator.status(f"benchmarksets.{GROUP}", "iperf")["succeeded"] == 15
    assert "5.000 Gbit/s" in operator.kubectl("get", f"iperfs.{GROUP}", "iperf", "-o", "wide")
    # and ours deleted with them
    for document in DOCUMENTS:
        operator.kubectl("delete", theirs(document), document["metadata"]["name"], "--timeout=60s")
    ours = ",".join(f"{plural}.scaletest.dev" for plural in PLURALS.values())
    eventually(lambda: not operator.get(ours)["items"])


def test_the_chart_has_their_definitions_and_settings() -> None:
    values = f"enabled=true,perftestGroup={GROUP},pullPolicy=Always,scheduler=mine"
    pairs = ",".join(f"operator.{pair}" for pair in (*values.split(","), "imagePrefix=host/tests/"))
    rows = objects(render(helm_program(), "--set", pairs))
    definitions_ = {
        row["metadata"]["name"]: row["spec"]
        for row in rows
        if row["kind"] == "CustomResourceDefinition"
    }
    assert definitions_ == {
        each["metadata"]["name"]: each["spec"] for each in make_definitions(GROUP)
    }
    (operator,) = [
        row["spec"]["template"]["spec"]["containers"][0]["args"]
        for row in rows
        if row["kind"] == "Deployment" and row["metadata"]["name"].endswith("-operator")
    ]
    settings = {f"--perftest-group={GROUP}", "--pull-policy=Always", "--scheduler=mine"}
    assert settings <= set(operator)
    assert operator[1].startswith("--image=host/tests/scaletest-benchmarks:")

"""Manifests of a benchmark: image, placement and claims."""

from typing import Any

import pytest

from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.objects import manifests
from scaletest.cluster.objects import Document
from tests.unit.fake_cluster import pod_of


def test_10_an_image_and_a_pull_policy_that_are_given_are_used() -> None:
    iperf = benchmark.read_benchmark(
        {"kind": "IPerf", "spec": {"image": "mine", "imagePullPolicy": "Never"}}
    )
    container = pod_of(iperf, "client")["containers"][0]
    assert (container["image"], container["imagePullPolicy"]) == ("mine", "Never")


@pytest.mark.parametrize("name", KINDS)
def test_the_first_process_of_every_part_is_the_init_of_its_image(name: str) -> None:
    planned = benchmark.read_benchmark({"kind": name})
    for part in planned.kind.layout(planned.spec):
        # a command would take its place; the arguments follow it
        for container in pod_of(planned, part.role)["containers"]:
            assert "command" not in container and container["args"]


@pytest.mark.parametrize(
    ("placement", "rule"),
    [
        ("sameNode", "podAffinity"),
        ("differentNodes", "podAntiAffinity"),
        ("spread", "podAntiAffinity"),
    ],
)
def test_placement_becomes_an_affinity_of_pods(placement: str, rule: str) -> None:
    iperf = benchmark.read_benchmark(
        {"kind": "IPerf", "spec": {"placement": placement, "nodes": ["a", "b"]}}
    )
    affinity = pod_of(iperf, "client")["affinity"]
    ((strength, _),) = affinity[rule].items()
    assert strength.startswith("preferred" if placement == "spread" else "required")
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert terms[0]["matchExpressions"][0]["values"] == (
        ["a"] if placement == "sameNode" else ["b"]
    )


def test_fio_gets_shared_ephemeral_or_host_volumes() -> None:
    def scratch(**spec: Any) -> tuple[Document, Document | None]:
        fio = benchmark.read_benchmark({"kind": "Fio", "spec": spec})
        volumes = {row["name"]: row for row in pod_of(fio, "worker")["volumes"]}
        return volumes["scratch"], manifests.claim(fio, {"uid": "u"})

    many, once = {"accessModes": ["ReadWriteMany"]}, {"accessModes": ["ReadWriteOnce"]}
    shared, claim = scratch(volumeClaimTemplate=many)
    assert (
        claim is not None
        and shared["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    )
    own, claim = scratch(volumeClaimTemplate=once)
    assert claim is None and own["ephemeral"]["volumeClaimTemplate"]["spec"] == once
    hosted, claim = scratch(volume={"hostPath": {"path": "/data"}})
    assert claim is None and hosted["hostPath"] == {"path": "/data"}
    assert scratch() == ({"name": "scratch", "emptyDir": {}}, None)

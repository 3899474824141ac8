"""The chart on a real API server: it goes in without a warning, keeps its password, and leaves only volumes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hack.kubernetes import ControlPlane
from tests.cluster.conftest import CHART, Helm

EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
# Only as a claim is an NFS volume restricted; the example says so.
OUTSIDE_RESTRICTED = {"intel-media"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_install_without_a_warning(helm: Helm, namespace: str, example: Path) -> None:
    # given a namespace that warns of whatever is not restricted
    done = helm("install", "bench", str(CHART), "-n", namespace, "-f", str(example))
    # expect silence
    if example.stem in OUTSIDE_RESTRICTED:
        assert done.stderr.count("Warning") == 1
        assert "nfs" in done.stderr
    else:
        assert done.stderr == ""


def test_an_upgrade_keeps_the_passwords(helm: Helm, plane: ControlPlane, namespace: str) -> None:
    def passwords() -> dict[str, str]:
        found = json.loads(plane.kubectl("-n", namespace, "get", "secret", "bench-redis", "-o", "json"))
        return dict(found["data"])

    helm("install", "bench", str(CHART), "-n", namespace)
    before = passwords()
    helm("upgrade", "bench", str(CHART), "-n", namespace, "--set", "queues.more.note=x")
    assert passwords() == before
    assert len(before) == 6


def test_an_uninstall_leaves_volumes_only(helm: Helm, plane: ControlPlane, namespace: str) -> None:
    kinds = "deployments,statefulsets,cronjobs,services,configmaps,secrets,serviceaccounts,roles,rolebindings,pvc"
    kinds += ",networkpolicies,poddisruptionbudgets,scaledobjects,scaledjobs,triggerauthentications,servicemonitors"

    def names() -> set[str]:
        return set(plane.kubectl("-n", namespace, "get", kinds, "-o", "name").split())

    before = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
    helm("install", "bench", str(CHART), "-n", namespace, "-f", str(CHART / "examples" / "scale-to-zero.yaml"))
    assert "deployment.apps/bench-scaletest-sleep" in names()
    helm("uninstall", "bench", "-n", namespace, "--wait")
    assert names() - before == {"persistentvolumeclaim/data-bench-redis-0"}

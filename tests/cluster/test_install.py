"""The chart on a real API server: it goes in without a warning, keeps its password, and leaves only
volumes.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane
from scaletest.cli.main import cli
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, needs_own, restricted
from tests.conftest import eventually

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
    # and notes with commands that there are
    lines = re.findall(r"scaletest (validate|cluster check)( .*)", done.stdout.split("NOTES:")[1])
    assert lines
    for name, arguments in lines:
        arguments_left = [*name.split(), *arguments.split()]
        command: Any = cli
        while hasattr(command, "get_command"):
            command = command.get_command(None, arguments_left.pop(0))
        assert command.make_context(name, arguments_left).params["namespace"] == namespace


@pytest.mark.parametrize("options", [[], ["--reuse-values"]], ids=["", "reuse"])
def test_an_upgrade_keeps_the_passwords(
    helm: Helm, plane: ControlPlane, namespace: str, options: list[str]
) -> None:
    def passwords() -> dict[str, str]:
        secret = json.loads(
            plane.kubectl("-n", namespace, "get", "secret", "bench-redis", "-o", "json")
        )
        # beside them it holds their generation, which starts pods again when passwords change
        return {name: value for name, value in secret["data"].items() if name != "generation"}

    helm("install", "bench", str(CHART), "-n", namespace, "--set", "queues.first.note=x")
    old = passwords()
    assert len(old) == 7
    volumes = plane.kubectl(
        "-n", namespace, "get", "statefulset", "-o", "jsonpath={.items[*].metadata.uid}"
    )
    # when it is upgraded
    done = helm(
        "upgrade", "bench", str(CHART), "-n", namespace, "--set", "queues.more.note=x", *options
    )
    # expect silence, the same users, the same StatefulSet, and the values given before only with
    # --reuse-values
    assert done.stderr == ""
    new = passwords()
    assert new == old
    assert (
        plane.kubectl(
            "-n", namespace, "get", "statefulset", "-o", "jsonpath={.items[*].metadata.uid}"
        )
        == volumes
    )
    names = plane.kubectl("-n", namespace, "get", "deployments", "-o", "name").split()
    assert "deployment.apps/bench-scaletest-more-worker" in names
    assert ("deployment.apps/bench-scaletest-first-worker" in names) is bool(options)
    # when it is taken back
    assert helm("rollback", "bench", "1", "-n", namespace).stderr == ""
    assert passwords() == old


def test_an_uninstall_leaves_only_volumes(helm: Helm, plane: ControlPlane, namespace: str) -> None:
    kinds = "deployments,statefulsets,cronjobs,services,configmaps,secrets,serviceaccounts,roles"
    kinds += ",rolebindings,pvc,networkpolicies,poddisruptionbudgets,scaledobjects,scaledjobs"
    kinds += ",triggerauthentications,servicemonitors"

    def names() -> set[str]:
        return set(plane.kubectl("-n", namespace, "get", kinds, "-o", "name").split())

    before = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
    helm(
        "install",
        "bench",
        str(CHART),
        "-n",
        namespace,
        "-f",
        str(CHART / "examples" / "scale-to-zero.yaml"),
    )
    assert "deployment.apps/bench-scaletest-sleep-worker" in names()
    helm("uninstall", "bench", "-n", namespace, "--wait")
    assert names() - before == {"persistentvolumeclaim/data-bench-redis-0"}


@pytest.fixture
def undefined(plane: ControlPlane) -> Iterator[None]:
    """No definitions of ours, before and after."""

    def definitions() -> list[str]:
        return [
            name
            for name in plane.kubectl("get", "crd", "-o", "name").split()
            if name.endswith(".scaletest.dev")
        ]

    def clear() -> None:
        if names := definitions():
            plane.kubectl(
                "delete", "--wait=false", *names
            )  # its own wait was seen to last for ever
            eventually(lambda: not definitions())

    clear()
    yield
    clear()


@needs_own
def test_two_releases_share_the_definitions_of_benchmarks(
    helm: Helm, plane: ControlPlane, namespace: str, undefined: None
) -> None:
    def owners() -> set[str]:
        rows = json.loads(plane.kubectl("get", "crd", "-o", "json"))["items"]
        marks = [
            row["metadata"]["annotations"]
            for row in rows
            if row["spec"]["group"] == "scaletest.dev"
        ]
        return {annotations["meta.helm.sh/release-name"] for annotations in marks}

    # given a release without an operator, upgraded to one with it
    helm("install", "one", str(CHART), "-n", namespace)
    wanted = ["--set", "operator.enabled=true"]
    assert (
        helm("upgrade", "one", str(CHART), "-n", namespace, "--reuse-values", *wanted).stderr == ""
    )
    assert owners() == {"one"}
    limits = plane.kubectl("-n", namespace, "get", "deploy", "one-scaletest-operator", "-o", "json")
    assert json.loads(limits)["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    # when another release wants them too, is upgraded, and the first one goes
    second = restricted(plane)
    try:
        done = helm("install", "two", str(CHART), "-n", second, *wanted)
        assert done.stderr == "" and f"({namespace} / one)" in done.stdout
        helm("uninstall", "one", "-n", namespace)
        helm("upgrade", "two", str(CHART), "-n", second, "--reuse-values")
        # expect them as they were, so that no benchmark went
        assert owners() == {"one"}
    finally:
        plane.kubectl("delete", "namespace", second, "--wait=false")

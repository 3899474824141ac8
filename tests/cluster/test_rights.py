"""What a validation needs: exactly the documented roles, and each verb that is missing is named.

Everything is asked with the token of the chart's own service account. Which rules it has, the tests
change.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane
from scaletest.broker import Queues
from tests.cluster.charts import CHART, ROOT
from tests.cluster.conftest import Helm, helm_program, kubeconfig_of, needs_own, restricted
from tests.conftest import eventually, program

ROLE, ACCOUNT = "bench-scaletest-validate", "bench-scaletest-validate"
NEEDED = [
    "get deployments.apps",
    "patch deployments.apps",
    "list pods",
    "list horizontalpodautoscalers.autoscaling",
    "get horizontalpodautoscalers.autoscaling",
    "patch horizontalpodautoscalers.autoscaling",
    "get services/proxy",
    "list scaledobjects.keda.sh",
    "get scaledobjects.keda.sh",
    "patch scaledobjects.keda.sh",
]
USEFUL = ["list events", "get pods/log", "list resourcequotas"]
CLUSTER = [
    "list nodes",
    "list pods",
]


@pytest.fixture(scope="module")
def release(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """The chart with all its rights, for whose workers there is no node: its namespace, a
    kubeconfig of the account.
    """
    helm = Helm(plane, helm_program())
    name = restricted(plane)
    options = ["--set", "rbac.clusterRead=true", "--set", "queues.sleep.nodeSelector.colour=blue"]
    helm("install", "bench", str(CHART), "-n", name, *options)
    yield name, kubeconfig_of(plane, name, ACCOUNT, tmp_path_factory.mktemp("rights"))
    helm("uninstall", "bench", "-n", name)
    plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def without(plane: ControlPlane, release: tuple[str, Path]) -> Iterator[Any]:
    """Take one verb out of the role, or the cluster's role; it is put back afterwards."""
    name = release[0]
    before: list[tuple[tuple[str, ...], Any]] = []

    def take(right: str, *, everywhere: bool = False) -> None:
        role_arguments = (
            ("clusterrole", f"{name}-bench-scaletest-read")
            if everywhere
            else ("-n", name, "role", ROLE)
        )
        scope = role_arguments[:2] if role_arguments[0] == "-n" else ()
        kind, role = role_arguments[-2:]
        rules = json.loads(plane.kubectl(*scope, "get", kind, role, "-o", "json"))["rules"]
        left = [
            verb_rule for rule in rules for verb_rule in split(rule) if right_of(verb_rule) != right
        ]
        assert len(left) == sum(len(split(rule)) for rule in rules) - 1, f"the role has no {right}"
        before.append(((*scope, "patch", kind, role), rules))
        change(before[-1][0], left)

    def change(line: tuple[str, ...], rules: Any) -> None:
        plane.kubectl(*line, "--type=merge", "-p", json.dumps({"rules": rules}))

    yield take
    for line, rules in before:
        change(line, rules)


def split(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """One rule for each verb on each resource."""
    return [
        {"apiGroups": rule["apiGroups"], "resources": [resource], "verbs": [verb]}
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def right_of(rule: dict[str, Any]) -> str:
    group = rule["apiGroups"][0]
    return f"{rule['verbs'][0]} {rule['resources'][0]}" + (f".{group}" if group else "")


def scaletest(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(config)}
    done = subprocess.run(
        program(*arguments), capture_output=True, text=True, env=environment, check=False
    )
    assert "Traceback" not in done.stderr
    return done


def says(config: Path, *arguments: str, until: str) -> subprocess.CompletedProcess[str]:
    """Run it until it says so: the API server learns of a changed role a moment later."""
    return eventually(
        lambda: (
            (done := scaletest(config, *arguments)) and until in done.stderr + done.stdout and done
        )
    )


def test_the_roles_are_those_of_the_docs(plane: ControlPlane, release: tuple[str, Path]) -> None:
    name = release[0]
    page = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text("utf-8")
    rows = re.findall(
        r"^\| ([\w.]*) ?\| ([\w/]+) \| ([\w, ]+) \| .* \|$",
        page.split("## Rights")[1],
        re.MULTILINE,
    )
    documented = {
        f"{verb} {resource}" + (f".{group}" if group else "")
        for group, resource, verbs in rows
        for verb in verbs.split(", ")
    }
    rules = json.loads(plane.kubectl("-n", name, "get", "role", ROLE, "-o", "json"))["rules"]
    assert (
        {right_of(verb_rule) for rule in rules for verb_rule in split(rule)}
        == documented
        == {*NEEDED, *USEFUL}
    )
    rules = json.loads(
        plane.kubectl("get", "clusterrole", f"{name}-bench-scaletest-read", "-o", "json")
    )["rules"]
    assert {right_of(verb_rule) for rule in rules for verb_rule in split(rule)} == {*CLUSTER}


def test_check_finds_every_right(release: tuple[str, Path]) -> None:
    name, config = release
    done = scaletest(config, "cluster", "check", "-n", name, "--format", "json")
    assert done.returncode == 0, done.stderr
    check = json.loads(done.stdout)
    lacking = [row["right"] for row in check["rights"] if not row["allowed"]]
    assert lacking == []
    assert check["version"].startswith("v1.")
    table = scaletest(config, "cluster", "check", "-n", name).stdout
    assert "MISSING" not in table
    assert "namespace " + name in table


@pytest.mark.parametrize("right", NEEDED)
def test_a_needed_verb_that_is_missing_is_named_before_anything_changes(
    plane: ControlPlane, release: tuple[str, Path], without: Any, right: str, tmp_path: Path
) -> None:
    name, config = release
    without(right)
    if right in CLUSTER:
        without(right, everywhere=True)
    refused = says(
        config, "cluster", "check", "-n", name, until=f"we may not {right} in namespace {name}"
    )
    assert refused.returncode == 7
    assert re.search(rf"^  MISSING +{re.escape(right)} ", refused.stdout, re.MULTILINE)
    options = [
        "--deployment",
        "bench-scaletest-sleep-worker",
        "-n",
        name,
        "--client",
        "svc/bench-scaletest-sleep-client",
    ]
    done = scaletest(
        config, "validate", *options, "--pause-autoscalers", "--run-dir", str(tmp_path / "run")
    )
    assert done.returncode == 7, done.stderr
    assert f"we may not {right} in namespace {name}" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("right", USEFUL)
def test_a_useful_verb_that_is_missing_is_named_and_the_run_goes_on(
    plane: ControlPlane,
    release: tuple[str, Path],
    without: Any,
    right: str,
    tmp_path: Path,
    url: str,
    redis: Any,
) -> None:
    # given a pod that never starts
    name, config = release
    Queues(redis).add("sleep")
    without(right)
    says(config, "cluster", "check", "-n", name, until=f"no       {right} ")
    options = [
        "--deployment",
        "bench-scaletest-sleep-worker",
        "-n",
        name,
        "--redis-url",
        url,
        "--ready-timeout",
        "3",
    ]
    # when nobody may read nodes, so that it is tried
    without("list nodes", everywhere=True)
    says(config, "cluster", "check", "-n", name, until="no       list nodes")
    done = scaletest(
        config, "validate", *options, "--limit", "1", "--run-dir", str(tmp_path / "run")
    )
    # expect that the run says what it could not find out
    assert done.returncode == 6, done.stderr
    assert right.split()[1] in done.stderr


@pytest.mark.parametrize("right", CLUSTER)
def test_without_a_verb_in_the_whole_cluster_the_room_is_unknown(
    plane: ControlPlane, release: tuple[str, Path], without: Any, right: str
) -> None:
    name, config = release
    without(right, everywhere=True)
    options = ("-n", name, "--deployment", "bench-scaletest-sleep-worker")
    shown = says(
        config, "cluster", "check", *options, until=f"we may not {right} in all namespaces"
    )
    assert shown.returncode == 0
    assert "unknown how many workers fit" in shown.stdout


def deployed(
    plane: ControlPlane, namespace: str, name: str, limits: dict[str, Any], *arguments: str
) -> None:
    """A Deployment without pods, whose container would have these limits and arguments."""
    labels = {"app": name}
    container = {"name": "a", "image": "a", "resources": {"limits": limits}}
    pod = {"containers": [{**container, "args": list(arguments)}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": namespace}
    plane.apply([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}])


@needs_own
def test_check_says_how_many_workers_fit_and_what_limits_them(
    plane: ControlPlane, release: tuple[str, Path]
) -> None:
    # given workers that no node takes, and others that need a device and memory each
    name, config = release
    deployed(plane, name, "wide", {"gpu.intel.com/xe": 1, "memory": "1Gi"}, "worker")
    # when the cluster is checked, and with a quota
    for deployment, room in (
        ("bench-scaletest-sleep-worker", "0 workers fit; limited by the nodes"),
        ("wide", "4 workers fit; limited by the nodes (gpu.intel.com/xe)"),
    ):
        table = scaletest(config, "cluster", "check", "-n", name, "--deployment", deployment).stdout
        assert f"deployment {deployment}: {room}" in table
    plane.kubectl("-n", name, "create", "quota", "few", "--hard=requests.memory=3Gi")
    try:
        options = ("-n", name, "--deployment", "wide")
        says(config, "cluster", "check", *options, until="limited by quota few: requests.memory")
    finally:
        plane.kubectl("-n", name, "delete", "quota", "few")
        plane.kubectl("-n", name, "delete", "deployment", "wide")

"""What saturate and size do on a cluster: find a Service, hold autoscalers, change a Deployment and
back, Jobs.
"""

import json
import math
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane
from scaletest.cli import main
from scaletest.cluster.api_calls import Cluster, connect_cluster
from scaletest.cluster.changes import BEFORE, Changes
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.cluster.jobs import AgentJob
from scaletest.cluster.service import Service
from scaletest.cluster.tuning import Tuning
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.model.errors import UsageError, WaitTimeout
from scaletest.report import formats
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.judging import tester
from scaletest.saturation.measure import service_target
from scaletest.saturation.report.report import saturation_report
from scaletest.saturation.run_type import RUN_TYPE
from tests.conftest import call, eventually, program
from tests.integration.services import running


@pytest.fixture
def cluster(plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The namespace, with a Deployment of two pods behind a Service."""
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    labels = {"app": "model"}
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    asked = {"requests": {"cpu": "500m", "memory": "256Mi"}}
    container = {
        "name": "model",
        "image": "none",
        "args": ["--workers", "1"],
        "resources": asked,
        "securityContext": safe,
    }
    pod: dict[str, Any] = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [container],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    }
    about = {"name": "model", "namespace": namespace}
    plane.apply(
        [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": about,
                "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod},
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": about,
                "spec": {
                    "selector": labels,
                    "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
                },
            },
        ]
    )
    cluster = connect_cluster(namespace)
    eventually(lambda: Service(cluster, "svc/model").endpoints() == (2, 2))
    return cluster


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is measured again or refused because this machine was busy, and the tester late."""
    monkeypatch.setattr(tester, "LATE_S", math.inf)


def test_the_address_and_the_workload_of_a_service_are_read(cluster: Cluster) -> None:
    service = Service(cluster, "svc/model:http/score")
    assert (service.port, service.path) == ("80", "/score")
    assert service.url() == f"http://model.{cluster.namespace}.svc:80/score"
    deployment = service.deployment()
    assert deployment is not None and deployment.name == "model" and deployment.replicas() == 2
    url, headers, authority = service.proxy_access()
    assert url.endswith(f"/api/v1/namespaces/{cluster.namespace}/services/model:80/proxy/score")
    assert headers and authority
    with pytest.raises(UsageError, match="no port 81"):
        Service(cluster, "svc/model:81")


def test_a_deployment_is_tuned_and_restored(plane: ControlPlane, cluster: Cluster) -> None:
    def container() -> dict[str, Any]:
        row = json.loads(
            plane.kubectl("-n", cluster.namespace, "get", "deployment", "model", "-o", "json")
        )["spec"]
        return {**row["template"]["spec"]["containers"][0], "replicas": row["replicas"]}

    before = container()
    deployment = Deployment(cluster, "model")
    changes = Changes(cluster, deployment)
    scalers = Autoscalers(cluster, "model")
    tuning = Tuning(cluster, deployment, scalers, changes)
    assert tuning.resources() == (0.5, 256 * 2**20)
    tuning.apply({"cpu": "250m", "--workers": "4", "replicas": "3"})
    tuning.wait(200)
    now = container()
    assert now["resources"] == {
        "requests": {"cpu": "250m", "memory": "256Mi"},
        "limits": {"cpu": "250m"},
    }
    assert now["args"] == ["--workers", "4"] and now["replicas"] == 3
    changes.close()
    tuning.wait(200)
    assert container() == before


def test_only_what_was_tuned_is_put_back(plane: ControlPlane, cluster: Cluster) -> None:
    # given a tuning that changed CPU and a variable that was read from elsewhere, and added another
    def kubectl(*arguments: str) -> str:
        return plane.kubectl("-n", cluster.namespace, *arguments)

    def container() -> dict[str, Any]:
        spec = json.loads(kubectl("get", "deployment", "model", "-o", "json"))["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        return dict(container)

    kubectl("create", "configmap", "c", "--from-literal=WORKERS=1")
    kubectl("set", "env", "deployment/model", "FIRST=1", "LAST=1")
    kubectl("set", "env", "deployment/model", "--from=configmap/c")
    before = container()
    deployment = Deployment(cluster, "model")
    changes = Changes(cluster, deployment)
    scalers = Autoscalers(cluster, "model")
    for env in ("WORKERS", "ADDED"):
        tuning = Tuning(cluster, deployment, scalers, changes)
        tuning.apply({"cpu": "100m", env: "4"})
        assert {"name": env, "value": "4"} in container()["env"]
        # when somebody rolls out another image, and another tuning begins
        kubectl("set", "image", "deployment/model", f"model={env.lower()}")
        with pytest.raises(UsageError, match="and has not put it back"):
            other = Changes(cluster, deployment)
            Tuning(cluster, deployment, scalers, other).apply({"cpu": "200m"})
        changes.close()
        # expect that image, and all else as it was
        assert container() == {**before, "image": env.lower()}
    assert BEFORE not in Deployment(cluster, "model").annotations


def test_what_a_killed_tuning_left_refuses_the_next_and_is_put_back_on_request(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    # given an autoscaler, and a tuning that is killed while it waits for a pod that fits nowhere
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "model"}
    about = {"name": "model", "namespace": cluster.namespace}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9}
    plane.apply(
        [
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": about,
                "spec": spec,
            }
        ]
    )

    def state() -> list[Any]:
        rows = [
            json.loads(plane.kubectl("-n", cluster.namespace, "get", kind, "model", "-o", "json"))
            for kind in ("deployment", "hpa")
        ]
        ours = [
            name
            for row in rows
            for name in row["metadata"].get("annotations", {})
            if name.startswith("scaletest/")
        ]
        (container,) = rows[0]["spec"]["template"]["spec"]["containers"]
        limits = [rows[1]["spec"][name] for name in ("minReplicas", "maxReplicas")]
        return [rows[0]["spec"]["replicas"], container, limits, ours]

    before = state()
    arguments = (
        "saturate",
        "--service",
        "svc/model",
        "-n",
        cluster.namespace,
        "--pause-autoscalers",
    )
    tuned = (*arguments, "--tune", "cpu=4000", "--tune", "replicas=3", "--tune", "--workers=7")
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    process = subprocess.Popen(
        program(*tuned, "--ready-timeout", "86400"),
        env=environment,
    )
    try:
        eventually(lambda: state()[1]["args"] == ["--workers", "7"])
    finally:
        process.kill()
        process.wait()
    changed = state()
    assert changed[0] == 3 and changed[2] == [3, 3] and changed[3] == [BEFORE, BEFORE]
    # then whoever comes next is told, and changes nothing
    put_back = ("cluster", "restore", "-n", cluster.namespace, "--deployment", "model")
    for line in (arguments, (*arguments, "--tune", "cpu=100m")):
        done = call(*line, env=environment)
        assert done.returncode == 2 and f"scaletest {' '.join(put_back)}" in done.stderr, (
            done.stderr
        )
    assert state() == changed
    # and one command puts back what there was, once
    done = call(*put_back, env=environment)
    assert done.returncode == 0, done.stderr
    for kind in ("HorizontalPodAutoscaler", "Deployment"):
        assert f"{kind} model: put back" in done.stdout
    assert state() == before
    done = call(*put_back, env=environment)
    assert done.returncode == 0 and "nothing to put back" in done.stdout


def test_ctrl_c_ends_a_tuning_that_waits_for_pods_and_restores_everything(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    # given a pod that fits nowhere, and more patience for it than anybody has
    before = Deployment(cluster, "model")
    arguments = (
        "saturate",
        "--service",
        "svc/model",
        "-n",
        cluster.namespace,
        "--tune",
        "cpu=4000,4001",
        "--format",
        "json",
    )
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    line = program(*arguments, "--ready-timeout", "86400")
    process = subprocess.Popen(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        eventually(lambda: Deployment(cluster, "model").template != before.template)
        process.send_signal(signal.SIGINT)
        out, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    # then it does not wait for that, nor try the other setting
    assert process.returncode == 4, stderr
    assert [setting["trouble"] for setting in json.loads(out)["settings"]] == [
        "interrupted by Ctrl-C"
    ]
    after = Deployment(cluster, "model")
    assert after.template == before.template and BEFORE not in after.annotations
    for wrong in ("cpu=much", "memory=0"):
        done = call(
            "saturate",
            "--service",
            "svc/model",
            "-n",
            cluster.namespace,
            "--tune",
            wrong,
            env=environment,
        )
        assert done.returncode == 2 and "is not a quantity" in done.stderr, done.stderr


def test_a_setting_that_fits_on_no_node_fails_with_the_reason(cluster: Cluster) -> None:
    deployment = Deployment(cluster, "model")
    changes = Changes(cluster, deployment)
    tuning = Tuning(cluster, deployment, Autoscalers(cluster, "model"), changes)
    tuning.apply({"cpu": "4000"})
    eventually(lambda: "Insufficient cpu" in deployment.trouble())
    with pytest.raises(WaitTimeout, match="Insufficient cpu"):
        tuning.wait(0.1)
    changes.close()
    tuning.wait(200)


def test_agents_run_as_a_job_whose_secret_goes_with_it(
    plane: ControlPlane, cluster: Cluster
) -> None:
    job = AgentJob(cluster, "m1", "scaletest:test", 2, "redis://:secret@redis/0")
    job.create()
    try:
        pods = eventually(lambda: _pods(plane, cluster.namespace))
        assert len(pods) == 2
        assert pods[0]["spec"]["containers"][0]["args"] == ["saturate", "--agent", "m1"]
        assert "secret@" not in json.dumps(pods)
        job.check()
    finally:
        job.delete()
    job.delete()
    eventually(lambda: not _pods(plane, cluster.namespace))
    assert "scaletest-agents" not in plane.kubectl(
        "-n", cluster.namespace, "get", "secrets,jobs", "-o", "name"
    )


def _pods(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    text = plane.kubectl("-n", namespace, "get", "pods", "-l", "scaletest/meeting=m1", "-o", "json")
    pods = json.loads(text)["items"]
    return list(pods) if len(pods) != 1 else []


class _Kubelet:
    """A load, and a kubelet whose readiness probe fails while more than two requests are in flight:
    nodes of the tests run no containers.
    """

    def __init__(self, load: LevelLoad, plane: ControlPlane, cluster: Cluster) -> None:
        self._load, self._plane, self._namespace = load, plane, cluster.namespace

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        measured = self._load.measure(order, stopping, tell)
        if order.parallel > 2:
            self._fail()
        return measured

    def close(self) -> None:
        self._load.close()

    def _fail(self) -> None:
        """The first pod's container is killed and restarted, and its probe fails twice."""
        text = self._plane.kubectl("-n", self._namespace, "get", "pods", "-o", "json")
        pod = json.loads(text)["items"][0]
        status, name = pod["status"], pod["metadata"]["name"]
        for condition in status["conditions"]:
            if condition["type"] == "Ready":
                condition |= {"status": "False", "lastTransitionTime": "2100-01-01T00:00:00Z"}
        status["containerStatuses"][0] |= {"restartCount": 1, "ready": False}
        self._plane.kubectl(
            *("-n", self._namespace, "patch", "pod", name, "--subresource=status"),
            *("--type=merge", "-p", json.dumps({"status": status})),
        )
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.1", "namespace": self._namespace},
            "involvedObject": {"kind": "Pod", "name": name, "namespace": self._namespace},
            "type": "Warning",
            "reason": "Unhealthy",
            "message": "Readiness probe failed: HTTP probe failed with statuscode: 502",
            "count": 2,
        }
        self._plane.apply([event])


def test_pods_that_fail_under_load_saturate_a_service_and_are_reported(
    plane: ControlPlane,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    patient: None,
    tmp_path: Path,
) -> None:
    # given a service that answers every request, whose pods do not bear more than two at a time
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    arguments = ["saturate", "--service", "svc/model", "-n", cluster.namespace]
    arguments += ["--load", "closed", "--start", "1", "--maximum", "3"]
    arguments += ["--count", "6", "--warm", "0"]
    http_load = service_target.http_load

    def with_kubelet(*options: Any) -> Callable[[ExitStack], LevelLoad]:
        start = http_load(*options)
        return lambda stack: _Kubelet(start(stack), plane, cluster)

    with running("--slots", "8", "--seconds", "0.2") as url:
        monkeypatch.setattr(
            service_target, "reach", lambda service, make_call, *, is_inside: make_call(url)
        )
        monkeypatch.setattr(service_target, "http_load", with_kubelet)
        main.run([*arguments, "--run-dir", str(tmp_path / "run")])
    # then the level at which a pod failed is too much, although all of its requests succeeded
    judged = SaturationFolder(tmp_path / "run")
    run = RUN_TYPE.judge(judged)
    *before, failed = run.result.steps[:3]
    assert [level.saturated for level in before] == ["", ""]
    assert failed.success == 1.0 and failed.saturated == "1 pod did not stay ready, 1 restart"
    # and text and page show what Kubernetes said of it
    for form in ("text", "html"):
        shown = formats.render(saturation_report(run), form)
        assert "Readiness probe failed: HTTP probe failed with statuscode: 502 (2x)" in shown

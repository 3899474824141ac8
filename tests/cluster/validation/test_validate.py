"""scaletest validate against a real Deployment: verdict, restoring, refusals, rights."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scaletest
from hack.kubernetes import ControlPlane
from scaletest.broker import Queues
from scaletest.model.run_progress import RunProgress
from scaletest.validation.folder import ValidationFolder
from tests.cluster.charts import CHART
from tests.cluster.conftest import Agent, Helm, kubeconfig_of, needs_own
from tests.conftest import eventually, program
from tests.integration.services import check_verdict

pytestmark = needs_own
DEPLOYMENT, CLIENT = "bench-scaletest-sleep-worker", "bench-scaletest-sleep-client"


@pytest.fixture
def agent(plane: ControlPlane, released: str, url: str, redis: Any) -> Iterator[Agent]:
    """Workers for the release's pods, and its client."""
    Queues(redis).add("sleep")
    agent = Agent(plane, released, url)
    try:
        agent.serve_client(CLIENT, "sleep", "0.5")
        yield agent
    finally:
        agent.close()


def validate(folder: Path, config: Path, namespace: str, *options: str) -> subprocess.Popen[str]:
    line = program(
        "validate",
        "--deployment",
        DEPLOYMENT,
        "-n",
        namespace,
        "--run-dir",
        str(folder / "run"),
        *options,
    )
    environment = {**os.environ, "KUBECONFIG": str(config)}
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def replicas(plane: ControlPlane, namespace: str) -> int:
    return int(
        plane.kubectl(
            "-n", namespace, "get", "deployment", DEPLOYMENT, "-o", "jsonpath={.spec.replicas}"
        )
    )


def refused(process: subprocess.Popen[str], code: int) -> str:
    out, errors = process.communicate(timeout=280)
    assert process.returncode == code, out + errors
    assert "Traceback" not in errors
    return errors


@pytest.mark.parametrize(("cluster_read", "steps"), [(True, [1, 2]), (False, [1, 2, 4, 8])])
def test_a_validation_passes_with_the_rights_of_the_chart_and_restores_the_replicas(
    plane: ControlPlane,
    agent: Agent,
    released: str,
    main_helm: Helm,
    redis: Any,
    tmp_path: Path,
    cluster_read: bool,
    steps: list[int],
) -> None:
    # given the chart's own service account, with and without reading nodes
    if cluster_read:
        main_helm(
            "upgrade",
            "bench",
            str(CHART),
            "-n",
            released,
            "--reuse-values",
            "--set",
            "rbac.clusterRead=true",
        )
    config = kubeconfig_of(plane, released, "bench-scaletest-validate", tmp_path)
    # and no worker: of a pod on a fake node that is gone the process goes a moment later, which
    # would be one too many
    plane.kubectl("-n", released, "scale", "deployment", DEPLOYMENT, "--replicas=0")
    eventually(lambda: not Queues(redis).worker_names("sleep"))
    # when its workers are doubled
    most = steps[-1]
    options = [
        "--client",
        f"svc/{CLIENT}",
        "--seconds",
        "0.5",
        "--limit",
        str(most),
        "--scale",
        "1.5",
        "--format",
        "json",
    ]
    process = validate(tmp_path, config, released, *options, "--progress", "plain")
    out, errors = process.communicate(timeout=500)
    # expect PASS if the machine lets it, the pods and nodes in the records, and none afterwards as
    # before
    assert process.returncode in (0, 4), out + errors
    result = json.loads(out)
    check_verdict(process.returncode, result)
    assert [step["workers"] for step in result["steps"]] == steps
    assert ("capacity is unknown" in errors) is not cluster_read
    rows = [
        json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    ]
    # (a step measured again, because the first time decided nothing, has other pods)
    first_time = [row for row in rows if row.get("step") == most and not row.get("repeat")]
    assert len({row["pod"] for row in first_time}) == most
    nodes = {row["node"] for row in rows}
    assert nodes <= {"plain-0", "plain-1", "intel-0", "intel-1"}
    # and what they did meanwhile, as the client told: the last step may be too short for a first
    # sample of its nodes
    sampled = {sample.node for sample in ValidationFolder(tmp_path / "run").load().samples}
    assert {row["node"] for row in rows if row.get("step") == 1} <= sampled <= nodes
    assert replicas(plane, released) == 0


def test_python_code_validates_a_deployment_and_its_callback_may_end_that(
    plane: ControlPlane,
    agent: Agent,
    released: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    plane.kubectl("-n", released, "scale", "deployment", DEPLOYMENT, "--replicas=2")
    plan = scaletest.Plan(limit=2, seconds=0.5, step_time=4)
    place = {"deployment": DEPLOYMENT, "namespace": released, "client": f"svc/{CLIENT}"}
    result = scaletest.validate(plan, **place, run_dir=tmp_path / "run")  # type: ignore[arg-type]
    # expect its numbers, pods of the Deployment in its records, and the replicas of before
    assert [step.workers for step in result.steps] == [1, 2]
    # (the second pod's process may begin after its time; one of before may still end a request)
    pods = {record.reply.pod for record in result.records}
    assert pods and all(pod.startswith(f"{DEPLOYMENT}-") for pod in pods)
    assert replicas(plane, released) == 2

    def end(progress: RunProgress) -> None:
        if progress.phase.startswith("1 worker: measuring"):
            raise RuntimeError("seen enough")

    with pytest.raises(RuntimeError, match="seen enough"):
        scaletest.validate(plan, **place, run_dir=tmp_path / "ended", on_progress=end)  # type: ignore[arg-type]
    assert replicas(plane, released) == 2


@pytest.mark.parametrize(
    "signals", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM), (signal.SIGHUP,)]
)
def test_an_interrupted_validation_restores_the_replicas(
    plane: ControlPlane,
    agent: Agent,
    released: str,
    tmp_path: Path,
    signals: tuple[signal.Signals, ...],
) -> None:
    options = ["--client", f"svc/{CLIENT}", "--seconds", "0.5", "--limit", "4", "--step-time", "60"]
    plane.kubectl("-n", released, "scale", "deployment", DEPLOYMENT, "--replicas=2")
    process = validate(tmp_path, plane.kubeconfig, released, *options)
    # when it is stopped while requests run
    eventually(lambda: replicas(plane, released) == 1)
    for number in signals:
        process.send_signal(number)
    out, errors = process.communicate(timeout=280)
    assert replicas(plane, released) == 2, out + errors
    path = f"/api/v1/namespaces/{released}/services/{CLIENT}:9996/proxy/parallel"
    assert json.loads(plane.kubectl("get", "--raw", f"{path}?type=json"))["result"] == 0


def test_a_validation_holds_an_hpa_and_what_it_leaves_when_killed_is_put_back(
    plane: ControlPlane, agent: Agent, released: str, tmp_path: Path
) -> None:
    limits = ["--min=2", "--max=3", "--cpu=50%"]
    plane.kubectl("-n", released, "autoscale", "deployment", DEPLOYMENT, *limits)
    eventually(lambda: replicas(plane, released) == 2)
    options = ["--client", f"svc/{CLIENT}", "--seconds", "0.5", "--limit", "1", "--step-time", "60"]
    errors = refused(validate(tmp_path, plane.kubeconfig, released, *options), 2)
    assert "HorizontalPodAutoscaler" in errors and "--pause-autoscalers" in errors

    def state() -> list[Any]:
        text = plane.kubectl("-n", released, "get", "hpa", DEPLOYMENT, "-o", "json")
        spec = json.loads(text)["spec"]
        return [replicas(plane, released), spec["minReplicas"], spec["maxReplicas"]]

    # when one that holds it is killed in the middle
    config = kubeconfig_of(plane, released, "bench-scaletest-validate", tmp_path)
    process = validate(tmp_path, config, released, *options, "--pause-autoscalers")
    eventually(lambda: state() == [1, 1, 1])
    process.kill()
    process.communicate()
    assert state() == [1, 1, 1]
    # expect that a command puts back what it changed
    line = program("cluster", "restore", "-n", released, "--deployment", DEPLOYMENT)
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": str(config)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f" {DEPLOYMENT}: put back") == 2
    assert state() == [2, 2, 3]


def test_more_workers_than_devices_are_refused(
    plane: ControlPlane, main_helm: Helm, namespace: str, url: str, redis: Any, tmp_path: Path
) -> None:
    # given workers with a device each, and four devices
    device = ["--set", "queues.sleep.device.resource=gpu.intel.com/xe"]
    main_helm("install", "bench", str(CHART), "-n", namespace, *device)
    Queues(redis).add("sleep")
    # when eight are asked for
    errors = refused(
        validate(tmp_path, plane.kubeconfig, namespace, "--redis-url", url, "--limit", "8"), 2
    )
    assert "the nodes (gpu.intel.com/xe) can take 4 pods" in errors
    assert "--limit 4" in errors


def test_the_reason_is_named_when_pods_do_not_start(
    plane: ControlPlane, main_helm: Helm, namespace: str, url: str, redis: Any, tmp_path: Path
) -> None:
    # given workers for whom there is no node, and nobody who may read nodes
    main_helm(
        "install",
        "bench",
        str(CHART),
        "-n",
        namespace,
        "--set",
        "queues.sleep.nodeSelector.colour=blue",
    )
    Queues(redis).add("sleep")
    config = kubeconfig_of(plane, namespace, "bench-scaletest-validate", tmp_path)
    # and a scheduler that has said so of the pod
    pods = ["-n", namespace, "get", "pods", "-o", "json"]
    eventually(lambda: "node affinity/selector" in plane.kubectl(*pods))
    options = ["--redis-url", url, "--limit", "1", "--ready-timeout", "5"]
    errors = refused(validate(tmp_path, config, namespace, *options), 6)
    assert "0 of 1 pods" in errors
    assert "didn't match Pod's node affinity/selector" in errors

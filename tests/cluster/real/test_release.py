"""The chart on a real node: its images run, a validation passes, and whatever is interrupted leaves
no trace.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane, tool
from hack.kubernetes.watch import Watch
from scaletest.benchmarks.objects import pod_status
from scaletest.runs.folder import PROGRESS
from tests.cluster.charts import CHART, MAIN_HELM
from tests.cluster.conftest import Helm, helm_program, kubeconfig_of, restricted
from tests.conftest import eventually, program

DEPLOYMENT, CLIENT, EXPORTER = (
    "bench-scaletest-sleep-worker",
    "bench-scaletest-sleep-client",
    "bench-scaletest-exporter",
)
WORKERS = "app.kubernetes.io/component=worker"
START_S = 180.0
# How often workers are scaled up and down in the test of signals, in 8 s on average.
SCALINGS = int(os.environ.get("SCALETEST_TEST_SCALINGS", "5"))


@dataclass(frozen=True, slots=True)
class Release:
    """The chart as release `bench`, with no more rights than its own account for validations."""

    plane: ControlPlane
    namespace: str
    kubeconfig: Path

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl("-n", self.namespace, *arguments)

    def scale(self, replicas: int) -> None:
        self.kubectl("scale", "deployment", DEPLOYMENT, f"--replicas={replicas}")
        self.kubectl("rollout", "status", f"deployment/{DEPLOYMENT}", f"--timeout={START_S:.0f}s")
        eventually(lambda: len(self.workers()) == replicas, START_S)

    def replicas(self) -> int:
        return int(self.kubectl("get", "deployment", DEPLOYMENT, "-o", "jsonpath={.spec.replicas}"))

    def workers(self) -> list[str]:
        return self.kubectl(
            "get", "pods", "-l", WORKERS, "-o", "jsonpath={.items[*].metadata.name}"
        ).split()

    def proxy(self, service: str, port: int, path: str) -> str:
        return self.kubectl(
            "get",
            "--raw",
            f"/api/v1/namespaces/{self.namespace}/services/{service}:{port}/proxy{path}",
        )

    def parallel(self, query: str = "") -> int:
        return int(json.loads(self.proxy(CLIENT, 9996, f"/parallel?type=json{query}"))["result"])

    def validate(self, folder: Path, *options: str) -> subprocess.Popen[str]:
        """Its standard error is in the file `said` of the folder."""
        line = program(
            "validate",
            "--deployment",
            DEPLOYMENT,
            "-n",
            self.namespace,
            "--client",
            f"svc/{CLIENT}",
        )
        line += [
            "--seconds",
            "2",
            "--run-dir",
            str(folder / "run"),
            "--progress",
            "plain",
            "--format",
            "json",
            *options,
        ]
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        with (folder / "said").open("w") as stderr:
            return subprocess.Popen(
                line, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
            )


@pytest.fixture(scope="module")
def release(real: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """One for the tests that leave it as it was; every pod is ready."""
    namespace = restricted(real)
    install(Helm(real, helm_program()), namespace)
    config = kubeconfig_of(
        real, namespace, "bench-scaletest-validate", tmp_path_factory.mktemp("account")
    )
    return Release(real, namespace, config)


def install(helm: Helm, namespace: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Every pod is ready when it returns."""
    return helm(
        "install",
        "bench",
        str(CHART),
        "-n",
        namespace,
        "--wait",
        f"--timeout={START_S:.0f}s",
        *options,
    )


# One Helm has the requests of the defaults, the other shorter ones.
@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(
            "helm3",
            ["--set-string", "queues.sleep.client.arguments={1}"],
            marks=pytest.mark.weekly(part="helm3"),
            id="helm3",
        ),
        pytest.param(MAIN_HELM, [], id=MAIN_HELM),
    ],
)
@pytest.mark.timeout(900)  # the images are built first
def test_a_release_runs_shows_its_verdict_and_leaves_its_volume(
    real: ControlPlane, name: str, options: list[str]
) -> None:
    # given a namespace that admits only what is restricted
    helm, namespace = Helm(real, helm_program(name)), restricted(real)

    def rows(kinds: str) -> list[dict[str, Any]]:
        return list(json.loads(real.kubectl("-n", namespace, "get", kinds, "-o", "json"))["items"])

    # when the chart is installed and tested
    done = install(helm, namespace, *options)
    # expect no warning, every pod ready on the real node, and Redis on a volume
    assert done.stderr == ""
    assert f"helm test bench -n {namespace} --logs" in done.stdout
    pods = rows("pods")
    assert {pod["spec"]["nodeName"] for pod in pods} == {"real"}
    assert all(status["ready"] for pod in pods for status in pod["status"]["containerStatuses"])
    assert [claim["status"]["phase"] for claim in rows("pvc")] == ["Bound"]
    assert (
        "PASS  every doubling up to 2 workers"
        in helm("test", "bench", "-n", namespace, "--logs").stdout
    )
    # when it is uninstalled
    helm("uninstall", "bench", "-n", namespace, "--wait")
    real.kubectl(
        "-n",
        namespace,
        "wait",
        "--for=delete",
        "pods",
        "-l",
        "app.kubernetes.io/component!=test",
        "--timeout=120s",
    )
    # expect the volume, and the pod of the test, which no Helm takes away
    kinds = "deployments,statefulsets,services,configmaps,secrets,serviceaccounts,roles"
    kinds += ",rolebindings,pvc,pods,networkpolicies,poddisruptionbudgets,jobs"
    left = {f"{row['kind']}/{row['metadata']['name']}" for row in rows(kinds)}
    left -= {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}
    assert left == {"PersistentVolumeClaim/data-bench-redis-0", "Pod/bench-scaletest-test"}


@pytest.mark.timeout(3600)
def test_no_worker_ignores_that_it_is_scaled_down(release: Release) -> None:
    """At any moment of its life, of which the first seconds are the worst: a pod's first process
    gets no signal for which it has no handler.
    """
    release.scale(1)
    exit_codes: dict[str, int] = {}
    seconds: dict[str, float] = {}

    def see(kind: str, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        for status in pod.get("status", {}).get("containerStatuses", ()):
            if ended := status["state"].get("terminated"):
                exit_codes[name] = ended["exitCode"]
        if kind == "DELETED":
            told = pod_status.parse_time_s(pod["metadata"]["deletionTimestamp"])
            told -= pod["metadata"]["deletionGracePeriodSeconds"]
            seconds[name] = time.time() - told

    path = f"/api/v1/namespaces/{release.namespace}/pods?watch=true"
    watch = Watch(release.plane, f"{path}&labelSelector={WORKERS.replace('=', '%3D')}", see)
    chance, in_flight = random.Random(35), release.parallel()
    try:
        # given requests all the time
        release.parallel("&value=8")
        # when workers come and go
        for _ in range(SCALINGS):
            for replicas in (chance.randint(2, 4), 1):
                release.kubectl("scale", "deployment", DEPLOYMENT, f"--replicas={replicas}")
                time.sleep(chance.uniform(0.0, 8.0))
        release.parallel(f"&value={in_flight}")
        release.scale(1)
    finally:
        watch.close()
    line = ("exec", f"deployment/{CLIENT}", "-c", "client", "--", "scaletest", "queue", "show")
    shown = json.loads(release.kubectl(*line, "sleep", "--format", "json"))
    sys.stdout.write(
        f"by exit code: {Counter(exit_codes.values())}; of {len(seconds)} the longest ends took"
        f" {sorted(seconds.values())[-3:]} s; queue: {shown}\n"
    )
    # expect that each worker ended by itself, and that no request waited for a lease
    assert exit_codes and set(exit_codes.values()) <= {0, 128 + signal.SIGTERM}
    assert shown["counters"].get("requeued", 0) == 0


@pytest.mark.timeout(900)
def test_eight_workers_have_eight_times_the_throughput_of_one(
    release: Release, tmp_path: Path
) -> None:
    # given the chart's own account, and three workers
    release.scale(3)
    # when they are doubled to eight
    process = release.validate(tmp_path, "--limit", "8", "--scale", "1.9")
    out, _ = process.communicate(timeout=800)
    # expect every doubling, in the pods of the real node, and three workers again
    stderr = (tmp_path / "said").read_text()
    assert process.returncode == 0, out + stderr
    result = json.loads(out)
    assert result["verdict"]["kind"] == "PASS"
    assert [step["workers"] for step in result["steps"]] == [1, 2, 4, 8]
    rows = [
        json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    ]
    assert {row["outcome"] for row in rows} == {"succeeded"}
    assert {row["node"] for row in rows} == {"real"}
    # A step may be measured more than once, and pods are new after fewer workers.
    pods: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        if row.get("step") == 8:
            pods[row.get("repeat", 0)].add(row["pod"])
    assert {repeat: len(names) for repeat, names in pods.items()} == dict.fromkeys(pods, 8)
    assert pods
    assert (release.replicas(), release.parallel()) == (3, 0)


@pytest.mark.parametrize("force", [False, True])
def test_a_worker_that_is_deleted_breaks_no_request(release: Release, force: bool) -> None:
    # given two workers, each with a request
    release.scale(2)
    line = [
        "exec",
        f"deployment/{CLIENT}",
        "-c",
        "client",
        "--",
        "scaletest",
        "client",
        "--queue",
        "sleep",
    ]
    config = [
        tool("kubernetes", "kubectl"),
        f"--kubeconfig={release.plane.kubeconfig}",
        "-n",
        release.namespace,
    ]
    batch = [*config, *line, "--batch", "3", "--listen", "none", "--format", "json", "--", "8"]
    client = subprocess.Popen(batch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = 'scaletest_queue_running{queue="sleep"} 2.0'
    eventually(lambda: running in release.proxy(EXPORTER, 9998, "/metrics"))
    # when one is deleted, kindly or not
    gone = release.workers()[0]
    release.kubectl("delete", "pod", gone, *(["--force", "--grace-period=0"] if force else []))
    # expect that its request was finished by it, or done again by another
    out, errors = client.communicate(timeout=200)
    assert client.returncode == 0, errors
    summary = json.loads(out)
    assert (summary["succeeded"], summary["failed"]) == (3, 0)
    assert (gone in {place["pod"] for place in summary["places"]}) is not force


@pytest.mark.parametrize(
    ("moment", "signals"),
    [
        # fewer workers are ready too soon to be seen
        ("2 workers: getting ready", [signal.SIGINT]),
        ("2 workers: getting ready", [signal.SIGTERM, signal.SIGTERM]),
        ("1 worker: measuring", [signal.SIGTERM]),
        ("2 workers: getting ready", [signal.SIGINT, signal.SIGINT]),
        ("2 workers: measuring", [signal.SIGINT, signal.SIGINT]),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(sent.name for sent in value),
)
def test_an_interrupted_validation_restores_replicas_and_load(
    release: Release, tmp_path: Path, moment: str, signals: list[signal.Signals]
) -> None:
    # given three workers, a client that keeps two requests in flight, and KEDA on the Deployment
    release.scale(3)
    release.parallel("&value=2")
    spec = {"scaleTargetRef": {"name": DEPLOYMENT}, "triggers": [{"type": "cron", "metadata": {}}]}
    meta = {"name": "keda", "namespace": release.namespace, "annotations": {"mine": "stays"}}
    release.plane.apply(
        [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": meta, "spec": spec}]
    )

    def marks() -> dict[str, str]:
        return dict(
            json.loads(release.kubectl("get", "scaledobject", "keda", "-o", "json"))["metadata"][
                "annotations"
            ]
        )

    # when a validation is interrupted
    try:
        process = release.validate(
            tmp_path, "--limit", "4", "--step-time", "3", "--pause-autoscalers"
        )
        eventually(lambda: "autoscaling.keda.sh/paused" in marks(), START_S)
        eventually(lambda: moment in (tmp_path / "run" / PROGRESS).read_text(), START_S)
        for number in signals:
            process.send_signal(number)
        out, _ = process.communicate(timeout=120)
        # expect the world as it was
        stderr = (tmp_path / "said").read_text()
        assert process.returncode not in (0, 1), out + stderr
        assert "Traceback" not in stderr
        assert (release.replicas(), release.parallel(), marks()) == (3, 2, {"mine": "stays"}), (
            stderr
        )
    finally:
        release.kubectl("delete", "scaledobject", "keda")
        release.parallel("&value=0")

"""scaletest saturate against real pods: settings that are tuned, agents as a Job, pods' logs, an
agent that is lost.

The service is hack/service.py, mounted into the project's own image: its capacity is known.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane
from scaletest import __version__
from tests.cluster.conftest import restricted
from tests.conftest import call, eventually

IMAGE = f"scaletest:{__version__}"
REDIS = "valkey/valkey:9.1"
ROOT = Path(__file__).parents[4]
SERVICE = ("--service", "svc/model")
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
NOBODY = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
REDIS_URL = "redis://redis:6379"
AGENTS = [
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "delete"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "delete"]},
]
# What docs/how-to/saturate.md says that --service, --agent-jobs and --log-pattern need.
RULES = [
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
    {"apiGroups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": ["list"]},
    *AGENTS,
]


def held_or_late(code: int, result: dict[str, Any]) -> None:
    """What was wanted held; nothing else is accepted but a tester that a busy machine made late,
    three times.
    """
    verdict = result["verdict"]
    late = "the load generator " in verdict["reason"]
    assert (code, verdict["kind"]) == ((4, "INVALID") if late else (0, "PASS")), verdict


@dataclass(frozen=True, slots=True)
class Model:
    """A namespace with a Deployment `model`, one pod that does 20 requests a second, its Service,
    and a Redis.
    """

    plane: ControlPlane
    namespace: str

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl("-n", self.namespace, *arguments)

    def rows(self, kind: str) -> list[dict[str, Any]]:
        return list(json.loads(self.kubectl("get", kind, "-o", "json"))["items"])

    def names(self, kind: str) -> set[str]:
        return {row["metadata"]["name"] for row in self.rows(kind)}

    def coordinator(self, name: str, *options: str, account: str = "tester") -> None:
        """A pod that runs saturate with two agents and no more rights than it needs."""
        line = [
            "saturate",
            "--agents",
            "2",
            "--agent-jobs",
            IMAGE,
            "--redis-url",
            REDIS_URL,
        ]
        line += ["--run-dir", "/tmp/run", "--format", "json", "--progress", "plain", *options]
        pod = {
            **_pod("coordinator", IMAGE, args=line),
            "serviceAccountName": account,
            "restartPolicy": "Never",
        }
        self.plane.apply([self.meta("v1", "Pod", name, {"spec": pod})])

    def ended(self, name: str) -> int:
        """The exit code of such a pod, when it has one."""

        def code() -> list[int]:
            (row,) = (pod for pod in self.rows("pods") if pod["metadata"]["name"] == name)
            states = [
                container["state"] for container in row["status"].get("containerStatuses", [])
            ]
            return [state["terminated"]["exitCode"] for state in states if "terminated" in state]

        eventually(lambda: bool(code()))
        return code()[0]

    def account(self, name: str, rules: list[dict[str, Any]]) -> None:
        """A service account that may do this."""
        group = "rbac.authorization.k8s.io"
        who = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        role = {"apiGroup": group, "kind": "Role", "name": name}
        self.plane.apply(
            [
                self.meta("v1", "ServiceAccount", name, {}),
                self.meta(f"{group}/v1", "Role", name, {"rules": rules}),
                self.meta(f"{group}/v1", "RoleBinding", name, {"subjects": [who], "roleRef": role}),
            ]
        )

    def meta(self, version: str, kind: str, name: str, rest: dict[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            **rest,
        }

    def serve(self, name: str, port: int, pod: dict[str, Any]) -> list[dict[str, Any]]:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return [
            self.meta("apps/v1", "Deployment", name, {"spec": spec}),
            self.meta(
                "v1", "Service", name, {"spec": {"selector": labels, "ports": [{"port": port}]}}
            ),
        ]


@pytest.fixture(scope="module")
def model(real: ControlPlane) -> Model:
    """One for all tests, which leave it as it was."""
    model = Model(real, restricted(real))
    line = [
        "python",
        "/srv/service.py",
        "--host",
        "0.0.0.0",
        "--port",
        "8080",
        "--seconds",
        "0.05",
        "--log",
    ]
    service = _pod("model", IMAGE, command=line, args=["--slots", "1"])
    service["containers"][0] |= {
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "volumeMounts": [{"name": "code", "mountPath": "/srv"}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    service["terminationGracePeriodSeconds"] = 1
    service["volumes"] = [{"name": "code", "configMap": {"name": "code"}}]
    redis = _pod("redis", REDIS, args=["valkey-server", "--save", "", "--protected-mode", "no"])
    real.apply(
        [
            model.meta(
                "v1",
                "ConfigMap",
                "code",
                {"data": {"service.py": (ROOT / "hack/service.py").read_text()}},
            ),
            *model.serve("model", 8080, service),
            *model.serve("redis", 6379, redis),
        ]
    )
    model.account("tester", RULES)
    model.kubectl("wait", "--for=condition=Available", "deployment", "--all", "--timeout=120s")
    return model


def _pod(name: str, image: str, **more: Any) -> dict[str, Any]:
    return {
        "containers": [{"name": name, "image": image, "securityContext": SAFE, **more}],
        "securityContext": NOBODY,
    }


def test_settings_are_ranked_by_the_measured_throughput_of_pods(
    model: Model, tmp_path: Path
) -> None:
    # given a service that does 20 requests a second a slot, and steps in which kubelets look once
    before = model.kubectl("get", "deployment", "model", "-o", "jsonpath={.spec}")
    done = call(
        *(
            "saturate",
            "--service",
            "svc/model",
            "-n",
            model.namespace,
            "--tune",
            "cpu=200m",
            "--tune",
        ),
        *(
            "--slots=1,2",
            "--load",
            "closed",
            "--start",
            "4",
            "--maximum",
            "8",
        ),
        *("--step-time", "11", "--warm", "0", "--precision", "0.3", "--format", "json"),
        env={
            **os.environ,
            "KUBECONFIG": str(model.plane.kubeconfig),
            "XDG_DATA_HOME": str(tmp_path),
        },
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["settings"]
    # expect the more slots for the same CPU first, unknown use where no metrics API serves it, and
    # the Deployment as it was
    assert [row["setting"] for row in rows] == [
        {"cpu": "200m", "--slots": number} for number in ("2", "1")
    ]
    assert [row["saturation_per_s"] for row in rows] == pytest.approx([40, 20], rel=0.15), (
        done.stderr
    )
    assert {row["used_cpu"] for row in rows} == {row["used_memory_gib"] for row in rows} == {None}
    assert model.kubectl("get", "deployment", "model", "-o", "jsonpath={.spec}") == before


def test_agents_in_pods_find_the_saturation_of_a_deployment(model: Model) -> None:
    options = [
        "--load",
        "closed",
        "--step-time",
        "2",
        "--warm",
        "1",
        "--maximum",
        "6",
        "--wanted",
        "5",
    ]
    model.coordinator("whole", *SERVICE, *options, "--precision", "0.2")
    code = model.ended("whole")
    log = model.kubectl("logs", "whole")
    assert "\n{" in log, log
    result = json.loads(log[log.index("\n{") :])
    held_or_late(code, result)
    assert result["saturation_per_s"]["value"] == pytest.approx(20, rel=0.2)
    # expect nothing left of the agents
    eventually(lambda: model.names("jobs") == set() and model.names("secrets") == set())


def test_a_run_is_invalid_when_the_pod_of_an_agent_is_deleted(model: Model) -> None:
    # given a step that would last ten minutes
    model.coordinator("lost", *SERVICE, "--start", "10", "--step-time", "600", "--warm", "1")
    model.kubectl("wait", "--for=condition=Ready", "pod", "lost", "--timeout=120s")
    eventually(lambda: "warm 1:" in model.kubectl("logs", "lost"))
    agents = [name for name in model.names("pods") if name.startswith("scaletest-agents-")]
    assert len(agents) == 2
    model.kubectl("delete", "pod", agents[0], "--grace-period=1", "--wait=false")
    code = model.ended("lost")
    log = model.kubectl("logs", "lost")
    assert "\n{" in log, log
    result = json.loads(log[log.index("\n{") :])
    assert code == 4 and result["verdict"]["kind"] == "INVALID", log
    assert "agents of job" in result["verdict"]["reason"] and [
        step["phase"] for step in result["steps"]
    ] == ["warm"]


def test_agents_in_pods_load_a_queue_whose_workers_are_pods(model: Model) -> None:
    # given four workers that take a second, so that a tester is late from half a second on only,
    # and a coordinator that may do nothing but start agents
    model.account("starter", AGENTS)
    reach = [{"name": "SCALETEST_REDIS_URL", "value": REDIS_URL}]
    worker = _pod("worker", IMAGE, args=["worker", "--queue", "q"], env=reach)
    declare = {**_pod("declare", IMAGE, args=["queue", "add", "q"], env=reach)["containers"][0]}
    deployment, _ = model.serve("worker", 1, {**worker, "initContainers": [declare]})
    deployment["spec"]["replicas"] = 4
    model.plane.apply([deployment])
    model.kubectl("wait", "--for=condition=Available", "deployment/worker", "--timeout=120s")
    shown = ("exec", "deploy/worker", "--", "scaletest", "queue", "show", "q", "--format", "json")
    eventually(lambda: json.loads(model.kubectl(*shown))["workers"] == 4)
    options = ["--start", "2", "--maximum", "2", "--step-time", "6", "--warm", "0"]
    model.coordinator("queue", "--queue", "q", *options, "--", "1", account="starter")
    code = model.ended("queue")
    log = model.kubectl("logs", "queue")
    assert "\n{" in log, log
    result = json.loads(log[log.index("\n{") :])
    # expect every reply, and nothing left of the agents
    assert code == 4 and all(step["success"] == 1.0 for step in result["steps"]), log
    assert {step["requests"] for step in result["steps"] if step["phase"] == "ramp"} == {12}, log
    eventually(lambda: model.names("jobs") == set() and model.names("secrets") == set())

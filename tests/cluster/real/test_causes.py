"""Causes in pods on a real node, as user 10001 of the restricted profile: a CPU limit, a lock file
(also in a shell script) and a Service are named, and a Deployment whose pods have a limit each is
linear.
"""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.kubernetes import ControlPlane
from scaletest import __version__
from scaletest.model import State
from scaletest.model.visibility import visibility_gaps
from scaletest.observe.visibility import read_visibility
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, helm_program, kubeconfig_of, restricted
from tests.conftest import call

# They need the cores for themselves: what gets a fifth of a core is starved beside tests that want
# whole ones.
pytestmark = pytest.mark.weekly(part="causes")

IMAGE, REDIS = f"scaletest:{__version__}", "valkey/valkey:9.1"
SAFE = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
NOBODY = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
LIMIT = {"cpu": "200m", "memory": "512Mi"}
# A third of a second under that limit.
COMPUTE = ["python3", "-S", "-c", "sum(range(8_000_000))"]
# In one process, and as a shell script usually is, of which each command is another one.
LOCKS = (
    "exec flock /tmp/shared.lock sleep 0.3",
    "sleep 0.1; flock /tmp/shared.lock sleep 0.3; sleep 0.05",
)
# It answers one after the other.
SERVICE = """
import http.server, time
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.3)
        self.send_response(204)
        self.end_headers()
http.server.HTTPServer(("", 8080), Slow).serve_forever()
"""
CLIENT = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"


@dataclass(frozen=True, slots=True)
class Bench:
    """A namespace with a Redis, to validate in pods."""

    plane: ControlPlane
    namespace: str

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl("-n", self.namespace, *arguments)

    def pod(self, name: str, container: dict[str, Any], limits: dict[str, str]) -> None:
        """Ready when it returns."""
        container = {
            "name": "main",
            "securityContext": SAFE,
            "resources": {"limits": limits},
            **container,
        }
        container["volumeMounts"] = [{"name": "tmp", "mountPath": "/tmp"}]
        spec: dict[str, Any] = {
            "containers": [container],
            "securityContext": NOBODY,
            "terminationGracePeriodSeconds": 1,
        }
        spec["volumes"] = [{"name": "tmp", "emptyDir": {}}]
        about = {"name": name, "namespace": self.namespace, "labels": {"app": name}}
        self.plane.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}])
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")

    def service(self, name: str, port: int) -> str:
        """A Service for the pod of that name: its address."""
        about = {"name": name, "namespace": self.namespace}
        spec = {"selector": {"app": name}, "ports": [{"port": port}]}
        self.plane.apply([{"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}])
        return self.kubectl("get", "service", name, "-o", "jsonpath={.spec.clusterIP}") + f":{port}"

    def validate(
        self, limits: dict[str, str], workers: int, step_s: int, *command: str
    ) -> dict[str, Any]:
        """The result of `validate --local` in a pod with these limits."""
        self.pod("bench", {"image": IMAGE, "command": ["sleep", "600"]}, limits)
        line = [
            "scaletest",
            "validate",
            "--local",
            "--redis-url",
            "redis://redis:6379",
            "--limit",
            str(workers),
        ]
        line += [
            "--step-time",
            str(step_s),
            "--warmup",
            "0",
            "--run-dir",
            "/tmp/run",
        ]
        # its exit code is the verdict's, with which kubectl would fail
        script = (
            'HOME=/tmp "$@" >/tmp/said 2>&1; code=$?; cat /tmp/run/result.json || cat /tmp/said'
            " >&2; [ $code -lt 5 ]"
        )
        output = self.kubectl("exec", "bench", "--", "sh", "-c", script, "-", *line, "--", *command)
        self.kubectl("delete", "pod", "bench", "--now")
        return dict(json.loads(output))


def first_cause(result: dict[str, Any]) -> tuple[str, str]:
    """State and object of the cause with the largest share."""
    causes = [*result["causes"]["causes"], {"state": "", "object": ""}]
    return causes[0]["state"], causes[0]["object"]


@pytest.fixture(scope="module")
def bench(real: ControlPlane) -> Bench:
    bench = Bench(real, restricted(real))
    line = ["valkey-server", "--save", "", "--dir", "/tmp", "--protected-mode", "no"]
    bench.pod("redis", {"image": REDIS, "command": line}, {"cpu": "1", "memory": "256Mi"})
    bench.service("redis", 6379)
    return bench


def test_the_cpu_limit_of_a_pod_is_named(bench: Bench) -> None:
    # a machine that gives the pod less than its limit for seconds is another cause, which passes
    for _ in range(3):
        result = bench.validate(LIMIT, 4, 7, *COMPUTE)
        if first_cause(result) != (State.CPU_WAIT, ""):
            break
    assert first_cause(result) == (State.THROTTLED, ""), json.dumps(result["causes"])
    assert result["causes"]["causes"][0]["share"]["low"] > 0.5
    assert "throttled by the container's CPU limit" in result["causes"]["sentence"]
    assert result["verdict"]["kind"] != "PASS"


@pytest.mark.parametrize("script", LOCKS, ids=["alone", "in a script"])
def test_the_path_of_a_lock_file_is_named(bench: Bench, script: str) -> None:
    result = bench.validate({"memory": "512Mi"}, 2, 6, "sh", "-c", script)
    assert first_cause(result) == (State.FILE_LOCK, "/tmp/shared.lock"), json.dumps(
        result["causes"]
    )


def test_the_address_of_a_service_is_named(bench: Bench) -> None:
    # given a Service that serves one at a time
    bench.pod("slow", {"image": IMAGE, "command": ["python3", "-c", SERVICE]}, {"memory": "128Mi"})
    address = bench.service("slow", 8080)
    result = bench.validate(
        {"memory": "512Mi"}, 2, 6, "python3", "-S", "-c", CLIENT, f"http://{address}"
    )
    assert first_cause(result) == (State.NETWORK, address), json.dumps(result["causes"])


def test_pods_with_a_limit_each_are_linear(real: ControlPlane, tmp_path: Path) -> None:
    # given a Deployment each of whose pods has a limit
    namespace, values = restricted(real), tmp_path / "values.yaml"
    queue = {"command": COMPUTE, "resources": {"requests": {"cpu": "100m"}, "limits": LIMIT}}
    values.write_text(
        yaml.safe_dump({"queues": {"sleep": {**queue, "client": {"enabled": True}}}}), "utf-8"
    )
    Helm(real, helm_program())(
        *(
            "install",
            "bench",
            str(CHART),
            "-n",
            namespace,
            "-f",
            str(values),
            "--wait",
            "--timeout=180s",
        )
    )
    config = kubeconfig_of(real, namespace, "bench-scaletest-validate", tmp_path)
    # expect that the worker told what its node hides, which is this machine's kernel
    log = real.kubectl("-n", namespace, "logs", "deployment/bench-scaletest-sleep-worker")
    for gap in visibility_gaps(dataclasses.replace(read_visibility(), devices={}, counters=())):
        assert gap["missing"] in log, log
    # when they are doubled
    done = call(
        *(
            "validate",
            "-n",
            namespace,
            "--deployment",
            "bench-scaletest-sleep-worker",
            "--limit",
            "2",
            "--format",
            "json",
        ),
        *(
            "--client",
            "svc/bench-scaletest-sleep-client",
            "--step-time",
            "10",
        ),
        *("--run-dir", str(tmp_path / "run")),
        env={**os.environ, "KUBECONFIG": str(config)},
    )
    # expect no cause, although the limit takes most of the time
    assert done.returncode in (0, 4), done.stdout + done.stderr
    causes = json.loads(done.stdout)["causes"]
    assert causes["causes"] == [] and causes["headline"], causes
    assert [time["workers"] for time in causes["times"]] == [1, 2]
    for time in causes["times"]:
        # other programs of a busy machine make it wait for a CPU, too
        seconds = {
            state: part_s for state, part_s in time["seconds"].items() if state != State.CPU_WAIT
        }
        assert max(seconds, key=lambda state: seconds[state]) == State.THROTTLED, causes
    Helm(real, helm_program())("uninstall", "bench", "-n", namespace)

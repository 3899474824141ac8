"""KEDA as processes beside the control plane: its operator and its metrics API server."""

import subprocess
import sys
import time
from pathlib import Path

from hack.kubernetes.extension import Extension, check_free
from hack.kubernetes.names import Names
from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.process import free_ports, tool

NAMESPACE = "keda"
GROUP = ("external.metrics.k8s.io", "v1beta1")
READY_S = 180.0
PROGRAMS = ("keda-adapter", "keda-operator")


class Keda:
    """KEDA for one control plane, with its own rights. names: how its triggers find Services."""

    def __init__(self, plane: ControlPlane, names: Names) -> None:
        self._plane, self._names = plane, names
        self._extension = Extension(plane, NAMESPACE, "keda-operator", "keda-metrics-apiserver")

    def up(self) -> None:
        """Start it and wait until its metrics API answers. Raises NotBuilt, CommandFailed."""
        operator, adapter = tool("keda", "operator"), tool("keda", "adapter")
        check_free(self._plane, GROUP[0], "KEDA")
        self._plane.apply(
            [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
        )
        self._plane.kubectl("apply", "--server-side", "-f", tool("keda", "install.yaml"))
        self._plane.insist(
            "get", "scaledobjects,scaledjobs,triggerauthentications", "--all-namespaces"
        )
        config = self._extension.prepare()
        metrics, health = free_ports(2)
        environment = {
            "KUBECONFIG": str(config),
            "POD_NAMESPACE": NAMESPACE,
            "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
            "WATCH_NAMESPACE": "",
        }
        self._start(
            "keda-operator", [operator, *_operator(config.parent, metrics, health)], environment
        )
        self._start(
            "keda-adapter",
            [adapter, *self._extension.flags(), *_adapter(config.parent, metrics)],
            environment,
        )
        self._extension.register([GROUP])
        self._wait_ready(health)

    def down(self) -> None:
        """End it. Deployments that it scaled stay as they are."""
        self._extension.forget()
        for name in PROGRAMS:
            self._plane.stop(name)

    def _start(self, name: str, line: list[str], environment: dict[str, str]) -> None:
        self._plane.start(name, self._names.served(self._plane, line), environment)

    def _wait_ready(self, port: int) -> None:
        deadline = time.monotonic() + READY_S
        script = (
            f"import urllib.request as r; r.urlopen('http://127.0.0.1:{port}/readyz', timeout=5)"
        )
        box = self._plane.node.box
        line = [*(box.network() if box.running() else []), sys.executable, "-c", script]
        while True:
            done = subprocess.run(line, capture_output=True, text=True, check=False)
            if not done.returncode:
                return
            if time.monotonic() > deadline or not self._plane.running()["keda-operator"]:
                end = (self._plane.folder / "keda-operator.log").read_text()[-2000:]
                raise TimeoutError(f"KEDA's operator is not ready: {done.stderr[-200:]}\n{end}")
            time.sleep(0.3)


def _operator(folder: Path, metrics: int, health: int) -> list[str]:
    return [
        "--enable-prometheus-metrics=false",
        f"--metrics-service-bind-address=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--cert-dir={folder}",
        "--zap-encoder=console",
    ]


def _adapter(folder: Path, metrics: int) -> list[str]:
    return [
        f"--metrics-service-address=localhost:{metrics}",
        f"--cert-dir={folder}",
        f"--client-ca-file={folder}/ca.crt",
        "--port=0",  # no metrics of its own: they would listen on all addresses of this machine
        "--zap-encoder=console",
    ]

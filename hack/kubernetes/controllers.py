"""Controllers of workload kinds as processes beside the control plane: JobSet's, PyTorchJob's of Kubeflow, and Kueue.

Each has its kinds and the rights that its makers give it, on a service account of its own. The API server asks the
webhooks of JobSet and Kueue, which fill in defaults, over loopback with a certificate of ours; PyTorchJob's only
validate and are left out.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from pathlib import Path
from typing import Any

from hack.kubernetes import keys
from hack.kubernetes.accounts import kubeconfig
from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.process import free_ports, tool

READY_S = 60.0
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


class Controller:
    """One of them, for a control plane without a real node. name: of its tool, namespace and account."""

    name = program = kind = ""
    # kinds whose webhooks are served; None for all
    hooked: frozenset[str] | None = None

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.folder = plane.folder / self.name
        self._health, self._port = free_ports(2)
        self._defined: list[str] = []

    def up(self) -> None:
        """Start it and wait until it works. Raises NotBuilt, Refused, TimeoutError."""
        import yaml  # as in plane.py

        program = tool(self.name, self.program)
        rows = list(yaml.safe_load_all(Path(tool(self.name, "install.yaml")).read_text()))
        self.folder.mkdir(exist_ok=True)
        hooks = [row for row in rows if row and row["kind"] in HOOKS]
        given = [row for row in rows if row and row["kind"] not in HOOKS]
        for row in given:
            if row["kind"] == "ClusterRole":
                row["metadata"]["name"] = self.name
        self._defined = [row["metadata"]["name"] for row in given if row["kind"] == "CustomResourceDefinition"]
        self._plane.apply([*given, *self._account()])
        self._plane.insist("get", self.kind, "--all-namespaces")
        config = kubeconfig(self._plane, self.name, self.name, self.folder / "kubeconfig")
        self._plane.start(self.name, [program, *self.flags()], {"KUBECONFIG": str(config)})
        self._wait_ready()
        self._plane.apply([self._reachable(row) for row in hooks])
        self._defined += [f"{row['kind']}/{row['metadata']['name']}" for row in hooks]

    def flags(self) -> list[str]:
        """Its own."""
        return [f"--health-probe-bind-address=127.0.0.1:{self._health}"]

    def down(self) -> None:
        """End it, and take its kinds away with all objects of theirs."""
        for name in reversed(self._defined):
            what = name if "/" in name else f"crd/{name}"
            self._plane.kubectl("delete", what, "--ignore-not-found", "--timeout=30s")
        self._plane.stop(self.name)

    def _account(self) -> list[dict[str, Any]]:
        meta = {"name": self.name, "namespace": self.name}
        group = "rbac.authorization.k8s.io"
        role = {"apiGroup": group, "kind": "ClusterRole", "name": self.name}
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
            {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": self.name},
             "roleRef": role, "subjects": [{"kind": "ServiceAccount", **meta}]},
        ]  # fmt: skip

    def _reachable(self, row: dict[str, Any]) -> dict[str, Any]:
        """A webhook configuration with the address of this process instead of a Service."""
        authority = base64.b64encode((self.folder / "ca.crt").read_bytes()).decode()
        row["metadata"]["name"] = f"{self.name}-{row['metadata']['name']}"
        if self.hooked is not None:
            row["webhooks"] = [hook for hook in row["webhooks"] if self.hooked & set(hook["rules"][0]["resources"])]
        for hook in row["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {"url": f"https://localhost:{self._port}{path}", "caBundle": authority}
            if "pods" in hook["rules"][0]["resources"]:
                # as in its makers' patches: nobody else's pods
                labelled = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
                hook["objectSelector"] = {"matchExpressions": [labelled]}
        return row

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self._health}/readyz", timeout=5).close()
                return
            except OSError as error:
                if time.monotonic() > deadline or not self._plane.running()[self.name]:
                    end = (self._plane.folder / f"{self.name}.log").read_text()[-2000:]
                    raise TimeoutError(f"{self.name} is not ready: {error}\n{end}") from error
                time.sleep(0.2)


class JobSets(Controller):
    """JobSet's controller and webhooks."""

    name, program, kind = "jobset", "jobset", "jobsets"

    def flags(self) -> list[str]:
        """A file says what flags cannot."""
        keys.serving(self.folder, "localhost")
        whole = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": self._port, "certDir": str(self.folder)},
        }
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(whole))  # JSON is YAML
        return [f"--config={path}", *super().flags()]


class PyTorchJobs(Controller):
    """PyTorchJob's controller."""

    name, program, kind = "training-operator", "training-operator", "pytorchjobs"


class Kueue(Controller):
    """Kueue's, of Jobs and JobSets, with its webhooks; JobSets are to be there already."""

    name, program, kind = "kueue", "kueue", "clusterqueues"
    hooked = frozenset({"jobs", "jobsets", "clusterqueues", "resourceflavors", "workloads", "cohorts"})

    def flags(self) -> list[str]:
        """A file says everything."""
        keys.serving(self.folder, "localhost")
        whole = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health}"},
            "webhook": {"host": "127.0.0.1", "port": self._port, "certDir": str(self.folder)},
            "clientConnection": {"qps": 200, "burst": 400},
            "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]},
        }
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(whole))
        return [f"--config={path}"]

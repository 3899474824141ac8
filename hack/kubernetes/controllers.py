"""Controllers of JobSet, PyTorchJob and Kueue, and Volcano's scheduler, as processes beside the
control plane.

Each has its kinds of objects and the rights of its own manifests, on a service account of its own.
The API server calls the webhooks of JobSet and Kueue, which fill in defaults, over loopback with a
certificate that is created here. PyTorchJob's webhooks only validate and are left out.
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

READY_S = 180.0
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


class Controller:
    """A controller for a control plane without a real node.

    name: of its tool, namespace and account.
    """

    name = program = kind = ""
    ready = "readyz"
    # resources whose webhooks are registered; None for all
    hooked: frozenset[str] | None = None

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.folder = plane.folder / self.name
        self._health, self._port = free_ports(2)
        self._defined: list[str] = []

    def up(self) -> None:
        """Start it and wait until it is ready. Raises NotBuilt, CommandFailed, TimeoutError."""
        import yaml  # as in plane.py

        program = tool(self.name, self.program)
        documents = list(
            filter(None, yaml.safe_load_all(Path(tool(self.name, "install.yaml")).read_text()))
        )
        self.folder.mkdir(exist_ok=True)
        hooks = [document for document in documents if document["kind"] in HOOKS]
        objects = [document for document in documents if document["kind"] not in HOOKS]
        for document in objects:
            if document["kind"] == "ClusterRole":
                document["metadata"]["name"] = self.name
            if document["kind"] == "CustomResourceDefinition":
                self._defined.append(document["metadata"]["name"])
        self._plane.apply([*objects, *self._account()])
        self._plane.insist("get", self.kind, "--all-namespaces")
        config = kubeconfig(self._plane, self.name, self.name, self.folder / "kubeconfig")
        self._plane.start(self.name, [program, *self.flags()], {"KUBECONFIG": str(config)})
        self._wait_ready()
        self._plane.apply([self._reachable(document) for document in hooks])
        self._defined += [
            f"{document['kind']}/{document['metadata']['name']}" for document in hooks
        ]

    def flags(self) -> list[str]:
        """Return its own flags."""
        return [f"--health-probe-bind-address=127.0.0.1:{self._health}"]

    def down(self) -> None:
        """End it, and delete its kinds with all their objects."""
        for name in reversed(self._defined):
            target = name if "/" in name else f"crd/{name}"
            self._plane.kubectl("delete", target, "--ignore-not-found", "--timeout=30s")
        self._plane.stop(self.name)

    def _account(self) -> list[dict[str, Any]]:
        meta = {"name": self.name, "namespace": self.name}
        group = "rbac.authorization.k8s.io"
        role = {"apiGroup": group, "kind": "ClusterRole", "name": self.name}
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": self.name},
                "roleRef": role,
                "subjects": [{"kind": "ServiceAccount", **meta}],
            },
        ]

    def _reachable(self, configuration: dict[str, Any]) -> dict[str, Any]:
        """Replace the Service in a webhook configuration by the address of this process."""
        authority = base64.b64encode((self.folder / "ca.crt").read_bytes()).decode()
        configuration["metadata"]["name"] = f"{self.name}-{configuration['metadata']['name']}"
        if self.hooked is not None:
            configuration["webhooks"] = [
                hook
                for hook in configuration["webhooks"]
                if self.hooked & set(hook["rules"][0]["resources"])
            ]
        for hook in configuration["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {
                "url": f"https://localhost:{self._port}{path}",
                "caBundle": authority,
            }
            if "pods" in hook["rules"][0]["resources"]:
                # as in JobSet's own kustomize patches: no webhook for pods of others
                labelled = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
                hook["objectSelector"] = {"matchExpressions": [labelled]}
        return configuration

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while True:
            try:
                urllib.request.urlopen(
                    f"http://127.0.0.1:{self._health}/{self.ready}", timeout=5
                ).close()
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
        """Write the configuration file, for settings that have no flag."""
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


class Volcano(Controller):
    """Volcano's scheduler, with its own queue `default`, actions and plugins."""

    name, program, kind, ready = "volcano", "scheduler", "podgroups", "healthz"

    def flags(self) -> list[str]:
        """Write the configuration file of its scheduler."""
        plugins = ("priority", "gang", "conformance", "overcommit", "drf", "predicates")
        names = (*plugins, "proportion", "nodeorder", "binpack")
        whole = {
            "actions": "enqueue, allocate, backfill",
            "tiers": [{"plugins": [{"name": name} for name in names]}],
        }
        path = self.folder / "scheduler.yaml"
        path.write_text(json.dumps(whole))
        return [
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            f"--scheduler-conf={path}",
            "--leader-elect=false",
            "--enable-healthz=true",
            f"--healthz-address=127.0.0.1:{self._health}",
            "--cache-dumper=false",
            "--logtostderr",
        ]


class Kueue(Controller):
    """Kueue's controller of Jobs and JobSets, with its webhooks.

    JobSet's controller must run already.
    """

    name, program, kind = "kueue", "kueue", "clusterqueues"
    hooked = frozenset(
        {"jobs", "jobsets", "clusterqueues", "resourceflavors", "workloads", "cohorts"}
    )

    def flags(self) -> list[str]:
        """Write the configuration file, which has all settings."""
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

"""Volcano's scheduler as a process beside the control plane.

It has its kinds of objects and the rights of its own manifests, on a service account of its own.
"""

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

from hack.kubernetes.accounts import kubeconfig
from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.process import free_ports, tool

READY_S = 180.0
# Of its tool, process, namespace and account.
NAME = "volcano"


class Volcano:
    """The scheduler of a control plane without a real node, with its own queue `default`."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._folder = plane.folder / NAME
        (self._health,) = free_ports(1)
        self._defined: list[str] = []

    def up(self) -> None:
        """Start it and wait until it is ready. Raises NotBuilt, CommandFailed, TimeoutError."""
        import yaml  # as in plane.py

        program = tool(NAME, "scheduler")
        objects = list(
            filter(None, yaml.safe_load_all(Path(tool(NAME, "install.yaml")).read_text()))
        )
        self._folder.mkdir(exist_ok=True)
        for document in objects:
            if document["kind"] == "ClusterRole":
                document["metadata"]["name"] = NAME
            if document["kind"] == "CustomResourceDefinition":
                self._defined.append(document["metadata"]["name"])
        self._plane.apply([*objects, *_account()])
        self._plane.insist("get", "podgroups", "--all-namespaces")
        config = kubeconfig(self._plane, NAME, NAME, self._folder / "kubeconfig")
        self._plane.start(NAME, [program, *self._flags(config)], {"KUBECONFIG": str(config)})
        self._wait_ready()

    def down(self) -> None:
        """End it, and delete its kinds with all their objects."""
        for name in reversed(self._defined):
            self._plane.kubectl("delete", f"crd/{name}", "--ignore-not-found", "--timeout=30s")
        self._plane.stop(NAME)

    def _flags(self, config: Path) -> list[str]:
        """Write the scheduler's own actions and plugins into a file; return its flags."""
        plugins = ("priority", "gang", "conformance", "overcommit", "drf", "predicates")
        names = (*plugins, "proportion", "nodeorder", "binpack")
        whole = {
            "actions": "enqueue, allocate, backfill",
            "tiers": [{"plugins": [{"name": name} for name in names]}],
        }
        path = self._folder / "scheduler.yaml"
        path.write_text(json.dumps(whole))  # JSON is YAML
        return [
            f"--kubeconfig={config}",
            f"--scheduler-conf={path}",
            "--leader-elect=false",
            "--enable-healthz=true",
            f"--healthz-address=127.0.0.1:{self._health}",
            "--cache-dumper=false",
            "--logtostderr",
        ]

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while True:
            try:
                urllib.request.urlopen(
                    f"http://127.0.0.1:{self._health}/healthz", timeout=5
                ).close()
                return
            except OSError as error:
                if time.monotonic() > deadline or not self._plane.running()[NAME]:
                    end = (self._plane.folder / f"{NAME}.log").read_text()[-2000:]
                    raise TimeoutError(f"{NAME} is not ready: {error}\n{end}") from error
                time.sleep(0.2)


def _account() -> list[dict[str, Any]]:
    meta = {"name": NAME, "namespace": NAME}
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": NAME}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **meta}],
        },
    ]

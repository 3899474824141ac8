"""Real processes on this machine for pods on fake nodes.

kwok sets pods to Running without running anything. This module runs the commands of init containers
and container of each such pod of a namespace, with the environment (from Secrets and fields too),
the loopback address of the pod's Service, restarts and grace period. Probes, limits, users and
images are not simulated.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from hack.kubernetes.accounts import kubeconfig
from hack.kubernetes.names import Names, with_names_file
from hack.kubernetes.node import NAME as REAL
from hack.kubernetes.plane import CommandFailed, ControlPlane
from hack.kubernetes.process import NotBuilt
from hack.kubernetes.watch import Watch

RESTART_S = 1.0
SERVERS = ("valkey-server", "redis-server")


class Pods:
    """Processes for the pods of one namespace, as a context manager.

    python: has scaletest installed.
    """

    def __init__(
        self, plane: ControlPlane, names: Names, namespace: str, python: str = sys.executable
    ) -> None:
        self._plane, self._names, self.namespace, self._python = plane, names, namespace, python
        self._pods: dict[str, _Pod] = {}
        self._ended: list[_Pod] = []
        self._watch: Watch | None = None

    def __enter__(self) -> Pods:
        self._watch = Watch(
            self._plane, f"/api/v1/namespaces/{self.namespace}/pods?watch=true", self._see
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._watch:
            self._watch.close()
        for pod in [*self._pods.values(), *self._ended]:
            pod.end()
        for pod in [*self._pods.values(), *self._ended]:
            pod.join()

    def get(self, kind: str, name: str = "") -> Any:
        """Get an object of the namespace, or all objects of a kind."""
        return json.loads(
            self._plane.kubectl(
                "-n", self.namespace, "get", kind, *filter(None, [name]), "-o", "json"
            )
        )

    def secret(self, name: str, key: str) -> str:
        """Return the text under a key of a Secret."""
        return base64.b64decode(self.get("secret", name)["data"][key]).decode()

    def _see(self, kind: str, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        name = meta["name"]
        if kind == "DELETED" or "deletionTimestamp" in meta:
            if name in self._pods:
                gone = self._pods.pop(name)
                gone.end()
                self._ended.append(gone)
        elif (
            pod["status"].get("phase") == "Running"
            and name not in self._pods
            and pod["spec"]["nodeName"] != REAL
        ):
            self._pods[name] = _Pod(self, pod)
            self._pods[name].start()

    def line(
        self, pod: dict[str, Any], container: dict[str, Any], folder: Path
    ) -> tuple[list[str], dict[str, str]]:
        """Translate a container's command line and environment to this machine."""
        environment = self._environment(pod, container)
        arguments = [*container.get("command", []), *container.get("args", [])]
        address = self._address(pod)
        if container.get("command"):
            # the chart's only container with a command is Redis
            options = [self._here(pod, container, folder, argument) for argument in arguments[1:]]
            line = [_server(), *options, "--bind", address]
        else:
            options = [argument.replace("0.0.0.0", address) for argument in arguments]
            line = [self._python, "-m", "scaletest", *options]
        if pod["spec"].get("automountServiceAccountToken"):
            account = pod["spec"]["serviceAccountName"]
            environment["KUBECONFIG"] = str(
                kubeconfig(self._plane, self.namespace, account, folder / "kubeconfig")
            )
        return with_names_file(self._names.within(self.namespace), line), environment

    def folder(self, pod: dict[str, Any]) -> Path:
        """Return the folder of the pod's files and its log."""
        folder = self._plane.folder / "pods" / self.namespace / pod["metadata"]["name"]
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _address(self, pod: dict[str, Any]) -> str:
        labels = pod["metadata"].get("labels", {}).items()
        for service in self.get("services")["items"]:
            selector = service["spec"].get("selector") or {}
            if selector and selector.items() <= labels:
                return self._names.address(self.namespace, service["metadata"]["name"])
        return "127.0.0.1"

    def _environment(self, pod: dict[str, Any], container: dict[str, Any]) -> dict[str, str]:
        environment: dict[str, str] = {}
        fields = {
            "spec.nodeName": pod["spec"]["nodeName"],
            "metadata.name": pod["metadata"]["name"],
        }
        for variable in container.get("env", []):
            source = variable.get("valueFrom", {})
            if "secretKeyRef" in source:
                text = self.secret(source["secretKeyRef"]["name"], source["secretKeyRef"]["key"])
            elif "fieldRef" in source:
                text = fields[source["fieldRef"]["fieldPath"]]
            else:
                text = re.sub(
                    r"\$\((\w+)\)", lambda m: environment.get(m[1], m[0]), variable.get("value", "")
                )
            environment[variable["name"]] = text
        return environment

    def _here(self, pod: dict[str, Any], container: dict[str, Any], folder: Path, text: str) -> str:
        """Replace the paths of volumes in a text by folders here that have the volumes' files."""
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        mounts = sorted(
            container.get("volumeMounts", []), key=lambda mount: -len(mount["mountPath"])
        )
        for mount in mounts:
            text = text.replace(mount["mountPath"], str(folder / mount["name"]))
        for mount in mounts:
            source, target = volumes[mount["name"]], folder / mount["name"]
            if target.exists():
                continue
            target.mkdir()
            if "configMap" in source:
                for name, content in self.get("configmap", source["configMap"]["name"])[
                    "data"
                ].items():
                    (target / name).write_text(self._here(pod, container, folder, content))
            for key in source.get("secret", {}).get("items", []):
                (target / key["path"]).write_text(
                    self.secret(source["secret"]["secretName"], key["key"])
                )
        return text


class _Pod(threading.Thread):
    """Runs init containers until they succeed, then the container until the pod is deleted."""

    def __init__(self, pods: Pods, pod: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._pods, self._pod = pods, pod
        self._gone = threading.Event()

    def end(self) -> None:
        """Let it stop within its grace period."""
        self._gone.set()

    def run(self) -> None:
        folder = self._pods.folder(self._pod)
        for container in self._pod["spec"].get("initContainers", []):
            while not self._gone.is_set() and self._once(container, folder):
                self._gone.wait(RESTART_S)
        while not self._gone.is_set():
            self._once(self._pod["spec"]["containers"][0], folder)
            self._gone.wait(RESTART_S)

    def _once(self, container: dict[str, Any], folder: Path) -> int:
        try:
            line, environment = self._pods.line(self._pod, container, folder)
        except CommandFailed as error:
            (folder / "log").write_text(f"{error}\n")
            return 1
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                line,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )
        while process.poll() is None and not self._gone.wait(0.1):
            pass
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(self._pod["spec"].get("terminationGracePeriodSeconds", 30))
            except subprocess.TimeoutExpired:
                process.kill()
        return process.wait()


def _server() -> str:
    for name in SERVERS:
        path = shutil.which(name)
        if path:
            return path
    raise NotBuilt(
        f"neither {' nor '.join(SERVERS)} is installed on this machine; apt-get install"
        " redis-server"
    )

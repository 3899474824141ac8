"""Real processes for pods on fake nodes: a release's workers, exporter, client and Redis run on this machine.

kwok makes a pod Running without running anything. Here each such pod of a namespace gets its init containers' and its
container's command, environment (with Secrets and fields), the loopback address of its Service, restarts, and its grace
period. Probes, limits, users and images are not played.
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
from hack.kubernetes.names import Names, seeing
from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.process import NotBuilt
from hack.kubernetes.watch import Watch

RESTART_S = 1.0
SERVERS = ("valkey-server", "redis-server")


class Pods:
    """Processes for the pods of one namespace. Use it as a context; python has scaletest installed."""

    def __init__(self, plane: ControlPlane, names: Names, namespace: str, python: str = sys.executable) -> None:
        self._plane, self._names, self.namespace, self._python = plane, names, namespace, python
        self._pods: dict[str, _Pod] = {}
        self._ended: list[_Pod] = []
        self._watch: Watch | None = None

    def __enter__(self) -> Pods:
        self._watch = Watch(self._plane, f"/api/v1/namespaces/{self.namespace}/pods?watch=true", self._see)
        return self

    def __exit__(self, *_: object) -> None:
        if self._watch:
            self._watch.close()
        for pod in [*self._pods.values(), *self._ended]:
            pod.end()
        for pod in [*self._pods.values(), *self._ended]:
            pod.join()

    def get(self, what: str, name: str = "") -> Any:
        """An object of the namespace, or a list."""
        return json.loads(self._plane.kubectl("-n", self.namespace, "get", what, *filter(None, [name]), "-o", "json"))

    def secret(self, name: str, key: str) -> str:
        """What a Secret holds."""
        return base64.b64decode(self.get("secret", name)["data"][key]).decode()

    def _see(self, kind: str, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        name = meta["name"]
        if kind == "DELETED" or "deletionTimestamp" in meta:
            if name in self._pods:
                gone = self._pods.pop(name)
                gone.end()
                self._ended.append(gone)
        elif pod.get("status", {}).get("phase") == "Running" and name not in self._pods:
            self._pods[name] = _Pod(self, pod)
            self._pods[name].start()

    def line(self, pod: dict[str, Any], container: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
        """A container's command line and environment here."""
        environment = self._environment(pod, container)
        arguments = [*container.get("command", []), *container.get("args", [])]
        address = self._address(pod)
        if container.get("command"):
            line = [_server(), *(self._here(pod, container, folder, one) for one in arguments[1:]), "--bind", address]
        else:
            line = [self._python, "-m", "scaletest", *(one.replace("0.0.0.0", address) for one in arguments)]
        if pod["spec"].get("automountServiceAccountToken"):
            account = pod["spec"]["serviceAccountName"]
            environment["KUBECONFIG"] = str(kubeconfig(self._plane, self.namespace, account, folder / "kubeconfig"))
        return seeing(self._names.within(self.namespace), line), environment

    def folder(self, pod: dict[str, Any]) -> Path:
        """Where its files and its log are."""
        made = self._plane.folder / "pods" / self.namespace / pod["metadata"]["name"]
        made.mkdir(parents=True, exist_ok=True)
        return made

    def _address(self, pod: dict[str, Any]) -> str:
        labels = pod["metadata"].get("labels", {}).items()
        for service in self.get("services")["items"]:
            selector = service["spec"].get("selector") or {}
            if selector and selector.items() <= labels:
                return self._names.address(self.namespace, service["metadata"]["name"])
        return "127.0.0.1"

    def _environment(self, pod: dict[str, Any], container: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        fields = {"spec.nodeName": pod["spec"]["nodeName"], "metadata.name": pod["metadata"]["name"]}
        for one in container.get("env", []):
            source = one.get("valueFrom", {})
            if "secretKeyRef" in source:
                value = self.secret(source["secretKeyRef"]["name"], source["secretKeyRef"]["key"])
            elif "fieldRef" in source:
                value = fields[source["fieldRef"]["fieldPath"]]
            else:
                value = re.sub(r"\$\((\w+)\)", lambda m: found.get(m[1], m[0]), one.get("value", ""))
            found[one["name"]] = value
        return found

    def _here(self, pod: dict[str, Any], container: dict[str, Any], folder: Path, text: str) -> str:
        """A text with the container's paths: those of its volumes become folders here, with what they hold."""
        volumes = {one["name"]: one for one in pod["spec"].get("volumes", [])}
        mounts = sorted(container.get("volumeMounts", []), key=lambda one: -len(one["mountPath"]))
        for mount in mounts:
            text = text.replace(mount["mountPath"], str(folder / mount["name"]))
        for mount in mounts:
            held, here = volumes[mount["name"]], folder / mount["name"]
            if here.exists():
                continue
            here.mkdir()
            if "configMap" in held:
                for name, value in self.get("configmap", held["configMap"]["name"])["data"].items():
                    (here / name).write_text(self._here(pod, container, folder, value))
            for item in held.get("secret", {}).get("items", []):
                (here / item["path"]).write_text(self.secret(held["secret"]["secretName"], item["key"]))
        return text


class _Pod(threading.Thread):
    """Init containers until they succeed, then the container again and again, until the pod goes."""

    def __init__(self, pods: Pods, pod: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._pods, self._pod = pods, pod
        self._gone = threading.Event()

    def end(self) -> None:
        """Have it stop within its grace period."""
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
        line, environment = self._pods.line(self._pod, container, folder)
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
    raise NotBuilt(f"there is no {' or '.join(SERVERS)} on this machine; apt-get install redis-server")

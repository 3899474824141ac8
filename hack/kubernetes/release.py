"""The chart as a release in a namespace of its own, and the history of its workers.

Its pods on fake nodes get real processes; on a real node they are containers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from typing import Any

from hack.kubernetes.names import Names
from hack.kubernetes.plane import CommandFailed, ControlPlane
from hack.kubernetes.pods import Pods
from hack.kubernetes.process import ROOT, tool
from hack.kubernetes.watch import Watch

CHART = ROOT / "charts" / "scaletest"
NAME, QUEUE = "bench", "sleep"
DEPLOYMENT, EXPORTER = f"{NAME}-scaletest-{QUEUE}-worker", f"{NAME}-scaletest-exporter"
# These clusters have no storage, and the load comes from outside the release.
ALWAYS = ("redis.persistence.enabled=false", f"queues.{QUEUE}.client.enabled=false")
# A namespace admits pods only when the controller manager has created this account.
READY = ("wait", "--for=create", "serviceaccount/default", "--timeout=60s")


class Release:
    """A release as a context manager.

    example: one of the chart's examples. settings: as for --set. history: the numbers of workers
    that were wanted, one after the other.
    """

    def __init__(self, plane: ControlPlane, names: Names, example: str, *settings: str) -> None:
        self._plane, self._names = plane, names
        self._example, self._settings = CHART / "examples" / f"{example}.yaml", settings
        self.namespace = f"{example}-{uuid.uuid4().hex[:6]}"
        self.pods = Pods(plane, names, self.namespace)
        box = plane.node.box
        self._network = box.network() if box.running() else []
        self.history: list[int] = []
        self._seen = threading.Event()

    def __enter__(self) -> Release:
        self._plane.kubectl("create", "namespace", self.namespace)
        self._plane.kubectl("-n", self.namespace, *READY)
        settings = [f"--set={setting}" for setting in (*ALWAYS, *self._settings)]
        self._helm("install", NAME, str(CHART), "-f", str(self._example), *settings)
        for service in self.pods.get("services")["items"]:
            self._names.address(self.namespace, service["metadata"]["name"])
        self.pods.__enter__()
        at = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        self._watch = Watch(
            self._plane, f"{at}?watch=true&fieldSelector=metadata.name={DEPLOYMENT}", self._see
        )
        self._seen.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close()
        try:
            # while its pods run: the operator must remove its finalizers
            self._helm("uninstall", NAME, "--wait", "--timeout=60s")
        finally:
            self.pods.__exit__()
            self._plane.kubectl("delete", "namespace", self.namespace, "--wait=false")

    @property
    def wanted(self) -> int:
        """The number of workers that are wanted now."""
        return self.history[-1]

    def redis_url(self, role: str) -> str:
        """Return the URL of the release's Redis for one of its users.

        With a real node only the node's network reaches it.
        """
        service = f"{NAME}-redis"
        password = self.pods.secret(service, f"password-{role}")
        if self._network:
            address = self.pods.get("service", service)["spec"]["clusterIP"]
        else:
            address = self._names.address(self.namespace, service)
        return f"redis://{role}:{password}@{address}:6379/0"

    def declared(self) -> bool:
        """Check whether the queue is declared, so that requests can be submitted."""
        done = self._scaletest(
            "queue", "--redis-url", self.redis_url("client"), "list", "--format", "json"
        )
        return not done.returncode and any(
            queue["name"] == QUEUE for queue in json.loads(done.stdout)
        )

    def burst(self, requests: int, seconds: float) -> dict[str, Any]:
        """Submit requests at once, wait for all, and return the client's statistics.

        seconds: of each request.
        """
        line = [
            "client",
            "--queue",
            QUEUE,
            "--batch",
            str(requests),
            "--listen",
            "none",
            "--format",
            "json",
        ]
        done = self._scaletest(*line, "--redis-url", self.redis_url("client"), "--", str(seconds))
        if done.returncode:
            raise AssertionError(
                f"the client ended with {done.returncode}: {done.stdout}{done.stderr}"
            )
        return dict(json.loads(done.stdout))

    def reasons(self, *kinds: str) -> set[str]:
        """Return the reasons of the events of autoscalers of these kinds."""
        events = self.pods.get("events")["items"]
        return {event["reason"] for event in events if event["involvedObject"]["kind"] in kinds}

    def _scaletest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [*self._network, sys.executable, "-m", "scaletest", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    def _see(self, kind: str, deployment: dict[str, Any]) -> None:
        wanted = int(deployment["spec"].get("replicas", 1))
        if kind != "DELETED" and (not self.history or self.history[-1] != wanted):
            self.history.append(wanted)
            self._seen.set()

    def _helm(self, *arguments: str) -> None:
        line = [
            tool("helm4", "helm"),
            "--kubeconfig",
            str(self._plane.kubeconfig),
            "-n",
            self.namespace,
            *arguments,
        ]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandFailed(f"helm {arguments[0]}: {done.stderr}")

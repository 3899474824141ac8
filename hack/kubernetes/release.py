"""The chart as a release of its own namespace, and what happens to its workers. Its pods on fake nodes get real
processes; on a real node they are containers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

from hack.kubernetes.names import Names
from hack.kubernetes.plane import ControlPlane, Refused
from hack.kubernetes.pods import Pods
from hack.kubernetes.process import ROOT, tool
from hack.kubernetes.watch import Watch

CHART = ROOT / "charts" / "scaletest"
NAME, QUEUE = "bench", "sleep"
DEPLOYMENT, EXPORTER = f"{NAME}-scaletest-{QUEUE}", f"{NAME}-scaletest-exporter"
# There is no storage here; who loads the queue is outside.
ALWAYS = ("redis.persistence.enabled=false", f"queues.{QUEUE}.client.enabled=false")
# A namespace admits pods only when the controller manager has made this.
READY = ("wait", "--for=create", "serviceaccount/default", "--timeout=60s")


class Release:
    """Use it as a context. example: of the chart's; settings: as for --set; history: seconds, and workers wanted."""

    def __init__(self, plane: ControlPlane, names: Names, example: str, *settings: str) -> None:
        self._plane, self._names = plane, names
        self._example, self._settings = CHART / "examples" / f"{example}.yaml", settings
        self.namespace = f"{example}-{uuid.uuid4().hex[:6]}"
        self.pods = Pods(plane, names, self.namespace)
        box = plane.node.box
        self._network = box.network() if box.running() else []
        self.history: list[tuple[float, int]] = []
        self._seen = threading.Event()
        self._began = time.monotonic()

    def __enter__(self) -> Release:
        self._plane.kubectl("create", "namespace", self.namespace)
        self._plane.kubectl("-n", self.namespace, *READY)
        given = [word for one in (*ALWAYS, *self._settings) for word in ("--set", one)]
        self._helm("install", NAME, str(CHART), "-f", str(self._example), *given)
        for service in self.pods.get("services")["items"]:
            self._names.address(self.namespace, service["metadata"]["name"])
        self.pods.__enter__()
        at = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        self._watch = Watch(self._plane, f"{at}?watch=true&fieldSelector=metadata.name={DEPLOYMENT}", self._see)
        self._seen.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close()
        try:
            # while its pods are served: an operator must let go of what it made
            self._helm("uninstall", NAME, "--wait", "--timeout=60s")
        finally:
            self.pods.__exit__()
            self._plane.kubectl("delete", "namespace", self.namespace, "--wait=false")

    def age_s(self) -> float:
        """Seconds since it was made: the clock of its history."""
        return round(time.monotonic() - self._began, 1)

    @property
    def wanted(self) -> int:
        """How many workers are wanted now."""
        return self.history[-1][1]

    def redis_url(self, role: str) -> str:
        """The release's Redis for one of its users. With a real node it can be reached in the node's network only."""
        service = f"{NAME}-redis"
        password = self.pods.secret(service, f"password-{role}")
        if self._network:
            address = self.pods.get("service", service)["spec"]["clusterIP"]
        else:
            address = self._names.address(self.namespace, service)
        return f"redis://{role}:{password}@{address}:6379/0"

    def declared(self) -> bool:
        """Whether requests can be submitted."""
        done = self._scaletest("queue", "list", "-o", "json", "--redis-url", self.redis_url("client"))
        return not done.returncode and any(row["name"] == QUEUE for row in json.loads(done.stdout))

    def burst(self, requests: int, seconds: float) -> dict[str, Any]:
        """Submit so many requests at once and wait for all; the client's statistics."""
        line = ["client", "--queue", QUEUE, "--batch", str(requests), "--listen", "none", "-o", "json"]
        done = self._scaletest(*line, "--redis-url", self.redis_url("client"), "--", str(seconds))
        if done.returncode:
            raise AssertionError(f"the client ended with {done.returncode}: {done.stdout}{done.stderr}")
        return dict(json.loads(done.stdout))

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """What the autoscalers say they did: seconds, object, reason and message, in order of time."""
        rows = [row for row in self.pods.get("events")["items"] if row["involvedObject"]["kind"] in kinds]
        rows.sort(key=lambda row: row.get("firstTimestamp") or row["eventTime"])
        return [
            {
                "at": row.get("firstTimestamp") or row["eventTime"],
                "count": row.get("count") or 1,
                "object": row["involvedObject"]["kind"],
                "reason": row["reason"],
                "message": row.get("message") or row.get("note", ""),
            }
            for row in rows
        ]

    def _scaletest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [*self._network, sys.executable, "-m", "scaletest", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    def _see(self, kind: str, deployment: dict[str, Any]) -> None:
        wanted = int(deployment["spec"].get("replicas", 1))
        if kind != "DELETED" and (not self.history or self.history[-1][1] != wanted):
            self.history.append((self.age_s(), wanted))
            self._seen.set()

    def _helm(self, *arguments: str) -> None:
        line = [tool("helm4", "helm"), "--kubeconfig", str(self._plane.kubeconfig), "-n", self.namespace, *arguments]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(f"helm {arguments[0]}: {done.stderr}")

"""One Deployment: its number of pods, their states, and why it is not ready. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.cluster.connection import Cluster, Raw
from scaletest.cluster.objects import DEPLOYMENTS, EVENTS, PODS, read_log
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod. reason: why it is not ready, "" when unknown. container: the one that is not ready.

    since: when it became ready or not ready, as the API server writes it; "" when unknown.
    """

    name: str
    node: str
    phase: str
    ready: bool
    going: bool
    reason: str = ""
    container: str = ""
    restarts: int = 0
    since: str = ""

    def __str__(self) -> str:
        state = "ready" if self.ready else self.phase
        if self.going:
            state = "terminating"
        why = f": {self.reason}" if self.reason and not self.ready else ""
        again = f", {self.restarts} restarts" if self.restarts else ""
        return f"pod {self.name} on {self.node or 'no node'} is {state}{why}{again}"


def pod_state(pod: dict[str, Any]) -> PodState:
    """Parse a Pod object."""
    status, meta, spec = pod.get("status", {}), pod["metadata"], pod.get("spec", {})
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    failing, reason = _first_failure(status)
    scheduled = conditions.get("PodScheduled", {})
    if not reason and scheduled.get("status") == "False":
        reason = f"{scheduled.get('reason', '')}: {scheduled.get('message', '')}"
    ready = conditions.get("Ready", {})
    return PodState(
        name=meta["name"],
        node=spec.get("nodeName", ""),
        phase=status.get("phase", "Unknown"),
        ready=ready.get("status") == "True",
        going="deletionTimestamp" in meta,
        reason=cut(reason, 300),
        container=failing or spec.get("containers", [{}])[0].get("name", ""),
        restarts=sum(container.get("restartCount", 0) for container in _containers(status)),
        since=str(ready.get("lastTransitionTime") or ""),
    )


@dataclass(frozen=True, slots=True)
class PodWarning:
    """An event of type Warning about a pod. text: reason and message. count: how often so far."""

    uid: str
    pod: str
    text: str
    count: int


def _pod_warning(event: dict[str, Any]) -> PodWarning:
    """Parse an Event object; newer ones count in their series."""
    series = event.get("series") or {}
    return PodWarning(
        uid=event["metadata"].get("uid", ""),
        pod=event.get("involvedObject", {}).get("name", ""),
        text=cut(f"{event.get('reason')}: {event.get('message', '')}", 200),
        count=event.get("count") or series.get("count") or 1,
    )


def first_failing(pods: Sequence[PodState]) -> PodState | None:
    """The pod to explain first: one that restarts, else one that is not ready."""
    waiting = [pod for pod in pods if not pod.ready and not pod.going]
    return max(waiting, key=lambda pod: (pod.restarts > 0, bool(pod.reason)), default=None)


def _containers(status: dict[str, Any]) -> list[dict[str, Any]]:
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def _first_failure(status: dict[str, Any]) -> tuple[str, str]:
    """The first container that waits or failed, and why."""
    for container in _containers(status):
        state = container.get("state", {})
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return container["name"], f"{waiting['reason']} {waiting.get('message', '')}".strip()
        if ended and ended.get("exitCode"):
            return container[
                "name"
            ], f"exit code {ended['exitCode']} {ended.get('message', '')}".strip()
    return "", ""


LOG_LINES = 15


def templates(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The pod template of every Deployment in the namespace.

    Needs the right to list deployments.
    """
    path = DEPLOYMENTS.path(cluster.namespace)
    return {
        deployment["metadata"]["name"]: deployment["spec"]["template"]
        for deployment in Raw(cluster).objects(path, DEPLOYMENTS.plural)
    }


class Deployment:
    """A Deployment of workers."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name, self.namespace = name, cluster.namespace
        self._raw = Raw(cluster)
        self._title = f"deployment {name} in namespace {cluster.namespace}"
        deployment = self._read()
        self.template: dict[str, Any] = deployment["spec"]["template"]
        self.annotations: dict[str, str] = deployment["metadata"].get("annotations", {})
        self.selector = ",".join(
            f"{key}={label}"
            for key, label in deployment["spec"]["selector"].get("matchLabels", {}).items()
        )

    def replicas(self) -> int:
        """The desired number of pods."""
        return int(self._read()["spec"].get("replicas", 0))

    def pods(self) -> list[PodState]:
        """Its pods, terminating ones included, but not those of Jobs with the same labels."""
        pods = self._raw.get(
            PODS.path(self.namespace),
            f"list the pods of {self._title}",
            "list pods",
            labelSelector=self.selector,
        )
        return [
            pod_state(pod)
            for pod in pods["items"]
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]

    def placed(self) -> int:
        """The number of its pods that are on a node and stay there."""
        return sum(not pod.going and bool(pod.node) for pod in self.pods())

    def warnings(self) -> list[PodWarning]:
        """Warnings about pods of the namespace, its own among them. Needs the right to list
        events.
        """
        events = self._raw.objects(
            EVENTS.path(self.namespace),
            EVENTS.plural,
            fieldSelector="involvedObject.kind=Pod,type=Warning",
        )
        return list(map(_pod_warning, events))

    def trouble(self) -> str:
        """States of the pods; of the first failing one also events and the end of its log."""
        pods = self.pods()
        lines = [str(pod) for pod in pods] or ["there is no pod"]
        failing = first_failing(pods)
        if failing:
            for read in (self._events, self._log):
                try:
                    lines += read(failing)
                except ScaletestError as error:
                    lines.append(f"({error.message})")
        return "\n  ".join(lines)

    def _read(self) -> dict[str, Any]:
        path = DEPLOYMENTS.path(self.namespace, self.name)
        return self._raw.get(path, f"read {self._title}", "get deployments")

    def _events(self, failing: PodState) -> list[str]:
        events = self._raw.objects(
            EVENTS.path(self.namespace),
            EVENTS.plural,
            fieldSelector=f"involvedObject.name={failing.name}",
            limit="20",
        )
        return [f"event {event.get('reason')}: {event.get('message', '')}" for event in events][-5:]

    def _log(self, failing: PodState) -> list[str]:
        query = {"tailLines": str(LOG_LINES), "container": failing.container}
        if failing.restarts:
            query["previous"] = "true"
        status, text = read_log(self._raw, self.namespace, failing.name, **query)
        if status == 403:
            return ["(no log: we may not get pods/log)"]
        if status != 200:
            return [f"(no log: {status})"]
        return [f"log {line}" for line in text.splitlines()]

"""Change settings of a Deployment's pods for a measurement.

CPU and memory are set as both requests and limits, so a pod gets exactly what is measured. Other
settings, such as the concurrency, are set where the program reads them: in variables or arguments.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.cluster.changes import Changes, Patch
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.cluster.pod_requests import container_requests, parse_quantity
from scaletest.cluster.resources import DEPLOYMENTS, Resource
from scaletest.model.errors import WaitTimeout

POD_METRICS = Resource("PodMetrics", "/apis/metrics.k8s.io/v1beta1", "pods", True)


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a pod."""

    cpu: float  # cores
    memory: float  # bytes


class Tuning:
    """Tuning of the first container of a Deployment.

    Needs the right to get pods.metrics.k8s.io.
    """

    def __init__(
        self,
        cluster: Cluster,
        deployment: Deployment,
        scalers: Autoscalers,
        changes: Changes,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = ApiCalls(cluster)
        self._deployment, self._scalers, self._changes = deployment, scalers, changes
        self._clock, self._sleep = clock, sleep
        self._original = deployment.template["spec"]["containers"][0]
        self.replicas = deployment.replicas()  # before any change

    def resources(self) -> tuple[float, float]:
        """Return the cores and bytes that the container requests; 0 where it has no request."""
        requested = container_requests(self._original)
        return float(requested.get("cpu", 0)), float(requested.get("memory", 0))

    def apply(self, setting: Mapping[str, str]) -> None:
        """Apply a setting: cpu, memory, replicas, variables and arguments.

        All settings of a tuning name the same of these, so that each replaces the one before.
        """
        container = {**container_changes(self._original, setting), "name": self._original["name"]}
        spec = {
            "replicas": int(setting.get("replicas", self.replicas)),
            "template": {"spec": {"containers": [container]}},
        }
        self._scalers.scale(Patch(spec), self._changes)

    def wait(self, patience_s: float, stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait until all pods have the setting and are ready, or `stopped`. Raises WaitTimeout."""
        deadline = self._clock() + patience_s
        while not stopped() and not self._is_settled():
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"{self._deployment.name} did not become ready within {patience_s:.0f} s\n"
                    f"  {self._deployment.trouble()}",
                    hint="raise <ready_timeout>, or leave this setting out",
                )
            self._sleep(0.5)

    def usage(self) -> list[Usage]:
        """Return the current usage of each pod by the metrics API. Raises as `ApiCalls.get`."""
        metrics = self._api.get(
            POD_METRICS.path(self._deployment.namespace),
            "read the usage of pods",
            "list pods.metrics.k8s.io",
            labelSelector=self._deployment.selector,
        )["items"]
        usages = []
        for pod in metrics:
            containers = [container["usage"] for container in pod["containers"]]
            usages.append(
                Usage(
                    cpu=sum(float(parse_quantity(usage["cpu"])) for usage in containers),
                    memory=sum(float(parse_quantity(usage["memory"])) for usage in containers),
                )
            )
        return usages

    def _is_settled(self) -> bool:
        """Return whether all pods have the setting and are ready, as kubectl rollout does."""
        deployment = self._api.get(
            DEPLOYMENTS.path(self._deployment.namespace, self._deployment.name),
            f"read deployment {self._deployment.name}",
            "get deployments",
        )
        status, wanted = deployment.get("status", {}), deployment["spec"].get("replicas", 0)
        if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
            return False  # the status is older than the setting
        return all(
            status.get(name, 0) == wanted
            for name in ("updatedReplicas", "readyReplicas", "replicas")
        )


def container_changes(container: Mapping[str, Any], setting: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a container that the setting changes."""
    changes: dict[str, Any] = {}
    if amounts := {name: setting[name] for name in ("cpu", "memory") if name in setting}:
        changes["resources"] = {"requests": amounts, "limits": amounts}
    for name, value in setting.items():
        if name.startswith("-"):
            changes["args"] = with_argument(
                changes.get("args", container.get("args", [])), name, value
            )
        elif name not in ("cpu", "memory", "replicas"):
            # a variable that was read from elsewhere has a value of its own now
            changes.setdefault("env", []).append({"name": name, "value": value, "valueFrom": None})
    return changes


def with_argument(arguments: list[str], name: str, text: str) -> list[str]:
    """Return the arguments with NAME=VALUE or NAME VALUE, as it is written; appended if missing."""
    changed = list(arguments)
    for index, word in enumerate(changed):
        if word.startswith(f"{name}="):
            changed[index] = f"{name}={text}"
            return changed
        if word == name and index + 1 < len(changed):
            changed[index + 1] = text
            return changed
    return [*changed, f"{name}={text}"]

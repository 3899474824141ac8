"""Tuning: change settings of a Deployment's pods for a measurement, and restore them.

CPU and memory are set as both requests and limits, so a pod gets exactly what is measured.
Concurrency is set where the service reads it: in a variable or an argument. The original settings
are stored in an annotation (`tuning_backup`), so that a later command can restore them if this one
is killed.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from scaletest.cluster.cadvisor import Cadvisor
from scaletest.cluster.capacity import quantity
from scaletest.cluster.connection import Busy, Cluster
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.raw import Raw
from scaletest.cluster.tuning_backup import BackupAnnotation, TuningBackup, with_variable
from scaletest.model.errors import ScaletestError, UsageError, WaitTimeout

INTERVAL_S = 0.5
RESTORE_TRIES, RESTORE_S = 20, 3.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a pod: cores, None when only its memory is known, and bytes."""

    pod: str
    cpu: float | None
    memory: float


class Tuning:
    """Tuning of one container of a Deployment.

    Needs the rights to patch deployments and to get pods.metrics.k8s.io.
    """

    def __init__(
        self,
        cluster: Cluster,
        deployment: Deployment,
        container: str = "",
        *,
        env: str = "",
        argument: str = "",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._raw = Raw(cluster)
        self._cadvisor = Cadvisor(cluster)
        self._deployment = deployment
        self._env, self._argument = env, argument
        self._clock, self._sleep = clock, sleep
        containers = deployment.template["spec"]["containers"]
        names = [known["name"] for known in containers]
        if container and container not in names:
            raise UsageError(
                f"{deployment.name} has no container {container}", hint=f"it has {', '.join(names)}"
            )
        self._original = copy.deepcopy(containers[names.index(container) if container else 0])
        self._replicas = deployment.replicas()
        self._backup: TuningBackup | None = None
        self._annotation = BackupAnnotation(cluster, deployment.name)

    @property
    def replicas(self) -> int:
        """Number of replicas before any change."""
        return self._replicas

    def resources(self) -> tuple[float, float]:
        """Cores and bytes that the container requests; 0 where it has no request."""
        resources = self._original.get("resources") or {}
        both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return float(quantity(both.get("cpu", 0))), float(quantity(both.get("memory", 0)))

    def apply(self, setting: Mapping[str, str]) -> None:
        """Apply a setting: cpu, memory, concurrency, replicas.

        What it does not name gets its original value.
        """
        if self._backup is None:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._backup = TuningBackup.of(self._original, self._replicas, self._env, at)
        # written each time: after a call without an answer we do not know whether it is there
        self._annotation.write(self._backup, self._sleep)
        self._annotation.change(
            self._backup,
            lambda container: changed(container, setting, self._env, self._argument),
            int(setting.get("replicas", self._replicas)),
        )

    def restore(self) -> None:
        """Restore the original settings, and remove the annotation."""
        if self._backup is not None:
            self._annotation.restore(self._backup)
            self._backup = None

    def put_back(self) -> list[str]:
        """Restore, with repetitions while the API server is busy.

        Never raises errors of Kubernetes.

        Returns lines of text: success, or what to do by hand.
        """
        if self._backup is None:
            return []
        for attempt in range(1, RESTORE_TRIES + 1):
            try:
                self.restore()
                return [f"deployment {self._deployment.name} has its original settings again"]
            except Busy as error:
                trouble: ScaletestError = error
                if attempt < RESTORE_TRIES:
                    self._sleep(RESTORE_S)
            except ScaletestError as error:
                trouble = error
                break
        return [
            f"deployment {self._deployment.name} could not be restored: {trouble.message}",
            f"  repeat the command with --restore later; or by hand: {self._backup}",
        ]

    def wait(self, patience_s: float, stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait until all pods have the setting and are ready, or `stopped`.

        WaitTimeout with the reason.
        """
        deadline = self._clock() + patience_s
        while not stopped() and not self._settled():
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"{self._deployment.name} did not become ready within {patience_s:.0f} s\n"
                    f"  {self._deployment.trouble()}",
                    hint="raise --ready-timeout, or leave this setting out",
                )
            self._sleep(INTERVAL_S)

    def usage(self) -> list[Usage]:
        """Current usage of each pod by the metrics API, else by cAdvisor; [] without both."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{quote(self._deployment.namespace)}/pods"
        try:
            metrics = self._raw.get(
                path,
                "read the usage of pods",
                "list pods.metrics.k8s.io",
                labelSelector=self._deployment.selector,
            )["items"]
        except ScaletestError:
            return self._usage_by_cadvisor()
        return [_usage(pod) for pod in metrics]

    def _usage_by_cadvisor(self) -> list[Usage]:
        pods = [pod for pod in self._deployment.pods() if pod.node and not pod.going]
        samples = self._cadvisor.sample(sorted({pod.node for pod in pods}))
        names = {pod.name for pod in pods}
        return [Usage(name, *sample) for name, sample in samples.items() if name in names]

    def _settled(self) -> bool:
        namespace = f"/apis/apps/v1/namespaces/{quote(self._deployment.namespace)}"
        path = f"{namespace}/deployments/{quote(self._deployment.name)}"
        deployment = self._raw.get(
            path, f"read deployment {self._deployment.name}", "get deployments"
        )
        status, wanted = deployment.get("status", {}), deployment["spec"].get("replicas", 0)
        if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
            return False
        counts = [status.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "replicas")]
        return counts == [wanted] * 3


def _usage(pod: Mapping[str, Any]) -> Usage:
    """Usage of a PodMetrics object: the sum of its containers."""
    usages = [container["usage"] for container in pod["containers"]]
    cpu = sum(float(quantity(usage["cpu"])) for usage in usages)
    memory = sum(float(quantity(usage["memory"])) for usage in usages)
    return Usage(pod["metadata"]["name"], cpu, memory)


def changed(
    container: Mapping[str, Any], setting: Mapping[str, str], env: str, argument: str
) -> dict[str, Any]:
    """The container with the setting. UsageError when it is unknown where concurrency is set."""
    tuned = copy.deepcopy(dict(container))
    resources = tuned.setdefault("resources", {})
    for name in ("cpu", "memory"):
        if name in setting:
            for part in ("requests", "limits"):
                resources.setdefault(part, {})[name] = setting[name]
    if "concurrency" in setting:
        concurrency = setting["concurrency"]
        if env:
            tuned["env"] = with_variable(
                tuned.get("env", []), env, {"name": env, "value": concurrency}
            )
        elif argument:
            tuned["args"] = with_argument(tuned.get("args", []), argument, concurrency)
        else:
            raise UsageError(
                "it is unknown where the pods read their concurrency",
                hint="give --concurrency-env NAME or --concurrency-arg NAME",
            )
    return tuned


def with_argument(arguments: list[str], name: str, text: str) -> list[str]:
    """Arguments with NAME=VALUE or NAME VALUE, as it is written; appended if missing."""
    changed = list(arguments)
    for index, word in enumerate(changed):
        if word.startswith(f"{name}="):
            changed[index] = f"{name}={text}"
            return changed
        if word == name and index + 1 < len(changed):
            changed[index + 1] = text
            return changed
    return [*changed, f"{name}={text}"]

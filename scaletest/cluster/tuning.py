"""Settings of a Deployment's pods changed for a measurement, and put back; and what its pods use meanwhile.

CPU and memory are set as requests and limits alike, so that a pod gets what it is measured with. Concurrency lives
where the service reads it: in a variable or behind an argument. What the Deployment had before is noted on it
(`before`), for whoever comes after a tuning that was killed.
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

LOOK_S = 0.5
RESTORE_TURNS, RESTORE_S = 20, 3.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a pod used: cores, None when only its memory is known, and bytes."""

    pod: str
    cpu: float | None
    memory: float


class Tuning:
    """One container of a Deployment. Needs the right to patch deployments, and to get pods.metrics.k8s.io."""

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
        rows = deployment.template["spec"]["containers"]
        names = [one["name"] for one in rows]
        if container and container not in names:
            raise UsageError(f"{deployment.name} has no container {container}", hint=f"it has {', '.join(names)}")
        self._original = copy.deepcopy(rows[names.index(container) if container else 0])
        self._replicas = deployment.replicas()
        self._before: TuningBackup | None = None
        self._note = BackupAnnotation(cluster, deployment.name)

    @property
    def replicas(self) -> int:
        """The number it had before anything was changed."""
        return self._replicas

    def resources(self) -> tuple[float, float]:
        """Cores and bytes that the container asks for; 0 where it does not say."""
        asked = self._original.get("resources") or {}
        both = {**(asked.get("limits") or {}), **(asked.get("requests") or {})}
        return float(quantity(both.get("cpu", 0))), float(quantity(both.get("memory", 0)))

    def apply(self, setting: Mapping[str, str]) -> None:
        """Set cpu, memory, concurrency and replicas, those that are named; the others are as they were."""
        if self._before is None:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._before = TuningBackup.of(self._original, self._replicas, self._env, at)
        # what was written is taken away again even when the answer never came, so it is asked for each time
        self._note.write(self._before, self._sleep)
        self._note.change(
            self._before,
            lambda found: changed(found, setting, self._env, self._argument),
            int(setting.get("replicas", self._replicas)),
        )

    def restore(self) -> None:
        """Everything as it was, and the note away."""
        if self._before is not None:
            self._note.restore(self._before)
            self._before = None

    def put_back(self) -> list[str]:
        """Restore, again and again while the API server is busy; what to say of it. Never raises for Kubernetes."""
        if self._before is None:
            return []
        for turn in range(RESTORE_TURNS):
            try:
                self.restore()
                return [f"deployment {self._deployment.name} has its own settings again"]
            except Busy as error:
                trouble: ScaletestError = error
                if turn + 1 < RESTORE_TURNS:
                    self._sleep(RESTORE_S)
            except ScaletestError as error:
                trouble = error
                break
        return [
            f"deployment {self._deployment.name} could not be put back: {trouble.message}",
            f"  the same command with --restore does it later; by hand: {self._before}",
        ]

    def wait(self, patience_s: float, stopped: Callable[[], bool] = lambda: False) -> None:
        """Until the new pods are ready and no old one is left, or somebody stops it. WaitTimeout with the reason."""
        deadline = self._clock() + patience_s
        while not stopped() and not self._settled():
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"{self._deployment.name} did not become ready within {patience_s:.0f} s\n"
                    f"  {self._deployment.trouble()}",
                    hint="give it longer with --ready-timeout, or leave this setting out",
                )
            self._sleep(LOOK_S)

    def usage(self) -> list[Usage]:
        """What each pod uses now, by the metrics API or else by cAdvisor; none when neither tells."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{quote(self._deployment.namespace)}/pods"
        try:
            rows = self._raw.get(
                path, "read the usage of pods", "list pods.metrics.k8s.io", labelSelector=self._deployment.selector
            )["items"]
        except ScaletestError:
            pods = {one.name: one.node for one in self._deployment.pods() if one.node and not one.going}
            looked = self._cadvisor.look(sorted(set(pods.values())))
            return [Usage(pod, *found) for pod, found in looked.items() if pod in pods]
        return [
            Usage(
                row["metadata"]["name"],
                sum(float(quantity(one["usage"]["cpu"])) for one in row["containers"]),
                sum(float(quantity(one["usage"]["memory"])) for one in row["containers"]),
            )
            for row in rows
        ]

    def _settled(self) -> bool:
        at = f"/apis/apps/v1/namespaces/{quote(self._deployment.namespace)}/deployments/{quote(self._deployment.name)}"
        row = self._raw.get(at, f"read deployment {self._deployment.name}", "get deployments")
        status, wanted = row.get("status", {}), row["spec"].get("replicas", 0)
        if status.get("observedGeneration", 0) < row["metadata"].get("generation", 0):
            return False
        counts = [status.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "replicas")]
        return counts == [wanted] * 3


def changed(container: Mapping[str, Any], setting: Mapping[str, str], env: str, argument: str) -> dict[str, Any]:
    """The container with the setting. UsageError when nobody said where concurrency lives."""
    made = copy.deepcopy(dict(container))
    resources = made.setdefault("resources", {})
    for name in ("cpu", "memory"):
        if name in setting:
            for part in ("requests", "limits"):
                resources.setdefault(part, {})[name] = setting[name]
    if "concurrency" in setting:
        value = setting["concurrency"]
        if env:
            made["env"] = with_variable(made.get("env", []), env, {"name": env, "value": value})
        elif argument:
            made["args"] = with_argument(made.get("args", []), argument, value)
        else:
            raise UsageError(
                "where the pods read their concurrency is not known",
                hint="give --concurrency-env NAME or --concurrency-arg NAME",
            )
    return made


def with_argument(words: list[str], name: str, value: str) -> list[str]:
    """The command line with NAME=VALUE, or NAME VALUE where it is written so; added at the end when it is missing."""
    made = list(words)
    for index, word in enumerate(made):
        if word.startswith(f"{name}="):
            made[index] = f"{name}={value}"
            return made
        if word == name and index + 1 < len(made):
            made[index + 1] = value
            return made
    return [*made, f"{name}={value}"]

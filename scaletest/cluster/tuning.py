"""Tuning: change settings of a Deployment's pods for a measurement, and restore them.

CPU and memory are set as both requests and limits, so a pod gets exactly what is measured.
Concurrency is set where the service reads it: in a variable or an argument.

The original settings are backed up in an annotation, so that a later command can restore them if
this one is killed. It is written before the first change, and removed in the same write as the
last. Each change in between succeeds only while the annotation is still ours, so two tunings of one
Deployment never mix, and settings that somebody restored stay restored. Only what tuning changes is
backed up: an image that was rolled out meanwhile stays.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from scaletest.cluster.cadvisor import Cadvisor
from scaletest.cluster.capacity import container_requests, quantity
from scaletest.cluster.connection import Busy, Cluster, Raw, Refused
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.objects import DEPLOYMENTS, Conflict, Documents, Resource
from scaletest.model import checks, declared, wire
from scaletest.model.errors import InvalidValue, ScaletestError, UsageError, WaitTimeout

POD_METRICS = Resource("PodMetrics", "/apis/metrics.k8s.io/v1beta1", "pods", True)
ANNOTATION = "scaletest/before-tuning"
POINTER = "/metadata/annotations/" + ANNOTATION.replace("/", "~1")
# While pods change, the controller often writes the status, so our writes meet conflicts.
TRIES, INTERVAL_S = 20, 0.5
RESTORE_TRIES, RESTORE_S = 20, 3.0


@dataclass(frozen=True, slots=True)
class TuningBackup:
    """Settings of one container and its Deployment.

    variable: name of the variable with the concurrency, "" without one. entry: its element of
    `env`, None if it was not set. at: time of the backup, which also identifies it.
    """

    at: str
    container: str
    replicas: int
    resources: dict[str, Any] | None
    args: list[str] | None
    variable: str = ""
    entry: dict[str, Any] | None = None

    @classmethod
    def of(
        cls, container: Mapping[str, Any], replicas: int, variable: str, at: str
    ) -> TuningBackup:
        """Back up the current settings."""
        variables = {candidate["name"]: candidate for candidate in container.get("env") or ()}
        return cls(
            at,
            container["name"],
            replicas,
            container.get("resources"),
            container.get("args"),
            variable,
            variables.get(variable),
        )

    def text(self) -> str:
        """The text of the annotation."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, text: str) -> TuningBackup:
        """Parse what `text` returned. InvalidValue for anything else."""
        with suppress(InvalidValue):
            settings = wire.load(text, ANNOTATION)
            if settings.keys() <= {field.name for field in fields(cls)}:
                return declared.read(cls, settings, ANNOTATION)
        raise InvalidValue(
            f"the annotation {ANNOTATION} was not written by scaletest",
            hint="check the Deployment, and remove the annotation",
        )

    def restored(self, container: Mapping[str, Any]) -> dict[str, Any]:
        """The current container with the settings of the backup."""
        restored = {**container, "resources": self.resources, "args": self.args}
        if self.variable:
            restored["env"] = (
                with_variable(container.get("env") or [], self.variable, self.entry) or None
            )
        return {name: setting for name, setting in restored.items() if setting is not None}

    def __str__(self) -> str:
        """Text for somebody who must restore the settings by hand."""
        changed: dict[str, Any] = {"resources": self.resources, "args": self.args}
        if self.variable:
            changed["env"] = [self.entry] if self.entry else []
        return f"{self.replicas} replicas, container {self.container} to {json.dumps(changed)}"


class BackupAnnotation:
    """The backup on one Deployment. Needs the rights to get and patch deployments."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._documents = Documents(cluster)

    def left(self) -> TuningBackup | None:
        """The backup of a tuning that is running or was killed; None without one."""
        text = _annotations(self._document()).get(ANNOTATION)
        return None if text is None else TuningBackup.read(text)

    def write(self, backup: TuningBackup, sleep: Callable[[float], None]) -> None:
        """Write the backup, unless it is there already. UsageError when there is another one."""
        for attempt in range(1, TRIES + 1):
            document = self._document()
            if _annotations(document).get(ANNOTATION) == backup.text():
                return
            refuse(self._name, _annotations(document))
            # with the version that was read, two tunings that begin at once do not both succeed
            meta = {
                "resourceVersion": document["metadata"]["resourceVersion"],
                "annotations": {ANNOTATION: backup.text()},
            }
            try:
                self._documents.patch(
                    DEPLOYMENTS, self._cluster.namespace, self._name, {"metadata": meta}
                )
                return
            except Conflict:
                if attempt == TRIES:
                    raise
                sleep(INTERVAL_S)

    def change(
        self,
        backup: TuningBackup,
        change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        replicas: int,
        *more: dict[str, Any],
    ) -> None:
        """Set container and replicas. Refused unless the annotation is still this backup.

        change: computes the new container from the current one with the settings of the backup.
        more: further changes of the same JSON patch.
        """
        document = self._document()
        containers = document["spec"]["template"]["spec"]["containers"]
        names = [container["name"] for container in containers]
        if backup.container not in names:
            raise Refused(
                f"deployment {self._name} no longer has a container {backup.container}",
                hint=(
                    "when its settings are as you want them: kubectl annotate deployment"
                    f" {self._name} {ANNOTATION}-"
                ),
            )
        index = names.index(backup.container)
        path = f"/spec/template/spec/containers/{index}"
        body: list[dict[str, Any]] = [
            # fails if the backup is not ours any more, or the order of the containers has changed
            {"op": "test", "path": POINTER, "value": backup.text()},
            {"op": "test", "path": f"{path}/name", "value": backup.container},
            {"op": "replace", "path": path, "value": change(backup.restored(containers[index]))},
            {"op": "replace", "path": "/spec/replicas", "value": replicas},
            *more,
        ]
        self._documents.patch(DEPLOYMENTS, self._cluster.namespace, self._name, body)

    def restore(self, backup: TuningBackup) -> None:
        """Restore the settings and remove the annotation, unless somebody did that already."""
        if _annotations(self._document()).get(ANNOTATION) == backup.text():
            self.change(backup, dict, backup.replicas, {"op": "remove", "path": POINTER})

    def _document(self) -> dict[str, Any]:
        document = self._documents.find(DEPLOYMENTS, self._cluster.namespace, self._name)
        if document is None:
            raise Refused(
                f"deployment {self._name} no longer exists", hint="it was deleted meanwhile"
            )
        return document


def refuse(name: str, annotations: Mapping[str, str]) -> None:
    """Raises UsageError while a tuning of the Deployment is running, or was killed."""
    if ANNOTATION in annotations:
        raise UsageError(
            f"deployment {name} has settings of a tuning that began at"
            f" {TuningBackup.read(annotations[ANNOTATION]).at} and has not restored them",
            hint="if that tuning is not running any more: repeat the command with --restore",
        )


def _annotations(document: Mapping[str, Any]) -> dict[str, str]:
    return document["metadata"].get("annotations") or {}


def with_variable(
    variables: list[dict[str, Any]], name: str, setting: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Variables with this one set in its place, or appended; without it when `setting` is None."""
    own = [] if setting is None else [setting]
    changed: list[dict[str, Any]] = []
    for variable in variables:
        changed += own if variable["name"] == name else [variable]
    return changed + [entry for entry in own if entry not in changed]


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a pod: cores, None when only its memory is known, and bytes."""

    pod: str
    cpu: float | None
    memory: float


class Tuning:
    """Tuning of one container of a Deployment. replicas: their number before any change.

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
        checks.refuse(
            (
                container and container not in names,
                f"{deployment.name} has no container {container}",
                f"it has {', '.join(names)}",
            )
        )
        self._original = copy.deepcopy(containers[names.index(container) if container else 0])
        self.replicas = deployment.replicas()
        self._backup: TuningBackup | None = None
        self._annotation = BackupAnnotation(cluster, deployment.name)

    def resources(self) -> tuple[float, float]:
        """Cores and bytes that the container requests; 0 where it has no request."""
        requested = container_requests(self._original)
        return float(requested.get("cpu", 0)), float(requested.get("memory", 0))

    def apply(self, setting: Mapping[str, str]) -> None:
        """Apply a setting: cpu, memory, concurrency, replicas.

        What it does not name gets its original value.
        """
        if self._backup is None:
            self._backup = TuningBackup.of(
                self._original,
                self.replicas,
                self._env,
                datetime.now(UTC).isoformat(timespec="milliseconds"),
            )
        # written each time: after a call without an answer we do not know whether it is there
        self._annotation.write(self._backup, self._sleep)
        self._annotation.change(
            self._backup,
            lambda container: changed(container, setting, self._env, self._argument),
            int(setting.get("replicas", self.replicas)),
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
        try:
            metrics = self._raw.get(
                POD_METRICS.path(self._deployment.namespace),
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
        deployment = self._raw.get(
            DEPLOYMENTS.path(self._deployment.namespace, self._deployment.name),
            f"read deployment {self._deployment.name}",
            "get deployments",
        )
        status, wanted = deployment.get("status", {}), deployment["spec"].get("replicas", 0)
        if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
            return False
        return all(
            status.get(name, 0) == wanted
            for name in ("updatedReplicas", "readyReplicas", "replicas")
        )


def _usage(pod: Mapping[str, Any]) -> Usage:
    """Usage of a PodMetrics object: the sum of its containers."""
    usages = [container["usage"] for container in pod["containers"]]
    return Usage(
        pod["metadata"]["name"],
        cpu=sum(float(quantity(usage["cpu"])) for usage in usages),
        memory=sum(float(quantity(usage["memory"])) for usage in usages),
    )


def changed(
    container: Mapping[str, Any], setting: Mapping[str, str], env: str, argument: str
) -> dict[str, Any]:
    """The container with the setting. UsageError when it is unknown where concurrency is set."""
    tuned = copy.deepcopy(dict(container))
    amounts = {name: setting[name] for name in ("cpu", "memory") if name in setting}
    resources = tuned.setdefault("resources", {})
    for part in ("requests", "limits") if amounts else ():
        resources[part] = {**resources.get(part, {}), **amounts}
    if "concurrency" in setting:
        if env:
            tuned["env"] = with_variable(
                tuned.get("env", []), env, {"name": env, "value": setting["concurrency"]}
            )
        elif argument:
            tuned["args"] = with_argument(tuned.get("args", []), argument, setting["concurrency"])
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

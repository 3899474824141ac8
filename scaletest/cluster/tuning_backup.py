"""Backup of a Deployment's settings in an annotation, in case the tuning is killed.

The annotation is written before the first change, and removed in the same write as the last. Each
change in between succeeds only while the annotation is still ours, so two tunings of one Deployment
never mix, and settings that somebody restored stay restored. Only what tuning changes is backed up:
an image that was rolled out meanwhile stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.cluster.connection import TIMEOUT_S, Cluster, Refused, explained
from scaletest.cluster.documents import Conflict, Documents, Resource
from scaletest.model.errors import InvalidValue, UsageError

ANNOTATION = "scaletest/before-tuning"
POINTER = "/metadata/annotations/" + ANNOTATION.replace("/", "~1")
DEPLOYMENTS = Resource("Deployment", "/apis/apps/v1", "deployments", True)
# While pods change, the controller often writes the status, so our writes meet conflicts.
TRIES, INTERVAL_S = 20, 0.5


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
        variables = container.get("env") or ()
        entry = next((candidate for candidate in variables if candidate["name"] == variable), None)
        resources, args = container.get("resources"), container.get("args")
        return cls(at, container["name"], replicas, resources, args, variable, entry)

    def text(self) -> str:
        """The text of the annotation."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, text: str) -> TuningBackup:
        """Parse what `text` returned. InvalidValue for anything else."""
        try:
            backup = cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise _foreign() from error
        types: tuple[tuple[Any, type | tuple[type, ...]], ...] = (
            (backup.at, str),
            (backup.container, str),
            (backup.replicas, int),
            (backup.resources, (dict, type(None))),
            (backup.args, (list, type(None))),
            (backup.variable, str),
            (backup.entry, (dict, type(None))),
        )
        if not all(isinstance(setting, expected) for setting, expected in types):
            raise _foreign()
        return backup

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
    ) -> None:
        """Set container and replicas. Refused unless the annotation is still this backup.

        change: computes the new container from the current one with the settings of the backup.
        """
        document = self._document()
        index = self._index(backup, document)
        container = backup.restored(document["spec"]["template"]["spec"]["containers"][index])
        self._patch(backup, index, change(container), replicas, [])

    def restore(self, backup: TuningBackup) -> None:
        """Restore the settings and remove the annotation, unless somebody did that already."""
        document = self._document()
        if _annotations(document).get(ANNOTATION) != backup.text():
            return
        index = self._index(backup, document)
        container = backup.restored(document["spec"]["template"]["spec"]["containers"][index])
        self._patch(backup, index, container, backup.replicas, [{"op": "remove", "path": POINTER}])

    def _document(self) -> dict[str, Any]:
        document = self._documents.find(DEPLOYMENTS, self._cluster.namespace, self._name)
        if document is None:
            raise Refused(
                f"deployment {self._name} no longer exists", hint="it was deleted meanwhile"
            )
        return document

    def _index(self, backup: TuningBackup, document: Mapping[str, Any]) -> int:
        names = [
            container["name"] for container in document["spec"]["template"]["spec"]["containers"]
        ]
        if backup.container not in names:
            raise Refused(
                f"deployment {self._name} no longer has a container {backup.container}",
                hint=(
                    "when its settings are as you want them: kubectl annotate deployment"
                    f" {self._name} {ANNOTATION}-"
                ),
            )
        return names.index(backup.container)

    def _patch(
        self,
        backup: TuningBackup,
        index: int,
        container: Mapping[str, Any],
        replicas: int,
        more: list[dict[str, Any]],
    ) -> None:
        from kubernetes.client import AppsV1Api

        path = f"/spec/template/spec/containers/{index}"
        body = [
            # fails if the backup is not ours any more, or the order of the containers has changed
            {"op": "test", "path": POINTER, "value": backup.text()},
            {"op": "test", "path": f"{path}/name", "value": backup.container},
            {"op": "replace", "path": path, "value": container},
            {"op": "replace", "path": "/spec/replicas", "value": replicas},
            *more,
        ]
        api: Any = AppsV1Api(self._cluster.client)
        with explained(f"change deployment {self._name}", "patch deployments"):
            api.patch_namespaced_deployment(
                self._name, self._cluster.namespace, body, _request_timeout=TIMEOUT_S
            )


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
    changed = []
    for variable in variables:
        if variable["name"] != name:
            changed.append(variable)
        elif setting is not None:
            changed.append(setting)
    if setting is not None and setting not in changed:
        changed.append(setting)
    return changed


def _foreign() -> InvalidValue:
    return InvalidValue(
        f"the annotation {ANNOTATION} was not written by scaletest",
        hint="check the Deployment, and remove the annotation",
    )

"""What a Deployment had before it was tuned, written on it as an annotation: whoever was killed can put nothing back.

The note is there before the first change and goes with the last one, in the same write. Every change in between holds
only while the note is still ours, so two who tune one Deployment never mix, and what somebody put back stays so. Only
what tuning changes is noted and put back: an image that was rolled out meanwhile stays.
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
# Its controller writes its status all the time while pods change, so somebody else was quicker now and then.
TURNS, LOOK_S = 20, 0.5


@dataclass(frozen=True, slots=True)
class TuningBackup:
    """Of one container and its Deployment. variable: the one that holds the concurrency, "" when none does.

    entry: how that variable was set, None when it was not. at: when, which also tells one note from another.
    """

    at: str
    container: str
    replicas: int
    resources: dict[str, Any] | None
    args: list[str] | None
    variable: str = ""
    entry: dict[str, Any] | None = None

    @classmethod
    def of(cls, container: Mapping[str, Any], replicas: int, variable: str, at: str) -> TuningBackup:
        """What is so now."""
        entry = next((one for one in container.get("env") or () if one["name"] == variable), None)
        return cls(at, container["name"], replicas, container.get("resources"), container.get("args"), variable, entry)

    def text(self) -> str:
        """As it is written."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, text: str) -> TuningBackup:
        """What `text` wrote. InvalidValue for anything else."""
        try:
            found = cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise _strange() from error
        kinds: tuple[tuple[Any, type | tuple[type, ...]], ...] = (
            (found.at, str),
            (found.container, str),
            (found.replicas, int),
            (found.resources, (dict, type(None))),
            (found.args, (list, type(None))),
            (found.variable, str),
            (found.entry, (dict, type(None))),
        )
        if not all(isinstance(value, kind) for value, kind in kinds):
            raise _strange()
        return found

    def restored(self, container: Mapping[str, Any]) -> dict[str, Any]:
        """The container as it is now, with what was noted."""
        made = {**container, "resources": self.resources, "args": self.args}
        if self.variable:
            made["env"] = with_variable(container.get("env") or [], self.variable, self.entry) or None
        return {name: value for name, value in made.items() if value is not None}

    def __str__(self) -> str:
        """For who must put it back by hand."""
        changed: dict[str, Any] = {"resources": self.resources, "args": self.args}
        if self.variable:
            changed["env"] = [self.entry] if self.entry else []
        return f"{self.replicas} replicas, container {self.container} to {json.dumps(changed)}"


class BackupAnnotation:
    """The note on one Deployment. Needs the rights to get and patch deployments."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._documents = Documents(cluster)

    def left(self) -> TuningBackup | None:
        """What a tuning wrote that goes on, or was killed."""
        text = _annotations(self._document()).get(ANNOTATION)
        return None if text is None else TuningBackup.read(text)

    def write(self, before: TuningBackup, sleep: Callable[[float], None]) -> None:
        """Write it, unless it is there. UsageError when it is another one."""
        for turn in range(TURNS):
            found = self._document()
            if _annotations(found).get(ANNOTATION) == before.text():
                return
            refuse(self._name, _annotations(found))
            # made of what was read: two who begin at once do not both succeed
            about = {
                "resourceVersion": found["metadata"]["resourceVersion"],
                "annotations": {ANNOTATION: before.text()},
            }
            try:
                self._documents.patch(DEPLOYMENTS, self._cluster.namespace, self._name, {"metadata": about})
                return
            except Conflict:
                if turn + 1 == TURNS:
                    raise
                sleep(LOOK_S)

    def change(
        self, before: TuningBackup, change: Callable[[Mapping[str, Any]], Mapping[str, Any]], replicas: int
    ) -> None:
        """Set container and replicas while the note is this one. Refused when it is not.

        change: makes the container of the one that is there, with what was noted.
        """
        found = self._document()
        index = self._index(before, found)
        container = before.restored(found["spec"]["template"]["spec"]["containers"][index])
        self._patch(before, index, change(container), replicas, [])

    def restore(self, before: TuningBackup) -> None:
        """Put back what was noted, and take the note away. Nothing when somebody did that meanwhile."""
        found = self._document()
        if _annotations(found).get(ANNOTATION) != before.text():
            return
        index = self._index(before, found)
        container = before.restored(found["spec"]["template"]["spec"]["containers"][index])
        self._patch(before, index, container, before.replicas, [{"op": "remove", "path": POINTER}])

    def _document(self) -> dict[str, Any]:
        found = self._documents.find(DEPLOYMENTS, self._cluster.namespace, self._name)
        if found is None:
            raise Refused(f"deployment {self._name} is not there any more", hint="somebody deleted it")
        return found

    def _index(self, before: TuningBackup, document: Mapping[str, Any]) -> int:
        names = [one["name"] for one in document["spec"]["template"]["spec"]["containers"]]
        if before.container not in names:
            raise Refused(
                f"deployment {self._name} has no container {before.container} any more",
                hint=f"when all is as you want it: kubectl annotate deployment {self._name} {ANNOTATION}-",
            )
        return names.index(before.container)

    def _patch(
        self, before: TuningBackup, index: int, container: Mapping[str, Any], replicas: int, more: list[dict[str, Any]]
    ) -> None:
        from kubernetes.client import AppsV1Api

        at = f"/spec/template/spec/containers/{index}"
        body = [
            # ours still, and nobody may have changed the order of the containers meanwhile
            {"op": "test", "path": POINTER, "value": before.text()},
            {"op": "test", "path": f"{at}/name", "value": before.container},
            {"op": "replace", "path": at, "value": container},
            {"op": "replace", "path": "/spec/replicas", "value": replicas},
            *more,
        ]
        api: Any = AppsV1Api(self._cluster.client)
        with explained(f"change deployment {self._name}", "patch deployments"):
            api.patch_namespaced_deployment(self._name, self._cluster.namespace, body, _request_timeout=TIMEOUT_S)


def refuse(name: str, annotations: Mapping[str, str]) -> None:
    """UsageError while a Deployment has settings of a tuning that goes on, or was killed."""
    if ANNOTATION in annotations:
        raise UsageError(
            f"deployment {name} has settings of a tuning that began at {TuningBackup.read(annotations[ANNOTATION]).at} "
            "and has not put them back",
            hint="unless it goes on, do that: the same command with --restore",
        )


def _annotations(document: Mapping[str, Any]) -> dict[str, str]:
    return document["metadata"].get("annotations") or {}


def with_variable(rows: list[dict[str, Any]], name: str, entry: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Variables with this entry, in its old place; at the end when there was none. None takes it away."""
    made = [entry if one["name"] == name else one for one in rows]
    if entry is not None and entry not in made:
        made.append(entry)
    return [one for one in made if one is not None]


def _strange() -> InvalidValue:
    return InvalidValue(
        f"the annotation {ANNOTATION} is not what scaletest writes", hint="look at the Deployment, and remove it"
    )

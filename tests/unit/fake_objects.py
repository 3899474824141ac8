"""The objects of one namespace behind an API server that merges patches as Kubernetes does."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.resources import DEPLOYMENTS, HPAS, SCALED_OBJECTS, Resource
from tests.unit.fake_api import Answer, api, page, thing

KINDS = (DEPLOYMENTS, HPAS, SCALED_OBJECTS)
TARGET = {"scaleTargetRef": {"kind": "Deployment", "name": "model"}}


class FakeObjects:
    """A Deployment `model` of two pods, and what else is put. calls: names and what was written.

    answer: may answer a call in place of the objects, given its method and the object's name.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answer: Callable[[str, str], Answer | None] = lambda method, name: None
        self._objects: dict[str, dict[str, Any]] = {}
        container = {
            "name": "m",
            "image": "a",
            "args": ["--workers", "1"],
            "resources": {"requests": {"cpu": "500m"}},
        }
        template = {"metadata": {}, "spec": {"containers": [container, {"name": "other"}]}}
        spec = {"replicas": 2, "selector": {}, "template": template}
        self.model = self.put(DEPLOYMENTS, "model", spec)

    def put(
        self, resource: Resource, name: str, spec: dict[str, Any], **annotations: str
    ) -> dict[str, Any]:
        document = thing(name, spec=spec)
        document["metadata"]["annotations"] = annotations
        self._objects[resource.path("n", name)] = document
        return document

    def put_hpa(self, low: int, high: int, owner: str = "") -> dict[str, Any]:
        document = self.put(HPAS, "h", {**TARGET, "minReplicas": low, "maxReplicas": high})
        if owner:
            document["metadata"]["ownerReferences"] = [{"kind": "ScaledObject", "name": owner}]
        return document

    def delete(self, resource: Resource, name: str) -> None:
        del self._objects[resource.path("n", name)]

    @contextmanager
    def served(self) -> Iterator[Cluster]:
        with api(self._act) as (cluster, _):
            yield cluster

    def _act(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        name = path.rpartition("/")[2]
        if (instead := self.answer(method, name)) is not None:
            return instead
        if path == "/apis":
            version = {"preferredVersion": {"version": "v1"}}
            return 200, {}, {"groups": [{"name": "keda.sh", **version}]}
        if path in {resource.path("n") for resource in KINDS}:
            rows = [row for at, row in self._objects.items() if at.startswith(f"{path}/")]
            return page(rows)
        document = self._objects.get(path)
        if document is None:
            return 404, {}, {"message": "not found"}
        if method == "PATCH":
            return self._patch(name, document, json.loads(body))
        return 200, {}, document

    def _patch(self, name: str, document: dict[str, Any], patch: dict[str, Any]) -> Answer:
        meta = document["metadata"]
        if (
            patch["metadata"].pop("resourceVersion", meta["resourceVersion"])
            != (meta["resourceVersion"])
        ):
            return 409, {}, {"message": "the object has been modified"}
        merge(document, patch)
        meta["resourceVersion"] += "1"
        self.calls.append(f"{name} {json.dumps(patch['spec'])}")
        return 200, {}, document


def merge(document: dict[str, Any], patch: dict[str, Any]) -> None:
    """Merge a patch: null removes, and lists of objects are merged by name."""
    for key, change in patch.items():
        if change is None:
            document.pop(key, None)
        elif isinstance(change, dict):
            merge(document.setdefault(key, {}), change)
            if not document[key] and key not in ("metadata", "annotations", "spec"):
                del document[key]  # as the API server writes none that is empty
        elif isinstance(change, list) and change and isinstance(change[0], dict):
            _merge_list(document.setdefault(key, []), change)
            if not document[key]:
                del document[key]
        else:
            document[key] = change


def _merge_list(rows: list[dict[str, Any]], changes: list[dict[str, Any]]) -> None:
    for change in changes:
        row = next((row for row in rows if row["name"] == change["name"]), None)
        if change.get("$patch") == "delete":
            rows[:] = [other for other in rows if other is not row]
        elif row is None:
            rows.append({name: setting for name, setting in change.items() if setting is not None})
        else:
            merge(row, change)

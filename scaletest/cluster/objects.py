"""Objects of any kind as plain documents: read, made, changed, deleted; and the logs of pods.

Needs the rights get, list, create, patch and delete on what is asked for, and get pods/log for logs.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote

from scaletest.cluster.connection import Busy, Cluster, Conflict, Missing, refusal
from scaletest.cluster.raw import Raw

__all__ = ["Busy", "Conflict", "Missing", "Objects", "Resource"]

MERGE = "application/merge-patch+json"
# So much of a log's end is read: more than one framed result.
LOG_BYTES = 4 * 1024 * 1024
Document = dict[str, Any]


class Resource(NamedTuple):
    """Where objects of a kind are: /api/v1 or /apis/GROUP/VERSION, and their plural."""

    api: str
    plural: str
    namespaced: bool = True


CONFIG_MAPS = Resource("/api/v1", "configmaps")
PODS = Resource("/api/v1", "pods")
SERVICES = Resource("/api/v1", "services")
CLAIMS = Resource("/api/v1", "persistentvolumeclaims")
NODES = Resource("/api/v1", "nodes", False)
JOBS = Resource("/apis/batch/v1", "jobs")
LEASES = Resource("/apis/coordination.k8s.io/v1", "leases")


class Objects:
    """Those of one cluster. May be used by several threads."""

    def __init__(self, cluster: Cluster) -> None:
        self._raw = Raw(cluster)

    def find(self, what: Resource, namespace: str, name: str) -> Document | None:
        """The object, or None when there is none."""
        try:
            found: Document = self._raw.get(_path(what, namespace, name), f"read {name}", f"get {what.plural}")
        except Missing:
            return None
        return found

    def list(self, what: Resource, namespace: str = "", labels: str = "") -> list[Document]:
        """All that have these labels; of all namespaces when none is said."""
        query = {"labelSelector": labels} if labels else {}
        answer = self._raw.get(_path(what, namespace), f"list {what.plural}", f"list {what.plural}", **query)
        return list(answer["items"])

    def create(self, what: Resource, namespace: str, body: Document) -> Document | None:
        """The object as it was made; None when there is one of that name already."""
        try:
            made: Document = self._raw.send(
                "POST", _path(what, namespace), body, f"make {what.plural} {body['metadata']['name']}",
                f"create {what.plural}",
            )  # fmt: skip
        except Conflict:
            return None
        return made

    def patch(self, what: Resource, namespace: str, name: str, body: Document, part: str = "") -> Document:
        """Merge a document into the object, or into a part of it as in status. Raises Missing and Conflict."""
        path = _path(what, namespace, name) + (f"/{part}" if part else "")
        right = f"patch {what.plural}" + (f"/{part}" if part else "")
        changed: Document = self._raw.send("PATCH", path, body, f"change {name}", right, MERGE)
        return changed

    def delete(self, what: Resource, namespace: str, name: str, uid: str = "") -> None:
        """Delete the object and then what it owns, when there is one; with a uid only that very one."""
        body: Document = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self._raw.send("DELETE", _path(what, namespace, name), body, f"delete {name}", f"delete {what.plural}")
        except Missing:
            pass
        except Conflict:
            if not uid:
                raise

    def log(self, namespace: str, pod: str) -> str | None:
        """The end of a pod's log; None when there is none (yet)."""
        what = f"read the log of {pod}"
        status, body, _ = self._raw.fetch(
            f"{_path(PODS, namespace, pod)}/log", what, {}, tailLines="2000", limitBytes=str(LOG_BYTES)
        )
        if status in (400, 404):
            return None
        if status != 200:
            raise refusal(status, body[:200].decode("utf-8", "replace"), what, "get pods/log")
        return body.decode("utf-8", "replace")


def _path(what: Resource, namespace: str, name: str = "") -> str:
    where = f"/namespaces/{quote(namespace)}" if what.namespaced and namespace else ""
    return f"{what.api}{where}/{what.plural}" + (f"/{quote(name)}" if name else "")

"""Single objects as plain documents: read, made once, changed, deleted; and the logs of pods.

Nothing is tried again here: who looks every second does that. Many at once are applied by `objects`.
Needs the rights get, list, create, patch and delete on what is asked for, get pods/log for logs, and create
localsubjectaccessreviews for `may`.
"""

from __future__ import annotations

import json
from typing import Any

from scaletest.cluster.connection import Busy, Cluster, Conflict, Missing, refusal
from scaletest.cluster.objects import Resource
from scaletest.cluster.raw import Raw, message
from scaletest.cluster.rights import Right

__all__ = ["Busy", "Conflict", "Documents", "Missing", "Resource"]

PLAIN, MERGE = "application/json", "application/merge-patch+json"
CONNECTIONS = 16
# So much of a log's end is read: more than one framed result.
LOG_BYTES = 4 * 1024 * 1024
Document = dict[str, Any]

CONFIG_MAPS = Resource("ConfigMap", "/api/v1", "configmaps", True)
PODS = Resource("Pod", "/api/v1", "pods", True)
SECRETS = Resource("Secret", "/api/v1", "secrets", True)
SERVICES = Resource("Service", "/api/v1", "services", True)
CLAIMS = Resource("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", True)
NODES = Resource("Node", "/api/v1", "nodes", False)
JOBS = Resource("Job", "/apis/batch/v1", "jobs", True)
EVENTS = Resource("Event", "/api/v1", "events", True)
ACCOUNTS = Resource("ServiceAccount", "/api/v1", "serviceaccounts", True)
REVIEWS = Resource("LocalSubjectAccessReview", "/apis/authorization.k8s.io/v1", "localsubjectaccessreviews", True)
LEASES = Resource("Lease", "/apis/coordination.k8s.io/v1", "leases", True)


class Documents:
    """Those of one cluster. May be used by several threads."""

    def __init__(self, cluster: Cluster) -> None:
        self._raw = Raw(cluster, CONNECTIONS)

    def find(self, what: Resource, namespace: str, name: str) -> Document | None:
        """The object, or None when there is none."""
        try:
            found: Document = self._raw.get(what.path(namespace, name), f"read {name}", f"get {what.plural}")
        except Missing:
            return None
        return found

    def list(self, what: Resource, namespace: str = "", labels: str = "", fields: str = "") -> list[Document]:
        """All that have these labels and fields; of all namespaces when none is said."""
        query = {name: text for name, text in (("labelSelector", labels), ("fieldSelector", fields)) if text}
        answer = self._raw.get(what.path(namespace), f"list {what.plural}", f"list {what.plural}", **query)
        return list(answer["items"])

    def create(self, what: Resource, namespace: str, body: Document) -> Document | None:
        """The object as it was made; None when there is one of that name already."""
        try:
            made: Document = self._send(
                "POST", what.path(namespace), body, f"make {what.plural} {body['metadata']['name']}",
                f"create {what.plural}",
            )  # fmt: skip
        except Conflict:
            return None
        return made

    def patch(self, what: Resource, namespace: str, name: str, body: Document, part: str = "") -> Document:
        """Merge a document into the object, or into a part of it as in status. Raises Missing and Conflict."""
        path = what.path(namespace, name) + (f"/{part}" if part else "")
        right = f"patch {what.plural}" + (f"/{part}" if part else "")
        changed: Document = self._send("PATCH", path, body, f"change {name}", right, MERGE)
        return changed

    def delete(self, what: Resource, namespace: str, name: str, uid: str = "") -> None:
        """Delete the object and then what it owns, when there is one; with a uid only that very one."""
        body: Document = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self._send("DELETE", what.path(namespace, name), body, f"delete {name}", f"delete {what.plural}")
        except Missing:
            pass
        except Conflict:
            if not uid:
                raise

    def may(self, namespace: str, home: str, account: str, right: Right) -> bool:
        """Whether a service account of the namespace `home` has a right in a namespace."""
        resource, _, part = right.resource.partition("/")
        attributes = {"namespace": namespace, "verb": right.verb, "group": right.group, "resource": resource}
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{home}", "system:authenticated"]
        spec = {"user": f"system:serviceaccount:{home}:{account}", "groups": groups}
        body = {"spec": {**spec, "resourceAttributes": {**attributes, "subresource": part}}}
        what = f"ask what {account} may do"
        answer = self._send("POST", REVIEWS.path(namespace), body, what, f"create {REVIEWS.plural}")
        return bool(answer["status"].get("allowed"))

    def version(self) -> str:
        """Of the API server, as in v1.37.1; every authenticated user may ask."""
        return str(self._raw.get("/version", "read the version", "get /version")["gitVersion"])

    def log(self, namespace: str, pod: str) -> str | None:
        """The end of a pod's log; None when there is none (yet)."""
        what = f"read the log of {pod}"
        status, body, _ = self._raw.fetch(
            f"{PODS.path(namespace, pod)}/log", what, {}, tailLines="2000", limitBytes=str(LOG_BYTES)
        )
        if status in (400, 404):
            return None
        if status != 200:
            raise refusal(status, body[:200].decode("utf-8", "replace"), what, "get pods/log")
        return body.decode("utf-8", "replace")

    def _send(self, method: str, path: str, body: Document, what: str, right: str, form: str = PLAIN) -> Document:
        """What the API server answers to a document. Raises Conflict when it is there, or has been changed."""
        headers = {"Content-Type": form, "Accept": PLAIN}
        status, answer, _ = self._raw.send(method, path, what, headers, json.dumps(body).encode())
        if status == 409:
            raise Conflict(f"cannot {what}: {message(answer)}", hint="somebody else changed it; read it again")
        if not 200 <= status < 300:
            raise refusal(status, message(answer), what, right)
        found: Document = json.loads(answer)
        return found

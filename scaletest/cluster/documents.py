"""Single objects as plain documents: read, create, change and delete them; and logs of pods.

Nothing is tried again here, since callers repeat their pass every second; `objects` applies many at
once. Needs the rights get, list, create, patch and delete on the resources in question, get
pods/log for logs, and create localsubjectaccessreviews for `may`.
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
# The end of a log that is read: larger than any framed result.
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
REVIEWS = Resource(
    "LocalSubjectAccessReview", "/apis/authorization.k8s.io/v1", "localsubjectaccessreviews", True
)
LEASES = Resource("Lease", "/apis/coordination.k8s.io/v1", "leases", True)


class Documents:
    """Objects of one cluster. Several threads may use it."""

    def __init__(self, cluster: Cluster) -> None:
        self._raw = Raw(cluster, CONNECTIONS)

    def find(self, resource: Resource, namespace: str, name: str) -> Document | None:
        """The object, or None if it does not exist."""
        try:
            document: Document = self._raw.get(
                resource.path(namespace, name), f"read {name}", f"get {resource.plural}"
            )
        except Missing:
            return None
        return document

    def list(
        self, resource: Resource, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[Document]:
        """All objects with these labels and fields, in a namespace ("": in all)."""
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        query = {name: text for name, text in selectors.items() if text}
        answer = self._raw.get(
            resource.path(namespace), f"list {resource.plural}", f"list {resource.plural}", **query
        )
        return list(answer["items"])

    def create(self, resource: Resource, namespace: str, body: Document) -> Document | None:
        """The object as created; None if one with that name exists."""
        try:
            action = f"create {resource.plural} {body['metadata']['name']}"
            return self._send(
                "POST", resource.path(namespace), body, action, f"create {resource.plural}"
            )
        except Conflict:
            return None

    def patch(
        self, resource: Resource, namespace: str, name: str, body: Document, subresource: str = ""
    ) -> Document:
        """Merge a document into the object, or into its subresource (status).

        Raises Missing and Conflict.
        """
        suffix = f"/{subresource}" if subresource else ""
        path = resource.path(namespace, name) + suffix
        return self._send(
            "PATCH", path, body, f"change {name}", f"patch {resource.plural}{suffix}", MERGE
        )

    def delete(self, resource: Resource, namespace: str, name: str, uid: str = "") -> None:
        """Delete the object, and what it owns in the background; with a uid only that very object.

        An object that does not exist is no error.
        """
        body: Document = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self._send(
                "DELETE",
                resource.path(namespace, name),
                body,
                f"delete {name}",
                f"delete {resource.plural}",
            )
        except Missing:
            pass
        except Conflict:
            if not uid:
                raise

    def may(self, namespace: str, home: str, account: str, right: Right) -> bool:
        """Whether a service account of the namespace `home` has a right in a namespace."""
        plural, _, subresource = right.resource.partition("/")
        attributes = {
            "namespace": namespace,
            "verb": right.verb,
            "group": right.group,
            "resource": plural,
        }
        groups = [
            "system:serviceaccounts",
            f"system:serviceaccounts:{home}",
            "system:authenticated",
        ]
        spec = {"user": f"system:serviceaccount:{home}:{account}", "groups": groups}
        body = {"spec": {**spec, "resourceAttributes": {**attributes, "subresource": subresource}}}
        action = f"check the rights of {account}"
        answer = self._send(
            "POST", REVIEWS.path(namespace), body, action, f"create {REVIEWS.plural}"
        )
        return bool(answer["status"].get("allowed"))

    def version(self) -> str:
        """Version of the API server, as in v1.37.1; every authenticated user may read it."""
        return str(self._raw.get("/version", "read the version", "get /version")["gitVersion"])

    def log(self, namespace: str, pod: str) -> str | None:
        """The end of a pod's log; None without a log, as before its start."""
        action = f"read the log of {pod}"
        status, body, _ = self._raw.fetch(
            f"{PODS.path(namespace, pod)}/log",
            action,
            {},
            tailLines="2000",
            limitBytes=str(LOG_BYTES),
        )
        if status in (400, 404):
            return None
        if status != 200:
            raise refusal(status, body[:200].decode("utf-8", "replace"), action, "get pods/log")
        return body.decode("utf-8", "replace")

    def _send(
        self, method: str, path: str, body: Document, action: str, right: str, form: str = PLAIN
    ) -> Document:
        """Send a document; the answer. Raises Conflict when the object exists, or was changed."""
        headers = {"Content-Type": form, "Accept": PLAIN}
        status, answer, _ = self._raw.send(method, path, action, headers, json.dumps(body).encode())
        if status == 409:
            raise Conflict(
                f"cannot {action}: {message(answer)}",
                hint="it was changed meanwhile; read it again",
            )
        if not 200 <= status < 300:
            raise refusal(status, message(answer), action, right)
        document: Document = json.loads(answer)
        return document

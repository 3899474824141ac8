"""Find, list, create, change and delete single objects of a cluster.

Nothing is tried again, since the callers repeat their pass every second. `ObjectClient` needs the
rights get, list, create, patch and delete on the resources in question, and get pods/log for logs.
"""

from typing import Any

from scaletest.cluster.api_calls import (
    MERGE_PATCH,
    ApiCalls,
    Cluster,
    Conflict,
    Missing,
    status_error,
)
from scaletest.cluster.resources import PODS, Resource

Document = dict[str, Any]


def read_log(api: ApiCalls, namespace: str, pod: str, **query: str) -> tuple[int, str]:
    """Read the HTTP status and the text of a pod's log. Raises Busy without an answer."""
    status, body, _ = api.fetch(
        f"{PODS.path(namespace, pod)}/log", f"read the log of {pod}", {}, **query
    )
    return status, body.decode("utf-8", "replace")


class ObjectClient:
    """The objects of one cluster. Several threads may use it."""

    def __init__(self, cluster: Cluster) -> None:
        self._api = ApiCalls(cluster, connections=16)

    def find(self, resource: Resource, namespace: str, name: str) -> Document | None:
        """Find the object; None if it does not exist."""
        try:
            return self._api.get(
                resource.path(namespace, name), f"read {name}", f"get {resource.plural}"
            )
        except Missing:
            return None

    def list(
        self, resource: Resource, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[Document]:
        """List all objects with these labels and fields, in a namespace ("": in all)."""
        return self._api.list_objects(
            resource.path(namespace), resource.plural, **selector_query(labels, fields)
        )

    def create(self, resource: Resource, namespace: str, body: Document) -> Document | None:
        """Create an object, and return it as created; None if one with that name exists."""
        try:
            return self._api.write(
                "POST",
                resource.path(namespace),
                body,
                f"create {resource.plural} {body['metadata']['name']}",
                f"create {resource.plural}",
            )
        except Conflict:
            return None

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Document,
        subresource: str = "",
        *,
        form: str = MERGE_PATCH,
    ) -> Document:
        """Merge a document into the object, or into its subresource (status).

        Raises Missing and Conflict.
        """
        suffix = f"/{subresource}" if subresource else ""
        return self._api.write(
            "PATCH",
            resource.path(namespace, name) + suffix,
            body,
            f"change {resource.kind} {name}",
            f"patch {resource.plural}{suffix}",
            patch_form=form,
        )

    def delete(self, resource: Resource, namespace: str, name: str, uid: str = "") -> None:
        """Delete the object, and what it owns in the background; with a uid only that very object.

        An object that does not exist is fine.
        """
        body: Document = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self._api.write(
                "DELETE",
                resource.path(namespace, name),
                body,
                f"delete {resource.kind} {name}",
                f"delete {resource.plural}",
            )
        except Missing:
            return
        except Conflict:
            if not uid:  # else another object has the name now
                raise

    def version(self) -> str:
        """Return the version of the API server, as in v1.37.1; every user may read it."""
        return str(self._api.get("/version", "read the version", "get /version")["gitVersion"])

    def log(self, namespace: str, pod: str) -> str:
        """Return the end of a pod's log; "" without a log, as before its start."""
        # larger than any framed result
        status, text = read_log(
            self._api, namespace, pod, tailLines="2000", limitBytes=str(4 * 1024 * 1024)
        )
        if status in (400, 404):
            return ""
        if status != 200:
            raise status_error(status, text[:200], f"read the log of {pod}", "get pods/log")
        return text


def selector_query(labels: str, fields: str) -> dict[str, str]:
    """Return the query that lists objects with these labels and fields, "" for any."""
    selectors = (("labelSelector", labels), ("fieldSelector", fields))
    return {name: selector for name, selector in selectors if selector}

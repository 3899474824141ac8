"""Objects of a cluster: their kinds, and find, list, create, change and delete single ones.

Nothing is tried again, since the callers repeat their pass every second. `Documents` needs the
rights get, list, create, patch and delete on the resources in question, and get pods/log for logs.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from scaletest.cluster.connection import MERGE_PATCH, ApiCalls, Cluster, Conflict, Missing, refusal

CONNECTIONS = 16
# The end of a log that is read: larger than any framed result.
LOG_BYTES = 4 * 1024 * 1024
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """API path of objects of a kind."""

    kind: str
    api: str  # as in /api/v1 or /apis/batch/v1
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of the collection in a namespace ("": in all), or of one object."""
        within = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{self.api}{within}/{self.plural}" + (f"/{quote(name)}" if name else "")


CONFIG_MAPS = Resource("ConfigMap", "/api/v1", "configmaps", True)
PODS = Resource("Pod", "/api/v1", "pods", True)
SECRETS = Resource("Secret", "/api/v1", "secrets", True)
SERVICES = Resource("Service", "/api/v1", "services", True)
CLAIMS = Resource("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", True)
NODES = Resource("Node", "/api/v1", "nodes", False)
QUOTAS = Resource("ResourceQuota", "/api/v1", "resourcequotas", True)
DEPLOYMENTS = Resource("Deployment", "/apis/apps/v1", "deployments", True)
JOBS = Resource("Job", "/apis/batch/v1", "jobs", True)
HPAS = Resource("HorizontalPodAutoscaler", "/apis/autoscaling/v2", "horizontalpodautoscalers", True)
ENDPOINT_SLICES = Resource("EndpointSlice", "/apis/discovery.k8s.io/v1", "endpointslices", True)
SCALED_OBJECTS = Resource("ScaledObject", "/apis/keda.sh/v1alpha1", "scaledobjects", True)
EVENTS = Resource("Event", "/api/v1", "events", True)
LEASES = Resource("Lease", "/apis/coordination.k8s.io/v1", "leases", True)


def read_log(raw: ApiCalls, namespace: str, pod: str, **query: str) -> tuple[int, str]:
    """Read the HTTP status and the text of a pod's log. Raises Busy without an answer."""
    status, body, _ = raw.fetch(
        f"{PODS.path(namespace, pod)}/log", f"read the log of {pod}", {}, **query
    )
    return status, body.decode("utf-8", "replace")


class ObjectClient:
    """Objects of one cluster. Several threads may use it."""

    def __init__(self, cluster: Cluster) -> None:
        self._raw = ApiCalls(cluster, CONNECTIONS)

    def find(self, resource: Resource, namespace: str, name: str) -> Document | None:
        """Find the object; None if it does not exist."""
        try:
            return self._raw.get(
                resource.path(namespace, name), f"read {name}", f"get {resource.plural}"
            )
        except Missing:
            return None

    def list(
        self, resource: Resource, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[Document]:
        """List all objects with these labels and fields, in a namespace ("": in all)."""
        return self._raw.objects(
            resource.path(namespace), resource.plural, **selector_query(labels, fields)
        )

    def create(self, resource: Resource, namespace: str, body: Document) -> Document | None:
        """Return the object as created; None if one with that name exists."""
        try:
            return self._raw.write(
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
        form: str = MERGE_PATCH,
    ) -> Document:
        """Merge a document into the object, or into its subresource (status).

        Raises Missing and Conflict.
        """
        suffix = f"/{subresource}" if subresource else ""
        return self._raw.write(
            "PATCH",
            resource.path(namespace, name) + suffix,
            body,
            f"change {resource.kind} {name}",
            f"patch {resource.plural}{suffix}",
            form,
        )

    def delete(self, resource: Resource, namespace: str, name: str, uid: str = "") -> None:
        """Delete the object, and what it owns in the background; with a uid only that very object.

        An object that does not exist is no error.
        """
        only = {"preconditions": {"uid": uid}} if uid else {}
        try:
            self._raw.write(
                "DELETE",
                resource.path(namespace, name),
                {"propagationPolicy": "Background", **only},
                f"delete {resource.kind} {name}",
                f"delete {resource.plural}",
            )
        except (Missing, Conflict) as error:
            if isinstance(error, Conflict) and not uid:
                raise

    def version(self) -> str:
        """Version of the API server, as in v1.37.1; every authenticated user may read it."""
        return str(self._raw.get("/version", "read the version", "get /version")["gitVersion"])

    def log(self, namespace: str, pod: str) -> str:
        """Return the end of a pod's log; "" without a log, as before its start."""
        status, text = read_log(
            self._raw, namespace, pod, tailLines="2000", limitBytes=str(LOG_BYTES)
        )
        if status in (400, 404):
            return ""
        if status != 200:
            raise refusal(status, text[:200], f"read the log of {pod}", "get pods/log")
        return text


def selector_query(labels: str, fields: str) -> dict[str, str]:
    """Return the query of a list that has these labels and fields, "" for any."""
    both = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in both.items() if text}

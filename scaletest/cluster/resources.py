"""The kinds of objects that are used here, and where the API server has them."""

from dataclasses import dataclass
from urllib.parse import quote


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


def selector_query(labels: str, fields: str) -> dict[str, str]:
    """Return the query of a list that has these labels and fields, "" for any."""
    both = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in both.items() if text}

"""Kinds of objects, with their paths in the API."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects, and where the API serves it."""

    kind: str  # as in Job
    api: str  # as in /api/v1 or /apis/batch/v1
    plural: str  # as in jobs, which paths and Roles use
    namespaced: bool = True  # whether its objects are in a namespace, not in the whole cluster

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of the collection in a namespace ("": in all), or of one object."""
        namespace_path = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{self.api}{namespace_path}/{self.plural}" + (f"/{quote(name)}" if name else "")


CONFIG_MAPS = Resource("ConfigMap", "/api/v1", "configmaps")
PODS = Resource("Pod", "/api/v1", "pods")
SECRETS = Resource("Secret", "/api/v1", "secrets")
SERVICES = Resource("Service", "/api/v1", "services")
CLAIMS = Resource("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims")
NODES = Resource("Node", "/api/v1", "nodes", namespaced=False)
QUOTAS = Resource("ResourceQuota", "/api/v1", "resourcequotas")
DEPLOYMENTS = Resource("Deployment", "/apis/apps/v1", "deployments")
STATEFUL_SETS = Resource("StatefulSet", "/apis/apps/v1", "statefulsets")
JOBS = Resource("Job", "/apis/batch/v1", "jobs")
HPAS = Resource("HorizontalPodAutoscaler", "/apis/autoscaling/v2", "horizontalpodautoscalers")
ENDPOINT_SLICES = Resource("EndpointSlice", "/apis/discovery.k8s.io/v1", "endpointslices")
SCALED_OBJECTS = Resource("ScaledObject", "/apis/keda.sh/v1alpha1", "scaledobjects")
EVENTS = Resource("Event", "/api/v1", "events")
LEASES = Resource("Lease", "/apis/coordination.k8s.io/v1", "leases")

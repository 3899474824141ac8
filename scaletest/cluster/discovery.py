"""Ask what the API server serves: its API groups, and whether the metrics APIs answer.

Every authenticated user may ask; no Role is needed.
"""

from contextlib import suppress
from dataclasses import dataclass

from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.model.errors import ScaletestError

KEDA = "keda.sh"
METRICS = {
    "metrics.k8s.io": "CPU and memory of pods (metrics-server)",
    "custom.metrics.k8s.io": "an HPA of kind hpa-custom (prometheus-adapter)",
    "external.metrics.k8s.io": (
        "an HPA of kind hpa-external, and KEDA (KEDA or prometheus-adapter, one of them)"
    ),
}


@dataclass(frozen=True, slots=True)
class MetricsApi:
    """An API group that another server than the API server serves."""

    group: str
    version: str
    state: str  # available, silent (registered, but it does not answer) or absent
    why: str  # what needs it


def api_groups(cluster: Cluster) -> dict[str, str]:
    """Return the preferred version of each API group that is served or registered."""
    return {
        str(group["name"]): str(group["preferredVersion"]["version"])
        for group in ApiCalls(cluster).get("/apis", "list the API groups", "get /apis")["groups"]
    }


def metrics_apis(cluster: Cluster, served: dict[str, str]) -> list[MetricsApi]:
    """Return the three metrics APIs and their state. served: as `api_groups` returns it."""
    api = ApiCalls(cluster)
    apis = []
    for group, why in METRICS.items():
        state = "absent"
        if group in served:
            path = f"/apis/{group}/{served[group]}"
            # one that is registered may still not answer
            state = "silent"
            with suppress(ScaletestError):
                if "resources" in api.get(path, f"read {path}", f"get {path}"):
                    state = "available"
        apis.append(MetricsApi(group, served.get(group, ""), state, why))
    return apis

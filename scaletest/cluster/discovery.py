"""Discovery of the API server: its version, API groups, and whether the metrics APIs answer.

Every authenticated user may call it; no Role is needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from scaletest.cluster.connection import Cluster
from scaletest.cluster.raw import Raw
from scaletest.model.errors import ScaletestError

KEDA = "keda.sh"
ALLOCATION = "resource.k8s.io"
METRICS = {
    "metrics.k8s.io": "CPU and memory of pods (metrics-server)",
    "custom.metrics.k8s.io": "an HPA of kind hpa-custom (prometheus-adapter)",
    "external.metrics.k8s.io": (
        "an HPA of kind hpa-external, and KEDA (KEDA or prometheus-adapter, one of them)"
    ),
}


class MetricsApi(NamedTuple):
    """An API group that another server than the API server serves.

    state: available, silent (registered, but it does not answer) or absent. why: what needs it.
    """

    group: str
    version: str
    state: str
    why: str


def version(cluster: Cluster) -> str:
    """Version of the API server, as in v1.37.1."""
    return str(Raw(cluster).get("/version", "read the version", "get /version")["gitVersion"])


def groups(cluster: Cluster) -> dict[str, str]:
    """Preferred version of each API group that is served or registered."""
    served = Raw(cluster).get("/apis", "list the API groups", "get /apis")["groups"]
    return {str(group["name"]): str(group["preferredVersion"]["version"]) for group in served}


def metrics(cluster: Cluster, served: dict[str, str]) -> list[MetricsApi]:
    """The three metrics APIs and their state; one that is registered may still not answer."""
    raw = Raw(cluster)
    apis = []
    for group, why in METRICS.items():
        state = "absent"
        if group in served:
            state = "available" if _answers(raw, f"/apis/{group}/{served[group]}") else "silent"
        apis.append(MetricsApi(group, served.get(group, ""), state, why))
    return apis


def _answers(raw: Raw, path: str) -> bool:
    try:
        answer: Any = raw.get(path, f"read {path}", f"get {path}")
    except ScaletestError:
        return False
    return "resources" in answer

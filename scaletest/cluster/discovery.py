"""What the API server serves: its version, groups of resources, and whether the metrics APIs behind it answer.

Every authenticated user may ask; no Role is needed.
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
    "external.metrics.k8s.io": "an HPA of kind hpa-external, and KEDA (KEDA or prometheus-adapter, one of them)",
}


class MetricsApi(NamedTuple):
    """A group that somebody else than the API server may serve. state: available, silent (registered) or absent."""

    group: str
    version: str
    state: str
    why: str


def version(cluster: Cluster) -> str:
    """Of the API server, as in v1.37.1."""
    return str(Raw(cluster).get("/version", "read the version", "get /version")["gitVersion"])


def groups(cluster: Cluster) -> dict[str, str]:
    """Groups that are served or registered, each with its preferred version."""
    found = Raw(cluster).get("/apis", "read which APIs there are", "get /apis")["groups"]
    return {str(row["name"]): str(row["preferredVersion"]["version"]) for row in found}


def metrics(cluster: Cluster, served: dict[str, str]) -> list[MetricsApi]:
    """The three metrics APIs. One that is registered and whose server is down does not answer."""
    raw = Raw(cluster)
    found = []
    for group, why in METRICS.items():
        state = "absent"
        if group in served:
            state = "available" if _answers(raw, f"/apis/{group}/{served[group]}") else "silent"
        found.append(MetricsApi(group, served.get(group, ""), state, why))
    return found


def _answers(raw: Raw, path: str) -> bool:
    try:
        answer: Any = raw.get(path, f"read {path}", f"get {path}")
    except ScaletestError:
        return False
    return "resources" in answer

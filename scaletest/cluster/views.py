"""What the workers of a namespace can see of their nodes, as each wrote it into its log when it began.

Needs the rights to list pods and to get pods/log, and no other: nothing is started in the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from scaletest.cluster.connection import Cluster
from scaletest.cluster.raw import Raw
from scaletest.model.visibility import Visibility

MOST_NODES = 50
# Of each node so many workers are asked, since the beginning of a log may be gone.
MOST_PODS = 3
LOG_BYTES = 65536


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node. view: what `pod` sees there; None when no log of a worker there says."""

    node: str
    pod: str
    view: Visibility | None


def views(cluster: Cluster) -> list[NodeView]:
    """Of every node with a running worker of the namespace, by name."""
    raw = Raw(cluster)
    path = f"/api/v1/namespaces/{quote(cluster.namespace)}/pods"
    rows = raw.get(path, "list pods", "list pods", fieldSelector="status.phase=Running")["items"]
    workers: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        container = worker_container(row["spec"])
        if container and row["spec"].get("nodeName"):
            workers[row["spec"]["nodeName"]].append((row["metadata"]["name"], container))
    return [_of_node(raw, path, node, workers[node]) for node in sorted(workers)[:MOST_NODES]]


def worker_container(spec: Mapping[str, Any]) -> str:
    """The name of the container that runs a worker, "" when none does."""
    for container in spec.get("containers", []):
        words = [*(container.get("command") or []), *(container.get("args") or [])]
        if "worker" in words[:4]:
            return str(container["name"])
    return ""


def without_causes(spec: Mapping[str, Any]) -> bool:
    """Whether the workers of a pod were told not to sample."""
    containers = [one for one in spec.get("containers", []) if one.get("name") == worker_container(spec)]
    words = [word for one in containers for word in [*(one.get("command") or []), *(one.get("args") or [])]]
    ours = words[: words.index("--")] if "--" in words else words
    return "--no-causes" in ours


def _of_node(raw: Raw, path: str, node: str, workers: Sequence[tuple[str, str]]) -> NodeView:
    for pod, container in workers[:MOST_PODS]:
        query = {"container": container, "limitBytes": str(LOG_BYTES)}
        status, body, _ = raw.fetch(f"{path}/{quote(pod)}/log", f"read the log of {pod}", {}, **query)
        lines = body.decode("utf-8", "replace").splitlines() if status == 200 else []
        view = next((one for one in map(Visibility.from_line, lines) if one is not None), None)
        if view is not None:
            return NodeView(node, pod, view)
    return NodeView(node, workers[0][0], None)

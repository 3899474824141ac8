"""Views of nodes: what workers of a namespace can observe there, as each logged it at its start.

Needs only the rights to list pods and to get pods/log: nothing is started in the cluster.
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
# Logs that are read for each node, since the beginning of a log may be rotated away.
MOST_PODS = 3
LOG_BYTES = 65536


@dataclass(frozen=True, slots=True)
class NodeView:
    """The view of one node from a pod; None when no log of a worker there has it."""

    node: str
    pod: str
    view: Visibility | None


def views(cluster: Cluster) -> list[NodeView]:
    """Views of all nodes with a running worker of the namespace, sorted by name."""
    raw = Raw(cluster)
    path = f"/api/v1/namespaces/{quote(cluster.namespace)}/pods"
    pods = raw.get(path, "list pods", "list pods", fieldSelector="status.phase=Running")["items"]
    workers: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pod in pods:
        container = worker_container(pod["spec"])
        if container and pod["spec"].get("nodeName"):
            workers[pod["spec"]["nodeName"]].append((pod["metadata"]["name"], container))
    return [_of_node(raw, path, node, workers[node]) for node in sorted(workers)[:MOST_NODES]]


def worker_container(spec: Mapping[str, Any]) -> str:
    """The name of the container that runs a worker, "" when none does."""
    for container in spec.get("containers", []):
        if "worker" in _command_line(container)[:4]:
            return str(container["name"])
    return ""


def without_causes(spec: Mapping[str, Any]) -> bool:
    """Whether the workers of a pod have the option not to sample causes."""
    name = worker_container(spec)
    container: Mapping[str, Any] = next(
        (known for known in spec.get("containers", []) if known.get("name") == name), {}
    )
    line = _command_line(container)
    # what follows is the workload's command line
    own = line[: line.index("--")] if "--" in line else line
    return "--no-causes" in own


def _command_line(container: Mapping[str, Any]) -> list[str]:
    return [*(container.get("command") or []), *(container.get("args") or [])]


def _of_node(raw: Raw, path: str, node: str, workers: Sequence[tuple[str, str]]) -> NodeView:
    for pod, container in workers[:MOST_PODS]:
        query = {"container": container, "limitBytes": str(LOG_BYTES)}
        status, body, _ = raw.fetch(
            f"{path}/{quote(pod)}/log", f"read the log of {pod}", {}, **query
        )
        lines = body.decode("utf-8", "replace").splitlines() if status == 200 else []
        view = next(
            (parsed for parsed in map(Visibility.from_line, lines) if parsed is not None), None
        )
        if view is not None:
            return NodeView(node, pod, view)
    return NodeView(node, workers[0][0], None)

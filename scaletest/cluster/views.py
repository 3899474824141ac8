"""Views of nodes: what workers of a namespace can observe there, as each logged it at its start.

Needs only the rights to list pods and to get pods/log: nothing is started in the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from scaletest.cluster.connection import Cluster, Raw
from scaletest.cluster.objects import PODS, read_log
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
    pods = raw.objects(
        PODS.path(cluster.namespace), PODS.plural, fieldSelector="status.phase=Running"
    )
    workers: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pod in pods:
        container = worker_container(pod["spec"])
        if container and pod["spec"].get("nodeName"):
            workers[pod["spec"]["nodeName"]].append((pod["metadata"]["name"], container["name"]))
    return [
        _of_node(raw, cluster.namespace, node, workers[node])
        for node in sorted(workers)[:MOST_NODES]
    ]


def worker_container(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The container that runs a worker, empty when none does."""
    return next(
        (
            container
            for container in spec.get("containers", [])
            if "worker" in _command_line(container)[:4]
        ),
        {},
    )


def without_causes(spec: Mapping[str, Any]) -> bool:
    """Whether the workers of a pod have the option not to sample causes."""
    # what follows a -- is the workload's command line
    own_words = takewhile(lambda word: word != "--", _command_line(worker_container(spec)))
    return "--no-causes" in own_words


def _command_line(container: Mapping[str, Any]) -> list[str]:
    return [*(container.get("command") or []), *(container.get("args") or [])]


def _of_node(raw: Raw, namespace: str, node: str, workers: Sequence[tuple[str, str]]) -> NodeView:
    for pod, container in workers[:MOST_PODS]:
        status, text = read_log(raw, namespace, pod, container=container, limitBytes=str(LOG_BYTES))
        for line in text.splitlines() if status == 200 else ():
            if (view := Visibility.from_line(line)) is not None:
                return NodeView(node, pod, view)
    return NodeView(node, workers[0][0], None)

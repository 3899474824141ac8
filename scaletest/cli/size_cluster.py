"""scaletest size --deployment: pod and nodes as the cluster has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from scaletest.analysis.sizing import NodeSize
from scaletest.cluster import capacity, rights
from scaletest.cluster.connection import connect
from scaletest.cluster.deployment import Deployment

GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Live:
    """A pod's requests in cores and GiB, 0 for none, and the cluster's kinds of node."""

    cpu: float
    memory: float
    nodes: list[NodeSize] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def look(deployment: str, namespace: str, context: str) -> Live:
    """Read Deployment and nodes; the largest requests of other pods on a node are overhead."""
    cluster = connect(namespace, context)
    live = Deployment(cluster, deployment)
    asked = capacity.requests(live.template["spec"])
    cpu, memory = float(asked.get("cpu", 0)), float(asked.get("memory", 0)) / GIB
    notes = [
        f"deployment {deployment}: {live.replicas()} replicas, {cpu:g} CPU and {memory:.3g} GiB"
        " each"
    ]
    if rights.missing(cluster, rights.CAPACITY):
        return Live(cpu, memory, [], [*notes, "the nodes may not be listed: give --node-cpu"])
    placed = Counter(pod.node for pod in live.pods())
    kinds: Counter[tuple[float, float, int]] = Counter()
    taken: dict[tuple[float, float, int], tuple[float, float]] = {}
    for node in capacity.nodes(cluster):
        if not node.schedulable:
            continue
        kind = (
            float(node.allocatable.get("cpu", 0)),
            float(node.allocatable.get("memory", 0)) / GIB,
            int(node.allocatable.get("pods", 110)),
        )
        gone = (
            kind[0] - float(node.free.get("cpu", 0)),
            kind[1] - float(node.free.get("memory", 0)) / GIB,
        )
        own = placed[node.name]
        gone = (max(0.0, gone[0] - own * cpu), max(0.0, gone[1] - own * memory))
        before = taken.get(kind, (0.0, 0.0))
        taken[kind] = (max(before[0], gone[0]), max(before[1], gone[1]))
        kinds[kind] += 1
    notes += [
        f"{count} nodes of {kind[0]:g} CPU, {kind[1]:.3g} GiB"
        for kind, count in kinds.most_common()
    ]
    nodes = [
        NodeSize(kind[0], kind[1], 0.0, kind[2], *taken[kind]) for kind, _ in kinds.most_common()
    ]
    return Live(cpu, memory, nodes, notes)

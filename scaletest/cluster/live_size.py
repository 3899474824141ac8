"""The size of a pod, and the nodes for it, as a cluster has them now."""

from collections import Counter
from typing import NamedTuple

from scaletest.cluster import capacity, pod_requests, rights
from scaletest.cluster.connection import Cluster
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.node_size import NodeSize

GIB = 2.0**30


class LiveSize(NamedTuple):
    """A pod's requests in cores and GiB, 0 for none, and the cluster's kinds of node."""

    cpu: float
    memory: float
    nodes: list[NodeSize]
    notes: list[str]


def live_size(cluster: Cluster, name: str) -> LiveSize:
    """Read a Deployment and the nodes; the largest requests of other pods on a node are its
    overhead.
    """
    live = Deployment(cluster, name)
    asked = pod_requests.pod_requests(live.template["spec"])
    cpu, memory = float(asked.get("cpu", 0)), float(asked.get("memory", 0)) / GIB
    notes = [
        f"deployment {name}: {live.replicas()} replicas, {cpu:g} CPU and {memory:.3g} GiB each"
    ]
    if rights.missing_rights(cluster, rights.CAPACITY):
        return LiveSize(cpu, memory, [], [*notes, "the nodes may not be listed: give <node>"])
    placed = Counter(pod.node for pod in live.pods())
    kinds: Counter[tuple[float, float, int]] = Counter()
    taken: dict[tuple[float, float, int], tuple[float, float]] = {}
    for node in capacity.read_nodes(cluster):
        if not node.schedulable:
            continue
        cores = float(node.allocatable.get("cpu", 0))
        gib = float(node.allocatable.get("memory", 0)) / GIB
        kind = cores, gib, int(node.allocatable.get("pods", 110))
        before, ours = taken.get(kind, (0.0, 0.0)), placed[node.name]
        taken[kind] = (
            max(before[0], cores - float(node.free.get("cpu", 0)) - ours * cpu),
            max(before[1], gib - float(node.free.get("memory", 0)) / GIB - ours * memory),
        )
        kinds[kind] += 1
    nodes = []
    for (cores, gib, pods), count in kinds.most_common():
        notes.append(f"{count} nodes of {cores:g} CPU, {gib:.3g} GiB")
        nodes.append(NodeSize(cores, gib, 0.0, pods, *taken[cores, gib, pods]))
    return LiveSize(cpu, memory, nodes, notes)

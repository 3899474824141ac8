"""Read the size of a Deployment's pods, and of the nodes for them, from a cluster."""

from collections import Counter, defaultdict
from typing import NamedTuple

from scaletest.cluster import capacity, pod_requests, rights
from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.node_size import NodeSize

GIB = 2.0**30


class LiveSize(NamedTuple):
    """The requests of a pod, and the nodes of the cluster."""

    cpu: float  # cores, 0 for none
    memory: float  # GiB, 0 for none
    nodes: list[NodeSize]  # one of each size, the most common first
    notes: list[str]  # what was read, for people


def live_size(cluster: Cluster, name: str) -> LiveSize:
    """Read the pods of a Deployment, and the nodes that take pods.

    The largest requests of other pods on a node of a size count as the overhead of that size.
    """
    deployment = Deployment(cluster, name)
    requests = pod_requests.pod_requests(deployment.template["spec"])
    cpu, memory = float(requests.get("cpu", 0)), float(requests.get("memory", 0)) / GIB
    notes = [
        f"deployment {name}: {deployment.replicas()} replicas, {cpu:g} CPU and {memory:.3g} GiB"
        " each"
    ]
    if rights.missing_rights(cluster, rights.CAPACITY):
        return LiveSize(cpu, memory, [], [*notes, "the nodes may not be listed: give <node>"])
    placed = Counter(pod.node for pod in deployment.pods())
    # by size, which is cores, GiB and pods: the overheads of each of its nodes, in cores and GiB
    overheads: dict[tuple[float, float, int], list[tuple[float, float]]] = defaultdict(list)
    for node in capacity.read_nodes(cluster):
        if not node.schedulable:
            continue
        cores = float(node.allocatable.get("cpu", 0))
        gib = float(node.allocatable.get("memory", 0)) / GIB
        our_pods = placed[node.name]
        overheads[cores, gib, int(node.allocatable.get("pods", 110))].append(
            (
                cores - float(node.free.get("cpu", 0)) - our_pods * cpu,
                gib - float(node.free.get("memory", 0)) / GIB - our_pods * memory,
            )
        )
    nodes = []
    for (cores, gib, pods), taken in sorted(overheads.items(), key=lambda size: -len(size[1])):
        notes.append(f"{len(taken)} nodes of {cores:g} CPU, {gib:.3g} GiB")
        nodes.append(
            NodeSize(
                cpu=cores,
                memory=gib,
                pods=pods,
                overhead_cpu=max(0.0, *(taken_cpu for taken_cpu, _ in taken)),
                overhead_memory=max(0.0, *(taken_memory for _, taken_memory in taken)),
            )
        )
    return LiveSize(cpu, memory, nodes, notes)

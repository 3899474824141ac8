"""How many pods and nodes a request rate needs: by formula, and pods placed node by node. Pure.

The formulas (Grecoe, "Scaling Azure Container Service Clusters", 2018):

    pods = rate x latency / concurrency
    nodes = (pods x cpu + shared) / (node cpu - node overhead)
    rate = pods x concurrency / latency

with 0.7 CPU of overhead on each node, and 3 shared front ends of 1.3 CPU. They state no rounding
(here both are rounded up), pool CPU over the cluster although a pod cannot be split between nodes,
and know neither memory, devices nor a limit of pods. `packed_nodes` places pods: the shared ones
spread as the scheduler does, then ours, and counts nodes.

Measured against the formula, short requests reach less (the article's table): EFFICIENCY. Azure
ML's formula adds a target utilisation, here `headroom`: replicas = rate x latency / (concurrency x
0.7).
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from scaletest.model.declared import named_in_documents
from scaletest.model.document import check_fields
from scaletest.model.errors import InvalidValue
from scaletest.model.writing import Written

# What the kubelet and the agents of a usual cluster take, in cores.
NODE_OVERHEAD_CPU = 0.7
# The default of the kubelet.
PODS_A_NODE = 110
Amount = Annotated[float, Meta(ge=0, le=1e9)]
AboveZero = Annotated[float, Meta(gt=0, le=1e9)]
# The front ends of the article: how many pods, and the cores of each.
SHARED_PODS = 3
SHARED_CPU = 1.3
HEADROOM = 0.7
MOST_NODES = 100_000
MOST_PODS = 1_000_000
# Latency in s from which a row holds -> lowest and highest measured part of the computed rate.
EFFICIENCY: dict[float, tuple[float, float]] = {
    0.0: (0.65, 0.80),
    0.1: (0.85, 0.95),
    1.0: (0.95, 1.00),
}
# What floating-point numbers may be off by where they are rounded to whole pods and nodes.
_ROUNDING = 1e-9


class ResourceAmounts(NamedTuple):
    """Amounts of what a node has, or a pod asks for."""

    cpu: float  # cores
    memory: float  # GiB
    devices: float
    pods: float


@dataclass(frozen=True, slots=True)
class PodSize:
    """What a pod asks for, and serves."""

    cpu: Annotated[AboveZero, Meta(title="a pod's CPU")]  # cores
    memory: Annotated[Amount, Meta(title="a pod's memory")] = 0.0  # GiB
    devices: Annotated[Amount, Meta(title="a pod's number of devices")] = 0.0
    # requests that it serves at once
    concurrency: Annotated[AboveZero, Meta(title="a pod's concurrency")] = 1.0

    @property
    def requests(self) -> ResourceAmounts:
        """What it takes of a node."""
        return ResourceAmounts(self.cpu, self.memory, self.devices, 1.0)


@dataclass(frozen=True, slots=True)
class NodeSize:
    """A node. Memory is in GiB, and the overhead is what it needs before our pods come."""

    cpu: Annotated[AboveZero, Meta(title="a node's CPU")]
    memory: Annotated[
        float, Meta(gt=0, title="a node's memory", extra={"hint": "give a number above 0"})
    ] = math.inf
    devices: Annotated[Amount, Meta(title="a node's number of devices")] = 0.0
    pods: Annotated[int, Meta(ge=1, le=100_000, title="a node's number of pods")] = PODS_A_NODE
    overhead_cpu: Annotated[Amount, Meta(title="a node's CPU overhead")] = NODE_OVERHEAD_CPU
    overhead_memory: Annotated[Amount, Meta(title="a node's memory overhead")] = 0.0

    @property
    def free(self) -> ResourceAmounts:
        """What is left beside the overhead."""
        return ResourceAmounts(
            self.cpu - self.overhead_cpu,
            self.memory - self.overhead_memory,
            self.devices,
            float(self.pods),
        )


@dataclass(frozen=True, slots=True)
class CapacityDemand:
    """The load to be served, and the pods and nodes for it."""

    rate: Annotated[AboveZero, Meta(title="the request rate")]  # requests a second
    # of one request under several in flight, not under overload
    latency_s: Annotated[AboveZero, Meta(title="the latency")]
    pod: PodSize
    node: NodeSize
    shared_pods: Annotated[int, Meta(ge=0, le=1000, title="the number of shared pods")] = (
        SHARED_PODS
    )
    shared_cpu: Annotated[Amount, Meta(title="a shared pod's CPU")] = SHARED_CPU
    # measured saturation of one pod in requests a second; then latency and concurrency do not count
    per_pod: Annotated[Amount, Meta(title="the measured rate of a pod")] = 0.0

    @property
    def shared_cpu_total(self) -> float:
        """The cores that all shared pods ask for."""
        return self.shared_pods * self.shared_cpu

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        low, high = efficiency_range(self.latency_s)
        return {
            "rate_per_s": self.rate,
            "latency_s": self.latency_s,
            "concurrency": self.pod.concurrency,
            "cpu": self.pod.cpu,
            "memory_gib": self.pod.memory,
            "devices": self.pod.devices,
            "per_pod_per_s": self.per_pod or None,
            "efficiency_low": low,
            "efficiency_high": high,
        }


@dataclass(frozen=True, slots=True)
class Size(Written):
    """One alternative."""

    method: Annotated[str, "how it was determined."]
    pods: int
    nodes: Annotated[int | None, "None when such a pod fits on no such node."]
    holds: Annotated[
        float,
        named_in_documents("holds_per_s"),
        "requests per second of so many pods, by the same method; at 70 %: operate.",
    ]
    used: Annotated[
        float, named_in_documents("cpu_used"), "part of the nodes' CPU that pods ask for."
    ]
    note: str = ""


def efficiency_range(latency_s: float) -> tuple[float, float]:
    """Return the lowest and highest part of the formula's rate that was measured at a latency."""
    return EFFICIENCY[max(begin_s for begin_s in EFFICIENCY if latency_s >= begin_s)]


def pod_rate(demand: CapacityDemand, efficiency: float = 1.0) -> float:
    """Return requests a second of one pod: measured, or this part of what the formula says."""
    return demand.per_pod or demand.pod.concurrency / demand.latency_s * efficiency


def formula_pods(demand: CapacityDemand, efficiency: float = 1.0) -> int:
    """Return pods by the formula, rounded up. efficiency: the part of its rate that they reach."""
    return max(1, math.ceil(demand.rate / pod_rate(demand, efficiency) - _ROUNDING))


def formula_nodes(demand: CapacityDemand, pods: int) -> int | None:
    """Return nodes by the formula, which pools CPU, rounded up."""
    left = demand.node.cpu - demand.node.overhead_cpu
    if left <= 0:
        return None
    return max(1, math.ceil((pods * demand.pod.cpu + demand.shared_cpu_total) / left - _ROUNDING))


def pods_that_fit(demand: CapacityDemand, nodes: int) -> int:
    """Return how many pods of ours fit onto so many nodes; 0 when the shared ones do not fit.

    Nodes are alike, and each shared pod lies on the emptiest, so they are dealt out in turn.
    """
    shared, fuller_nodes = divmod(demand.shared_pods, nodes)
    on_fuller: int | None = _pods_beside(demand, shared + 1) if fuller_nodes else 0
    on_other = _pods_beside(demand, shared)
    if on_other is None or on_fuller is None:
        return 0
    return fuller_nodes * on_fuller + (nodes - fuller_nodes) * on_other


def packed_nodes(demand: CapacityDemand, pods: int, spare: int = 0) -> int | None:
    """Return the fewest nodes for shared pods and ours, and `spare` more; None if no pod fits."""
    if not _pods_in(demand.node.free, demand.pod):
        return None
    # double until there are enough, then bisect
    enough = 1
    while pods_that_fit(demand, enough) < pods:
        enough *= 2
        if enough > MOST_NODES:
            return None
    return 1 + bisect_left(range(1, enough), pods, key=partial(pods_that_fit, demand)) + spare


def size_alternatives(
    demand: CapacityDemand, headroom: float = HEADROOM, spare: int = 1
) -> list[Size]:
    """Return the alternatives, from the bare formula to pods with headroom and spare nodes.

    headroom: the part of the pods' capacity to use, above 0 and at most 1. spare: nodes, from 0.
    InvalidValue for a demand that makes no sense.
    """
    for checked in (demand, demand.pod, demand.node):
        check_fields(checked)
    if formula_pods(demand) > MOST_PODS:
        raise InvalidValue(
            f"more than {MOST_PODS} pods would be needed",
            hint="look at the units of rate and latency",
        )
    alternatives = []
    # pods by the formula, at the efficiency of short requests, and with headroom as well
    efficiency, _ = efficiency_range(demand.latency_s)
    plain_pods = formula_pods(demand)
    efficient_pods = formula_pods(demand, efficiency)
    rate_with_headroom = pod_rate(demand, efficiency) * headroom
    safe_pods = max(1, math.ceil(demand.rate / rate_with_headroom - _ROUNDING))
    if not demand.per_pod:
        nodes = formula_nodes(demand, plain_pods)
        note = ""
        if nodes:
            # the formula pools CPU, but a pod cannot be split between nodes
            fitting = pods_that_fit(demand, nodes)
            if fitting < plain_pods:
                note = f"only {fitting} of these pods fit on {nodes} nodes"
        alternatives.append(_alternative(demand, "formula", plain_pods, nodes, 1.0, note=note))
        if efficient_pods != plain_pods:
            nodes = formula_nodes(demand, efficient_pods)
            note = f"short requests reach {efficiency:.0%} of the formula"
            alternatives.append(
                _alternative(
                    demand, "formula, efficiency", efficient_pods, nodes, efficiency, note=note
                )
            )
    nodes = packed_nodes(demand, efficient_pods)
    alternatives.append(_alternative(demand, "placed", efficient_pods, nodes, efficiency))
    method, note = f"placed, at {headroom:.0%}", "runs below its saturation point"
    nodes = packed_nodes(demand, safe_pods)
    alternatives.append(_alternative(demand, method, safe_pods, nodes, efficiency, note=note))
    if spare:
        method += f", N-{spare}"
        note = f"and when {spare} nodes are lost"
        if spare == 1:
            note = "and when a node is lost"
        nodes = packed_nodes(demand, safe_pods, spare)
        alternatives.append(_alternative(demand, method, safe_pods, nodes, efficiency, note=note))
    return alternatives


def _alternative(
    demand: CapacityDemand,
    method: str,
    pods: int,
    nodes: int | None,
    efficiency: float,
    *,
    note: str = "",
) -> Size:
    """Return an alternative with what it holds. nodes: None or 0 when no such pod fits."""
    holds = pods * pod_rate(demand, efficiency)
    if not nodes:
        return Size(method, pods, nodes, holds, 0.0, "a pod of this size fits on no such node")
    used = (pods * demand.pod.cpu + demand.shared_cpu_total) / (nodes * demand.node.cpu)
    return Size(method, pods, nodes, holds, used, note)


def _pods_beside(demand: CapacityDemand, shared: int) -> int | None:
    """Return how many pods of ours fit beside so many shared ones; None if those do not fit."""
    free = demand.node.free
    left = free._replace(cpu=free.cpu - shared * demand.shared_cpu, pods=free.pods - shared)
    if shared and (left.cpu < -_ROUNDING or left.pods < 0):
        return None
    return _pods_in(left, demand.pod)


def _pods_in(free: ResourceAmounts, pod: PodSize) -> int:
    """Return how many such pods fit into the free resources of one node."""
    rooms = [have / want for have, want in zip(free, pod.requests, strict=True) if want > 0]
    return max(0, math.floor(min(rooms) + _ROUNDING))

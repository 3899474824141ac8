"""The size of a node, and what it offers to pods."""

import math
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

# What the kubelet and the agents of a usual cluster take, in cores.
NODE_OVERHEAD_CPU = 0.7
# The default of the kubelet.
PODS_A_NODE = 110
Amount = Annotated[float, Meta(ge=0, le=1e9)]
AboveZero = Annotated[float, Meta(gt=0, le=1e9)]


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
    def free(self) -> tuple[float, float, float, float]:
        """The cores, GiB, devices and pods that are left beside the overhead."""
        return (
            self.cpu - self.overhead_cpu,
            self.memory - self.overhead_memory,
            self.devices,
            float(self.pods),
        )

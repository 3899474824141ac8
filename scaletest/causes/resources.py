"""Use of the nodes' resources while a step was measured.

Use is means of the samples. Nodes are those that served the step. A figure that was not read is
missing, never 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from scaletest.model.declared import INNER, Count, Positive, named_in_documents
from scaletest.model.node_sample import CONTAINER, CPU, DEVICE, NodeFigures
from scaletest.model.writing import Written

ENERGY_J = "energy_j"
Figures = Mapping[str, float]


def cores_text(busy: float, cores: float) -> str:
    """Return busy cores of all, as in "2.0 of 2 cores"."""
    return f"{busy:.1f} of {cores:g} cores"


@dataclass(frozen=True, slots=True)
class Energy(Written):
    """Energy that a device used in a step, by the difference of its counter."""

    joules: Annotated[float, "the difference of the device's counter"]
    seconds: Annotated[float, "between its two readings"]
    requests: Annotated[float, "of the whole step in these seconds, with fractions"]

    @property
    def per_request_j(self) -> Annotated[float, named_in_documents("joules_per_request")]:
        """Joules that the device used for each request of the step."""
        return self.joules / self.requests


@dataclass(frozen=True, slots=True)
class NodeUse(NodeFigures, Written):
    """One node in one step."""

    node: Annotated[str, "its name in replies"]
    samples: Annotated[Positive, "samples within the step"]
    resources: Annotated[
        Mapping[str, Figures],
        "means by resource and figure; kinds: cpu, memory, pressure, container, disk, "
        "network, device",
    ]
    energy: Annotated[Mapping[str, Energy], "by the device's name"] = field(default_factory=dict)
    requests_cpu: Annotated[float | None, "cores that the requests themselves used"] = None
    devices: Annotated[frozenset[str], INNER, "those that requests ran on."] = frozenset()

    @property
    def cores_busy(self) -> Annotated[float | None, "cores that run programs or the kernel"]:
        """Cores that run programs or the kernel."""
        parts = [self.value(CPU, name) for name in ("user", "system")]
        known = [part for part in parts if part is not None]
        return math.fsum(known) if known else None

    @property
    def cores_taken_share(self) -> float | None:
        """The part of its cores that programs, the kernel or a hypervisor use; None for unknown."""
        busy, cores = self.cores_busy, self.value(CPU, "cores")
        if busy is None or not cores:
            return None
        return (busy + (self.value(CPU, "steal") or 0.0)) / cores

    def used_devices(self) -> dict[str, Figures]:
        """Return the devices that requests ran on.

        All of the node where requests name no sampled one.
        """
        devices = self.of_kind(DEVICE)
        return {name: devices[name] for name in devices if name in self.devices} or devices


@dataclass(frozen=True, slots=True)
class NodeResource:
    """A disk, network or device of a node. name: its own; figures: the means of one step."""

    node: str
    name: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class StepResources(Written):
    """The nodes that served one step."""

    workers: Positive
    per_device: Annotated[Count, "workers on each device, in a run that compares that; else 0"]
    nodes: tuple[NodeUse, ...]

    def total(self, resource: str, figure: str) -> float | None:
        """Return the sum of a figure over all nodes; None where one of them lacks it."""
        return _sum([node.value(resource, figure) for node in self.nodes])

    def highest(self, resource: str, figure: str) -> float | None:
        """Return the highest of all nodes; None where none has it."""
        return max(self._known(resource, figure), default=None)

    def lowest(self, resource: str, figure: str) -> float | None:
        """Return the lowest of all nodes; None where none has it."""
        return min(self._known(resource, figure), default=None)

    def _known(self, resource: str, figure: str) -> list[float]:
        """Return a figure of the nodes that have it."""
        figures = [node.value(resource, figure) for node in self.nodes]
        return [known for known in figures if known is not None]

    @property
    def cores(self) -> Annotated[float | None, "of all nodes that served the step"]:
        """Cores of all nodes."""
        return self.total(CPU, "cores")

    @property
    def cores_busy(self) -> Annotated[float | None, ""]:
        """Busy cores of all nodes; None where one of them does not report it."""
        return _sum([node.cores_busy for node in self.nodes])

    @property
    def busiest_cores_share(self) -> float | None:
        """The part of the cores in use on the node where it is largest: its requests wait."""
        shares = [node.cores_taken_share for node in self.nodes]
        return max([share for share in shares if share is not None], default=None)

    @property
    def requests_cpu(self) -> float | None:
        """Cores that the requests themselves used on all nodes; None where some report none."""
        return _sum([node.requests_cpu for node in self.nodes])

    @property
    def cores_of_others(self) -> float:
        """Busy cores that the requests did not use themselves; 0 where it is unknown."""
        busy, own = self.cores_busy, self.requests_cpu
        return 0.0 if busy is None or own is None else busy - own

    @property
    def throttled_periods(self) -> float | None:
        """The part of periods in which a CPU limit throttled a container, as the mean of all nodes.

        None where one of them does not report it.
        """
        throttled = self.total(CONTAINER, "throttled_periods")
        return None if throttled is None else throttled / len(self.nodes)

    def places(self, kind: str) -> list[NodeResource]:
        """Every disk or network, or every device that requests ran on."""
        places = []
        for node in self.nodes:
            resources = node.used_devices() if kind == DEVICE else node.of_kind(kind)
            places += [
                NodeResource(node.node, name, figures) for name, figures in resources.items()
            ]
        return places

    def busiest(self, kind: str) -> NodeResource | None:
        """Return the disk or device that is busy for the largest part of the time.

        None where unknown.
        """
        return max(
            [place for place in self.places(kind) if "busy" in place.figures],
            key=lambda place: place.figures["busy"],
            default=None,
        )

    def place(self, kind: str, node: str, name: str) -> NodeResource | None:
        """One resource of a node by its name; None where it was not sampled."""
        return next(
            (place for place in self.places(kind) if (place.node, place.name) == (node, name)), None
        )

    def on_node(self, place: NodeResource) -> str:
        """Return where a place is, as in " on node-a"; "" where there is only one node."""
        return f" on {place.node}" if len(self.nodes) > 1 else ""

    @property
    def devices(self) -> int:
        """How many devices requests ran on, as far as these were sampled."""
        return sum(len(node.devices & set(node.of_kind(DEVICE))) for node in self.nodes)

    @property
    def joules_per_request(
        self,
    ) -> Annotated[float | None, "of all devices that requests ran on; null where one is unknown"]:
        """Joules of all devices that requests ran on, for each request.

        None where one of them has no number.
        """
        parts: list[float] = []
        for node in self.nodes:
            wanted = node.devices or node.energy.keys()
            if not wanted <= node.energy.keys():
                return None
            parts += [node.energy[name].per_request_j for name in wanted]
        return math.fsum(parts) if parts else None


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum; None where one is missing, or all."""
    known = [figure for figure in values if figure is not None]
    return math.fsum(known) if known and len(known) == len(values) else None

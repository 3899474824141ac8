"""Samples of nodes: the use of their resources and devices in one interval.

One of the node's workers reads them. A resource is "cpu", "memory", "pressure", "container", or a
disk, a network or a device: "disk:sda", "network:eth0", "device:/dev/dri/renderD128". Its figures
are rates over the interval or levels at its end, so that a lost sample changes nothing. Only energy
is a counter, because the energy of a step is the difference of two readings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from msgspec import Meta

from scaletest.model import checks
from scaletest.model.declared import VERSIONED
from scaletest.model.document import Document, read_document

CPU, MEMORY, PRESSURE, CONTAINER = "cpu", "memory", "pressure", "container"
DISK, NETWORK, DEVICE = "disk", "network", "device"
# The figures of each kind of resource, with their units: "1" is a part of one, "s/s" seconds in a
# second (cores, where threads run).
FIGURES: Mapping[str, Mapping[str, str]] = {
    CPU: {
        "cores": "cores",  # that are online
        "user": "s/s",
        "system": "s/s",
        "steal": "s/s",  # taken by the hypervisor
        "frequency": "1",  # mean of the cores' clocks over their highest
    },
    MEMORY: {"total": "B", "available": "B", "swap_in": "B/s", "swap_out": "B/s"},
    # part of the interval in which some thread waited for the resource
    PRESSURE: {"cpu_some": "1", "memory_some": "1", "io_some": "1"},
    # the container of the worker that reads; limits are absent where there are none
    CONTAINER: {
        "cpu_limit": "cores",
        "throttled_periods": "1",  # part of the CPU limit's periods
        "reclaims": "/s",  # how often memory was reclaimed because of the limit
    },
    DISK: {"busy": "1", "read": "B/s", "written": "B/s"},
    NETWORK: {"received": "B/s", "sent": "B/s", "speed": "B/s", "dropped": "/s"},
    # as OpenTelemetry's hw.gpu.*; engines by name: "busy.video"
    DEVICE: {
        "busy": "1",  # the busiest engine, or what the driver calls utilisation
        "busy.*": "1",
        "memory_used": "B",
        "memory_total": "B",
        "memory_busy": "1",
        "energy_j": "J",  # a counter
        "power": "W",
        "frequency": "1",  # clock over its highest
        "throttled": "1",  # 1 while heat, power or another limit lowers the clock
        "temperature": "Cel",
    },
}
MAX_RESOURCES = 64
MAX_NAME_CHARACTERS = 160
Figures = Annotated[Mapping[str, float], Meta(max_length=40)]
# Larger than any figure, and small enough that sums of many figures are finite.
_LARGEST = 1e30


class NodeFigures:
    """Figures of a node's resources, over a sample or a step."""

    __slots__ = ()
    resources: Mapping[str, Figures]

    def value(self, resource: str, figure: str) -> float | None:
        """Return one figure of one resource; None when it was not read."""
        return self.resources.get(resource, {}).get(figure)

    def of_kind(self, kind: str) -> dict[str, Mapping[str, float]]:
        """Return the figures of all resources of a kind by name: "sda", or "" without a name."""
        resources = {}
        for label, figures in self.resources.items():
            resource_kind, _, name = label.partition(":")
            if resource_kind == kind:
                resources[name] = figures
        return resources

    @property
    def cpu_busy(self) -> float | None:
        """Part of the CPUs' time that was used, by any program; None when it was not read."""
        user, system = self.value(CPU, "user"), self.value(CPU, "system")
        cores = self.value(CPU, "cores")
        if user is None or system is None or not cores:
            return None
        return min(1.0, (user + system) / cores)


@dataclass(frozen=True, slots=True)
class NodeSample(NodeFigures, Document):
    """The figures of one node over one interval, as one of its workers read them."""

    document_name = "the sample"
    constants = VERSIONED

    node: Annotated[str, "as in replies; this worker read the figures."]
    worker: Annotated[str, "as in replies; this worker read the figures."]
    at_s: Annotated[
        Annotated[float, Meta(extra={"digits": 3})],
        "the interval's end on Redis's clock, as `started_s` and `ended_s` of replies; 0 "
        "until Redis has it.",
    ]
    interval_s: Annotated[float, Meta(ge=0, le=1e6, extra={"digits": 3})]
    resources: Annotated[
        Mapping[str, Figures],
        Meta(max_length=MAX_RESOURCES),
        "name -> figure -> value, as in `FIGURES`; figures that cannot be read are absent.",
    ]

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what `to_dict` wrote; else InvalidValue. Figures of newer workers are kept."""
        sample = read_document(cls, data, cls.document_name)
        resources = {}
        for resource, figures in sample.resources.items():
            sound_figures = resources[_cut_name(resource)] = dict[str, float]()
            for name, number in figures.items():
                checks.number(number, "a figure of the sample", minimum=-_LARGEST, maximum=_LARGEST)
                # a negative one that cannot be negative is unknown
                if number >= 0 or name == "temperature":
                    sound_figures[_cut_name(name)] = number
        node = _cut_name(sample.node)
        worker = _cut_name(sample.worker)
        checks.number(sample.at_s, "at_s", minimum=-_LARGEST, maximum=_LARGEST)
        return replace(sample, node=node, worker=worker, resources=resources)


def _cut_name(text: str) -> str:
    return checks.cut_text(text, MAX_NAME_CHARACTERS)

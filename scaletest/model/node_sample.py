"""A sample of a node: use of its resources and devices in one interval, read by one of its workers.

A resource is "cpu", "memory", "pressure", "container", or a disk, a network or a device:
"disk:sda", "network:eth0", "device:/dev/dri/renderD128". Its figures are rates over the interval or
levels at its end, so that a lost sample changes nothing. Only energy is a counter, because the
energy of a step is the difference of two readings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue

CPU, MEMORY, PRESSURE, CONTAINER = "cpu", "memory", "pressure", "container"
DISK, NETWORK, DEVICE = "disk", "network", "device"
# kind of resource -> figure -> its unit: "1" is a part of one, "s/s" seconds in a second (cores,
# where threads run)
FIGURES: Mapping[str, Mapping[str, str]] = {
    CPU: {
        "cores": "cores",  # that are online
        "user": "s/s",
        "system": "s/s",
        "iowait": "s/s",
        "steal": "s/s",  # taken by the hypervisor
        "load": "threads",  # mean of the last minute
        "frequency": "1",  # mean of the cores' clocks over their highest
        "heat_throttled": "/s",  # how often heat lowered a clock
    },
    MEMORY: {"total": "B", "available": "B", "swap_in": "B/s", "swap_out": "B/s"},
    # part of the interval in which some thread (full: every thread) waited for the resource
    PRESSURE: {
        "cpu_some": "1",
        "memory_some": "1",
        "memory_full": "1",
        "io_some": "1",
        "io_full": "1",
    },
    # the container of the worker that reads; limits are absent where there are none
    CONTAINER: {
        "cpu_limit": "cores",
        "cpu_used": "s/s",
        "throttled": "s/s",
        "throttled_periods": "1",  # part of the limit's periods
        "memory_limit": "B",
        "memory_used": "B",
        "reclaims": "/s",  # how often memory was reclaimed because of the limit
        "oom_kills": "/s",
    },
    DISK: {
        "busy": "1",
        "read": "B/s",
        "written": "B/s",
        "wait_s": "s",
    },  # wait_s: mean of one read or write
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
        "awake": "1",  # part of the interval outside of its sleep; says little of how busy it was
    },
}
MAX_RESOURCES = 64
MAX_NAME_CHARACTERS = 160
_MAX_FIGURES = 40
# Larger than any figure, and small enough that sums of many figures are finite.
_LARGEST = 1e30


@dataclass(frozen=True, slots=True)
class NodeSample:
    """One interval of one node.

    node, worker: as in replies; this worker read the figures. at_s: the interval's end on Redis's
    clock, as `started_s` and `ended_s` of replies; 0 until Redis has it.
    resources: name -> figure -> value, as in `FIGURES`; figures that cannot be read are absent.
    sources: where a device's figures come from, by resource: "NVML", "sysfs", a host.
    """

    node: str
    worker: str
    at_s: float
    interval_s: float
    resources: Mapping[str, Mapping[str, float]]
    sources: Mapping[str, str]

    def __post_init__(self) -> None:
        checks.seconds(self.interval_s, "interval_s", maximum=1e6)
        checks.count(len(self.resources), "the number of resources", maximum=MAX_RESOURCES)

    def value(self, resource: str, figure: str) -> float | None:
        """One figure of one resource; None when it was not read."""
        return self.resources.get(resource, {}).get(figure)

    def of_kind(self, kind: str) -> dict[str, Mapping[str, float]]:
        """Figures of all resources of a kind by the resource's name, as "sda"; "" for none."""
        resources = {}
        for label, figures in self.resources.items():
            resource_kind, _, name = label.partition(":")
            if resource_kind == kind:
                resources[name] = figures
        return resources

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {
            "node": self.node,
            "worker": self.worker,
            "at_s": round(self.at_s, 3),
            "interval_s": round(self.interval_s, 3),
            "resources": {name: dict(figures) for name, figures in self.resources.items()},
            "sources": dict(self.sources),
            "schema_version": wire.SCHEMA_VERSION,
        }

    def to_json(self) -> str:
        """One line of samples.jsonl."""
        return wire.dump(self.to_dict())

    @classmethod
    def from_dict(cls, data: Any) -> NodeSample:
        """Read what `to_dict` wrote; else InvalidValue. Figures of newer workers are kept."""
        if not isinstance(data, dict):
            raise InvalidValue("the sample is not a JSON object")
        fields = wire.take(data, "the sample", _TYPES)
        missing = _TYPES.keys() - fields.keys()
        if missing:
            raise InvalidValue(f"the sample lacks {', '.join(sorted(missing))}")
        resources = {
            _name(name): _figures(figures) for name, figures in fields["resources"].items()
        }
        sources = {_name(name): _name(str(source)) for name, source in fields["sources"].items()}
        node, worker = _name(fields["node"]), _name(fields["worker"])
        return cls(
            node, worker, _finite(fields["at_s"]), _finite(fields["interval_s"]), resources, sources
        )


def _name(text: str) -> str:
    return checks.cut(text, MAX_NAME_CHARACTERS)


def _figures(data: Any) -> dict[str, float]:
    if not isinstance(data, dict) or len(data) > _MAX_FIGURES:
        raise InvalidValue(
            f"the figures of a resource are not a JSON object of at most {_MAX_FIGURES} members"
        )
    figures = {_name(name): _finite(number) for name, number in data.items()}
    # a negative figure that cannot be negative is unknown
    return {
        name: number for name, number in figures.items() if number >= 0 or name == "temperature"
    }


def _finite(number: Any) -> float:
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float)
        or not abs(number) <= _LARGEST
    ):
        raise InvalidValue(f"a figure of the sample is not a number, or beyond {_LARGEST:g}")
    return float(number)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "node": str,
    "worker": str,
    "at_s": (int, float),
    "interval_s": (int, float),
    "resources": dict,
    "sources": dict,
}

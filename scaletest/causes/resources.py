"""Use of the nodes' resources while a step was measured.

Use is means of the samples. Nodes are those that served the step. A figure that was not read is
missing, never 0.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from scaletest.causes.energy import ENERGY_J, Energy, energies
from scaletest.causes.steps import MeasuredStep, Rows
from scaletest.causes.windows import MeasuredWindow, windows_of
from scaletest.model import Reply
from scaletest.model.declared import INNER, Count, Positive, Written
from scaletest.model.measurement import CONTAINER, CPU, DEVICE, NodeFigures, NodeSample
from scaletest.render.numbers import plural

# A sample lies in a step when more than this part of its interval lies there; less where the rest
# is between two measurements of the step that follow each other.
WHOLE, BETWEEN = 0.999, 0.9
Figures = Mapping[str, float]


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

    def used_devices(self) -> dict[str, Figures]:
        """The devices that requests ran on; all of the node where requests name no sampled one."""
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
        """The sum of a figure over all nodes; None where one of them lacks it."""
        return _sum([node.value(resource, figure) for node in self.nodes])

    def highest(self, resource: str, figure: str) -> float | None:
        """The highest of all nodes; None where none has it."""
        return max(self._known(resource, figure), default=None)

    def lowest(self, resource: str, figure: str) -> float | None:
        """The lowest of all nodes; None where none has it."""
        return min(self._known(resource, figure), default=None)

    def _known(self, resource: str, figure: str) -> list[float]:
        """A figure of the nodes that have it."""
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
    def requests_cpu(self) -> float | None:
        """Cores that the requests themselves used on all nodes; None where some report none."""
        return _sum([node.requests_cpu for node in self.nodes])

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
        """The disk or device that is busy for the largest part of the time; None where unknown."""
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


def resources(
    steps: Sequence[MeasuredStep], records: Rows, samples: Sequence[NodeSample]
) -> tuple[list[StepResources], list[str]]:
    """The resources of every step that has samples, and warnings about unusable counters."""
    by_node = samples_by_node(samples)
    used: list[StepResources] = []
    warnings: list[str] = []
    for step in steps:
        windows = windows_of(step, records)
        rows = itertools.chain.from_iterable(window.rows for window in windows)
        nodes = []
        for name in sorted({record.reply.node for record in rows} & by_node.keys()):
            node, lines = _node_use(name, by_node[name], windows)
            if node.samples:
                nodes.append(node)
            warnings += [f"{plural(step.workers, 'worker')}: {line}" for line in lines]
        if nodes:
            used.append(StepResources(step.workers, step.per_device, tuple(nodes)))
    return used, warnings


def samples_by_node(samples: Iterable[NodeSample]) -> dict[str, list[NodeSample]]:
    """The samples of each node in the order of time."""
    by_node: dict[str, list[NodeSample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda sample: sample.at_s):
        by_node[sample.node].append(sample)
    return by_node


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; None where one is missing, or all."""
    known = [figure for figure in values if figure is not None]
    return math.fsum(known) if known and len(known) == len(values) else None


def _node_use(
    name: str, samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> tuple[NodeUse, list[str]]:
    """One node in a step, and warnings. samples: of that node, in the order of time."""
    inside = _inside_windows(samples, windows)
    energy, warnings = energies(name, samples, windows)
    records = itertools.chain.from_iterable(window.rows for window in windows)
    devices = {record.reply.device for record in records if record.reply.node == name}
    use = NodeUse(
        node=name,
        samples=len(inside),
        resources=_with_engines(_means(inside), _engines(name, windows)),
        energy=energy,
        requests_cpu=_requests_cpu(name, windows),
        devices=frozenset(filter(None, devices)),
    )
    return use, warnings


def _inside_windows(
    samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> list[tuple[NodeSample, float]]:
    """The samples that lie in the time of a step, each with its seconds there.

    In a short step no sample may do so. Then those count that lie in the time in which all its
    workers ran requests. Others also tell of the time between two steps, in which workers start,
    so they say nothing of the step.
    """
    return _covered(samples, windows) or _covered(
        samples, [replace(window, begin_s=window.at_work_s) for window in windows]
    )


def _covered(
    samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> list[tuple[NodeSample, float]]:
    """The samples whose interval lies in one window, or in two that follow each other."""
    covered = []
    for sample in samples:
        seconds = sum(window.covers(sample) for window in windows)
        least = WHOLE
        if _includes(windows, sample.at_s - sample.interval_s) and _includes(windows, sample.at_s):
            least = BETWEEN
        if seconds > least * sample.interval_s:
            covered.append((sample, seconds))
    return covered


def _includes(windows: Sequence[MeasuredWindow], instant_s: float) -> bool:
    return any(window.includes(instant_s) for window in windows)


def _means(weighted: Sequence[tuple[NodeSample, float]]) -> dict[str, dict[str, float]]:
    """The mean of each figure over the samples that have it, weighted with their seconds."""
    sums: dict[tuple[str, str], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for sample, weight in weighted:
        for resource, figures in sample.resources.items():
            for figure, value in figures.items():
                total, whole = sums[resource, figure]
                sums[resource, figure] = total + weight * value, whole + weight
    means: dict[str, dict[str, float]] = defaultdict(dict)
    for (resource, figure), (total, weight) in sums.items():
        if figure != ENERGY_J:
            means[resource][figure] = total / weight
    return dict(means)


def _engines(node: str, windows: Sequence[MeasuredWindow]) -> dict[str, dict[str, float]]:
    """The part of the time in which requests of a node kept engines busy, by device and engine.

    A device has the name that replies carry where they report its PCI address, else that address.
    """
    whole_s = math.fsum(window.seconds for window in windows)
    if whole_s <= 0:
        return {}
    busy: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for reply, seconds in _served(node, windows):
        if reply.activity is None:
            continue
        part = seconds / (reply.ended_s - reply.started_s)
        for name, busy_s in reply.activity.engines.items():
            device, _, engine = name.partition(" ")
            if reply.device_info.get("pci") == device:
                device = reply.device
            busy[device][engine] += busy_s * part
    parts: dict[str, dict[str, float]] = {}
    for device, engines in busy.items():
        parts[device] = {name: min(1.0, busy_s / whole_s) for name, busy_s in engines.items()}
    return parts


def _served(node: str, windows: Sequence[MeasuredWindow]) -> Iterator[tuple[Reply, float]]:
    """Requests that ran on a node in some windows, each with its seconds inside them."""
    for window in windows:
        for record in window.rows:
            reply = record.reply
            seconds = min(window.end_s, reply.ended_s) - max(window.begin_s, reply.started_s)
            if reply.node == node and seconds > 0:
                yield reply, seconds


def _with_engines(
    means: Mapping[str, dict[str, float]], engines: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """The means, completed for devices that no sample calls busy.

    For those the requests' own use of engines counts.
    """
    complete = dict(means)
    for device, parts in engines.items():
        figures = complete.get(f"{DEVICE}:{device}", {})
        if "busy" not in figures:
            complete[f"{DEVICE}:{device}"] = {
                **{f"busy.{engine}": part for engine, part in parts.items()},
                **figures,
                "busy": max(parts.values()),
            }
    return complete


def _requests_cpu(node: str, windows: Sequence[MeasuredWindow]) -> float | None:
    """Cores that the requests of a node used on average.

    None where not all of its workers report it. Requests of a worker that do not carry their
    activity count like its others, by their run time.
    """
    ran_s: dict[str, float] = defaultdict(float)
    reported_s: dict[str, float] = defaultdict(float)
    cpu_s: dict[str, float] = defaultdict(float)
    for reply, seconds in _served(node, windows):
        ran_s[reply.worker] += seconds
        if reply.activity is not None:
            reported_s[reply.worker] += seconds
            cpu_s[reply.worker] += (
                reply.activity.cpu_s * seconds / (reply.ended_s - reply.started_s)
            )
    whole_s = math.fsum(window.seconds for window in windows)
    if whole_s <= 0 or ran_s.keys() - reported_s.keys():
        return None
    used_s = [cpu_s[worker] * ran_s[worker] / reported_s[worker] for worker in ran_s]
    return math.fsum(used_s) / whole_s

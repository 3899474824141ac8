"""What the resources of the nodes did while a step was measured: means of the samples, and energy by its counters.

The time of a step is that behind its throughput: of every measuring that counts, from the first completion of all
workers to the last. Nodes are those that served it. A figure that was not read is missing, never 0.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scaletest.analysis.cause_text import workers_text
from scaletest.analysis.completions import Ends, ends_of, progress, span
from scaletest.analysis.request_time import repeats_of
from scaletest.analysis.steps import Rows, Step
from scaletest.model import Record, Reply
from scaletest.model.node_sample import CONTAINER, CPU, DEVICE, NodeSample

ENERGY_J = "energy_j"
# A sample lies in a step, or mostly does, when more than that of its interval lies there.
WHOLE, MOSTLY = 0.999, 0.5
Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """The time of one measuring on Redis's clock. ends: completions by worker; rows: the records of the measuring."""

    begin_s: float
    end_s: float
    ends: Ends
    rows: Sequence[Record]

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end_s - self.begin_s

    def covers(self, sample: NodeSample) -> float:
        """The seconds of a sample's interval that lie in it."""
        return max(0.0, min(self.end_s, sample.at_s) - max(self.begin_s, sample.at_s - sample.interval_s))


@dataclass(frozen=True, slots=True)
class Energy:
    """What a device used in a step: the difference of its counter.

    seconds: between the first and the last reading; requests: of the whole step in these, with fractions.
    source: where the counter was read. idle_w: the device's power before the first request; None where it is unknown.
    """

    joules: float
    seconds: float
    requests: float
    source: str
    idle_w: float | None = None

    @property
    def per_request_j(self) -> float:
        """Joules that the device used for each request of the step."""
        return self.joules / self.requests

    @property
    def power_w(self) -> float:
        """The mean power, from the counter."""
        return self.joules / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "joules": self.joules,
            "seconds": self.seconds,
            "requests": self.requests,
            "joules_per_request": self.per_request_j,
            "power_w": self.power_w,
            "idle_w": self.idle_w,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class NodeUse:
    """One node in one step.

    samples: how many lie in its time. resources: as in samples, each figure's mean; energy: by device name.
    requests_cpu: cores that the requests themselves used; None where they do not say. devices: that requests ran on.
    """

    node: str
    samples: int
    resources: Mapping[str, Figures]
    energy: Mapping[str, Energy] = field(default_factory=dict)
    requests_cpu: float | None = None
    devices: frozenset[str] = frozenset()
    sources: Mapping[str, str] = field(default_factory=dict)

    def value(self, resource: str, figure: str) -> float | None:
        """The mean of one figure; None when it was not read."""
        return self.resources.get(resource, {}).get(figure)

    @property
    def cores_busy(self) -> float | None:
        """Cores that run programs or the kernel."""
        parts = [self.value(CPU, name) for name in ("user", "system")]
        known = [part for part in parts if part is not None]
        return math.fsum(known) if known else None

    def of_kind(self, kind: str) -> dict[str, Figures]:
        """The figures of every resource of a kind, by the resource's own name: "sda"."""
        split = {name: name.partition(":") for name in self.resources}
        return {parts[2]: self.resources[name] for name, parts in split.items() if parts[0] == kind}

    def used_devices(self) -> dict[str, Figures]:
        """The devices that requests ran on; all of the node where requests name none that was sampled."""
        devices = self.of_kind(DEVICE)
        return {name: devices[name] for name in devices if name in self.devices} or devices

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "node": self.node,
            "samples": self.samples,
            "resources": {name: dict(figures) for name, figures in self.resources.items()},
            "energy": {name: energy.to_dict() for name, energy in self.energy.items()},
            "cores_busy": self.cores_busy,
            "requests_cpu": self.requests_cpu,
            "sources": dict(self.sources),
        }


@dataclass(frozen=True, slots=True)
class NodeResource:
    """A disk, network or device of a node. name: its own; figures: the means of one step."""

    node: str
    name: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class StepResources:
    """The nodes that served one step. work: what a request did on average: frames, samples, bytes."""

    workers: int
    per_device: int
    nodes: tuple[NodeUse, ...]
    work: Figures

    def total(self, resource: str, figure: str) -> float | None:
        """The sum of a figure over all nodes; None where one of them lacks it."""
        return _sum([node.value(resource, figure) for node in self.nodes])

    def highest(self, resource: str, figure: str) -> float | None:
        """The highest of all nodes; None where none has it."""
        values = (node.value(resource, figure) for node in self.nodes)
        return max((value for value in values if value is not None), default=None)

    def lowest(self, resource: str, figure: str) -> float | None:
        """The lowest of all nodes; None where none has it."""
        values = (node.value(resource, figure) for node in self.nodes)
        return min((value for value in values if value is not None), default=None)

    @property
    def cores(self) -> float | None:
        """Cores of all nodes."""
        return self.total(CPU, "cores")

    @property
    def cores_busy(self) -> float | None:
        """Busy cores of all nodes; None where one of them does not say."""
        return _sum([node.cores_busy for node in self.nodes])

    @property
    def requests_cpu(self) -> float | None:
        """Cores that the requests themselves used on all nodes; None where some do not say."""
        return _sum([node.requests_cpu for node in self.nodes])

    @property
    def throttled_periods(self) -> float | None:
        """The part of its periods in which a CPU limit held a container back, as the mean of all nodes.

        None where one of them does not say.
        """
        held = _sum([node.value(CONTAINER, "throttled_periods") for node in self.nodes])
        return None if held is None else held / len(self.nodes)

    def places(self, kind: str) -> list[NodeResource]:
        """Every disk or network, or every device that requests ran on."""
        return [
            NodeResource(node.node, name, figures)
            for node in self.nodes
            for name, figures in (node.used_devices() if kind == DEVICE else node.of_kind(kind)).items()
        ]

    def busiest(self, kind: str) -> NodeResource | None:
        """The disk or device that is busy for the largest part of the time; None where none says so."""
        known = [place for place in self.places(kind) if "busy" in place.figures]
        return max(known, key=lambda place: place.figures["busy"], default=None)

    def place(self, kind: str, node: str, name: str) -> NodeResource | None:
        """That one; None where it was not sampled."""
        return next((place for place in self.places(kind) if (place.node, place.name) == (node, name)), None)

    @property
    def devices(self) -> int:
        """How many devices requests ran on, as far as these were sampled."""
        return sum(len(node.devices & set(node.of_kind(DEVICE))) for node in self.nodes)

    @property
    def joules_per_request(self) -> float | None:
        """Of all devices that requests ran on; None where one of them has no number."""
        parts: list[float] = []
        for node in self.nodes:
            wanted = node.devices or node.energy.keys()
            if not wanted <= node.energy.keys():
                return None
            parts += [node.energy[name].per_request_j for name in wanted]
        return math.fsum(parts) if parts else None

    @property
    def joules_per_unit(self) -> dict[str, float]:
        """Joules a unit of work, by the name of the figure: a frame, a sample, a byte."""
        joules = self.joules_per_request
        return {} if joules is None else {name: joules / amount for name, amount in self.work.items() if amount > 0}

    @property
    def energy_sources(self) -> str:
        """Where the energy was read; "" where none was."""
        energies = [energy for node in self.nodes for energy in node.energy.values()]
        return ", ".join(dict.fromkeys(energy.source for energy in energies if energy.source))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "workers": self.workers,
            "per_device": self.per_device,
            "cores": self.cores,
            "cores_busy": self.cores_busy,
            "joules_per_request": self.joules_per_request,
            "joules_per_unit": self.joules_per_unit,
            "nodes": [node.to_dict() for node in self.nodes],
        }


def resources(
    steps: Sequence[Step], records: Rows, samples: Sequence[NodeSample]
) -> tuple[list[StepResources], list[str]]:
    """The resources of every step of which samples are there, and warnings about counters without a number."""
    by_node: dict[str, list[NodeSample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda sample: sample.at_s):
        by_node[sample.node].append(sample)
    first_s = min(
        (row.reply.started_s for rows in records.values() for row in rows if row.reply.started_s), default=0.0
    )
    used: list[StepResources] = []
    warnings: list[str] = []
    for step in steps:
        windows = windows_of(step, records)
        nodes = []
        for name in sorted({row.reply.node for window in windows for row in window.rows} & by_node.keys()):
            node, lines = _node_use(name, by_node[name], windows, first_s)
            nodes += [node] if node.samples else []
            warnings += [f"{workers_text(step.workers)}: {line}" for line in lines]
        if nodes:
            used.append(StepResources(step.workers, step.per_device, tuple(nodes), _work(step)))
    return used, warnings


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; None where one is missing, or all."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if known and len(known) == len(values) else None


def began(records: Rows) -> float:
    """When the first request of a run started, on Redis's clock; 0 where none did."""
    return min((row.reply.started_s for rows in records.values() for row in rows if row.reply.started_s), default=0.0)


def windows_of(step: Step, records: Rows) -> list[MeasuredWindow]:
    """The times behind a step's throughput."""
    repeats = repeats_of(step)
    windows = []
    for sample in step.samples:
        ends = ends_of(sample.counted)
        first_s, last_s = span(ends)
        if sample.measurement.repeat in repeats and last_s > first_s:
            windows.append(MeasuredWindow(first_s, last_s, ends, records.get(sample.measurement.key, ())))
    return windows


def _work(step: Step) -> dict[str, float]:
    """The mean work of a request, by the name of the figure."""
    rate = step.throughput.per_s
    return {name: work.per_s / rate for name, work in step.work.items() if rate > 0}


def _node_use(
    name: str, samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow], first_s: float
) -> tuple[NodeUse, list[str]]:
    """One node in a step, and warnings. samples: of that node, in the order of time."""
    weighted = [(sample, sum(window.covers(sample) for window in windows)) for sample in samples]
    mostly = [(sample, weight) for sample, weight in weighted if weight > MOSTLY * sample.interval_s]
    whole = [(sample, weight) for sample, weight in mostly if weight > WHOLE * sample.interval_s]
    inside = whole or mostly  # what reaches into the time between two steps counts only where nothing else is there
    rows = [row for window in windows for row in window.rows if row.reply.node == name]
    energy, warnings = _energies(name, samples, windows, first_s)
    sources = {resource: source for sample, _ in inside for resource, source in sample.sources.items()}
    use = NodeUse(
        node=name,
        samples=len(inside),
        resources=_with_engines(_means(inside), _engines(name, windows)),
        energy=energy,
        requests_cpu=_requests_cpu(name, windows),
        devices=frozenset(row.reply.device for row in rows if row.reply.device),
        sources=sources,
    )
    return use, warnings


def _means(weighted: Sequence[tuple[NodeSample, float]]) -> dict[str, dict[str, float]]:
    """The mean of each figure over the samples that have it, each for as long as it lies in the step."""
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for sample, weight in weighted:
        for resource, figures in sample.resources.items():
            for figure, value in figures.items():
                entry = sums[resource, figure]
                entry[0] += weight * value
                entry[1] += weight
    means: dict[str, dict[str, float]] = defaultdict(dict)
    for (resource, figure), (total, weight) in sums.items():
        if figure != ENERGY_J:
            means[resource][figure] = total / weight
    return dict(means)


def _engines(node: str, windows: Sequence[MeasuredWindow]) -> dict[str, dict[str, float]]:
    """The part of the time in which the requests of a node kept engines busy, by the device's name and the engine.

    A device has the name that replies carry where they tell its PCI address, else that address.
    """
    busy: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for reply, seconds in _served(node, windows):
        if reply.activity is None:
            continue
        part = seconds / (reply.ended_s - reply.started_s)
        for name, busy_s in reply.activity.engines.items():
            address, _, engine = name.partition(" ")
            device = reply.device if reply.device_info.get("pci") == address else address
            busy[device][engine] += busy_s * part
    whole_s = math.fsum(window.seconds for window in windows)
    return {
        device: {engine: min(1.0, busy_s / whole_s) for engine, busy_s in engines.items()}
        for device, engines in busy.items()
        if whole_s > 0
    }


def _served(node: str, windows: Sequence[MeasuredWindow]) -> Iterator[tuple[Reply, float]]:
    """The requests that ran on a node in some windows, each with how many seconds of a window it ran."""
    for window in windows:
        for row in window.rows:
            reply = row.reply
            seconds = min(window.end_s, reply.ended_s) - max(window.begin_s, reply.started_s)
            if reply.node == node and seconds > 0:
                yield reply, seconds


def _with_engines(
    means: Mapping[str, dict[str, float]], engines: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """The means, and what the requests' own clients say of devices that no sample calls busy."""
    complete = dict(means)
    for device, parts in engines.items():
        figures = complete.get(f"{DEVICE}:{device}", {})
        if "busy" not in figures:
            told = {f"busy.{engine}": part for engine, part in parts.items()}
            complete[f"{DEVICE}:{device}"] = {**told, **figures, "busy": max(parts.values())}
    return complete


def _requests_cpu(node: str, windows: Sequence[MeasuredWindow]) -> float | None:
    """Cores that the requests of a node used on average; None where not all of its workers say.

    A worker's requests that do not carry their activity used as much as its others, for as long as they ran.
    """
    ran_s: dict[str, float] = defaultdict(float)
    told_s: dict[str, float] = defaultdict(float)
    cpu_s: dict[str, float] = defaultdict(float)
    for reply, seconds in _served(node, windows):
        ran_s[reply.worker] += seconds
        if reply.activity is not None:
            told_s[reply.worker] += seconds
            cpu_s[reply.worker] += reply.activity.cpu_s * seconds / (reply.ended_s - reply.started_s)
    whole_s = math.fsum(window.seconds for window in windows)
    if whole_s <= 0 or ran_s.keys() - told_s.keys():
        return None
    return math.fsum(cpu_s[worker] * ran_s[worker] / told_s[worker] for worker in ran_s) / whole_s


def _energies(
    node: str, samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow], first_s: float
) -> tuple[dict[str, Energy], list[str]]:
    """The energy of every device that has a counter, and a warning for each whose counter gives no number."""
    energies: dict[str, Energy] = {}
    warnings: list[str] = []
    names = {name for sample in samples for name, figures in sample.of_kind(DEVICE).items() if ENERGY_J in figures}
    for name in sorted(names):
        readings = list(_readings(samples, f"{DEVICE}:{name}"))
        parts = [[reading for reading in readings if _inside(reading, window)] for window in windows]
        if any(_odd(part) for part in parts):
            warnings.append(
                f"the energy counter of {name} on {node} began anew, or its source changed: no joules are given"
            )
            continue
        pairs = [(part[0], part[-1], window) for part, window in zip(parts, windows, strict=True) if len(part) > 1]
        requests = math.fsum(sum(progress(window.ends, (first.at_s, last.at_s))) for first, last, window in pairs)
        if requests > 0:
            joules = math.fsum(last.joules - first.joules for first, last, _ in pairs)
            seconds = math.fsum(last.at_s - first.at_s for first, last, _ in pairs)
            idle_w = _idle_w(samples, name, first_s)
            energies[name] = Energy(joules, seconds, requests, pairs[0][0].source, idle_w)
    return energies, warnings


@dataclass(frozen=True, slots=True)
class _Reading:
    """A counter of energy at one time."""

    at_s: float
    joules: float
    source: str


def _readings(samples: Iterable[NodeSample], resource: str) -> Iterator[_Reading]:
    for sample in samples:
        joules = sample.value(resource, ENERGY_J)
        if joules is not None:
            yield _Reading(sample.at_s, joules, sample.sources.get(resource, ""))


def _inside(reading: _Reading, window: MeasuredWindow) -> bool:
    return window.begin_s <= reading.at_s <= window.end_s


def _odd(readings: Sequence[_Reading]) -> bool:
    """Whether the difference of the first and the last of them is no energy."""
    pairs = list(itertools.pairwise(readings))
    return any(after.joules < before.joules or after.source != before.source for before, after in pairs)


def _idle_w(samples: Sequence[NodeSample], device: str, first_s: float) -> float | None:
    """The power of a device before the first request: by its counter, else what it says itself; None where unknown."""
    resource = f"{DEVICE}:{device}"
    before = [sample for sample in samples if sample.at_s <= first_s]
    readings = list(_readings(before, resource))
    if len(readings) > 1 and readings[-1].at_s > readings[0].at_s and not _odd(readings):
        return (readings[-1].joules - readings[0].joules) / (readings[-1].at_s - readings[0].at_s)
    power = [value for sample in before if (value := sample.value(resource, "power")) is not None]
    return math.fsum(power) / len(power) if power else None

"""Use of the nodes' resources while a step was measured, and the texts about these figures.

Use is means of the samples, energy comes from counters.

The time of a step is the one behind its throughput: of every measurement that counts, from the
first completion of all workers to the last. Nodes are those that served it. A figure that was not
read is missing, never 0.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated

from scaletest.causes.steps import MeasuredStep, Rows
from scaletest.model import Record, Reply
from scaletest.model.declared import INNER, Count, Positive, Written, called
from scaletest.model.measurement import CONTAINER, CPU, DEVICE, NodeFigures, NodeSample
from scaletest.render.numbers import plural
from scaletest.stats.completions import Completions

# A sample lies in a step when more than this part of its interval lies there; less where the rest
# is between two measurements of the step that follow each other.
WHOLE, BETWEEN = 0.999, 0.9
Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """The time of one measurement on Redis's clock."""

    begin_s: float
    end_s: float
    completions: Completions
    rows: Sequence[Record]  # of the measurement
    # since when all workers run requests that count, before the first of these are completed
    at_work_s: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end_s - self.begin_s

    def covers(self, sample: NodeSample) -> float:
        """The seconds of a sample's interval that lie in it."""
        return max(
            0.0, min(self.end_s, sample.at_s) - max(self.begin_s, sample.at_s - sample.interval_s)
        )

    def includes(self, instant_s: float) -> bool:
        """Whether an instant lies in it."""
        return self.begin_s <= instant_s <= self.end_s


def windows_of(step: MeasuredStep, records: Rows) -> list[MeasuredWindow]:
    """Return the times behind a step's throughput."""
    repeats = step.used_repeats
    windows = []
    for sample in step.samples:
        completions = sample.counted_completions
        if sample.starved:
            completions = completions.in_turn
        first_s, last_s = completions.span
        if sample.measurement.repeat not in repeats or last_s <= first_s:
            continue
        # when the last worker began its first request that counts; `first_s` where it is unknown
        began: dict[str, float] = {}
        for record in sample.counted:
            reply = record.reply
            began[reply.worker] = min(reply.started_s or first_s, began.get(reply.worker, first_s))
        rows = records.get(sample.measurement.key, ())
        at_work_s = max(began.values(), default=first_s)
        windows.append(MeasuredWindow(first_s, last_s, completions, rows, at_work_s))
    return windows


ENERGY_J = "energy_j"


@dataclass(frozen=True, slots=True)
class Energy(Written):
    """Energy that a device used in a step, by the difference of its counter."""

    joules: Annotated[float, "the difference of the device's counter"]
    seconds: Annotated[float, "between its two readings"]
    requests: Annotated[float, "of the whole step in these seconds, with fractions"]

    @property
    def per_request_j(self) -> Annotated[float, called("joules_per_request")]:
        """Joules that the device used for each request of the step."""
        return self.joules / self.requests

    @property
    def power_w(self) -> Annotated[float, "the mean, from the counter"]:
        """The mean power, from the counter."""
        return self.joules / self.seconds


def energies(
    node: str, samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> tuple[dict[str, Energy], list[str]]:
    """The energy of every device with a counter, and a warning for each unusable counter."""
    by_name: dict[str, Energy] = {}
    warnings: list[str] = []
    for name in sorted(_devices_with_counter(samples)):
        readings = list(_readings(samples, f"{DEVICE}:{name}"))
        parts = [
            [reading for reading in readings if window.includes(reading.at_s)] for window in windows
        ]
        if any(_odd(part) for part in parts):
            warnings.append(
                f"the energy counter of {name} on {node} was reset: no joules are reported"
            )
            continue
        pairs = [
            (part[0], part[-1], window)
            for part, window in zip(parts, windows, strict=True)
            if len(part) > 1
        ]
        requests = math.fsum(
            sum(window.completions.progress((first.at_s, last.at_s)))
            for first, last, window in pairs
        )
        if requests > 0:
            joules = math.fsum(last.joules - first.joules for first, last, _ in pairs)
            seconds = math.fsum(last.at_s - first.at_s for first, last, _ in pairs)
            by_name[name] = Energy(joules, seconds, requests)
    return by_name, warnings


@dataclass(frozen=True, slots=True)
class _Reading:
    """A counter of energy at one time."""

    at_s: float
    joules: float


def _readings(samples: Iterable[NodeSample], resource: str) -> Iterator[_Reading]:
    for sample in samples:
        joules = sample.value(resource, ENERGY_J)
        if joules is not None:
            yield _Reading(sample.at_s, joules)


def _devices_with_counter(samples: Iterable[NodeSample]) -> set[str]:
    """The names of the devices with an energy counter."""
    devices = itertools.chain.from_iterable(sample.of_kind(DEVICE).items() for sample in samples)
    return {name for name, figures in devices if ENERGY_J in figures}


def _odd(readings: Sequence[_Reading]) -> bool:
    """Whether the difference of the first and the last reading is not the energy used."""
    return any(after.joules < before.joules for before, after in itertools.pairwise(readings))


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


# A node differs where this part more, or less, of its cores is busy than on the others.
DIFFERS = 0.25


def cores_text(busy: float, cores: float) -> str:
    """Busy cores, as in "2.0 of 2 cores"."""
    return f"{busy:.1f} of {cores:g} cores"


def clock_text(at_s: float) -> str:
    """A time of Redis's clock in UTC, as in "12:03:10"."""
    try:
        return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def on_node(node: str, step: StepResources) -> str:
    """The node in a sentence, such as " on node-a"; "" where there is only one."""
    return f" on {node}" if len(step.nodes) > 1 else ""


def differing(nodes: Sequence[NodeUse]) -> list[str]:
    """A line about each node with more, or less, busy cores than the others."""
    used = {}
    for node in nodes:
        busy, cores = node.cores_busy, node.value(CPU, "cores")
        if busy is not None and cores:
            used[node.node] = (busy, cores)
    lines = []
    for name, (busy, cores) in used.items():
        others = [other / whole for node, (other, whole) in used.items() if node != name]
        if not others:
            continue
        usual = statistics.median(others)
        if abs(busy / cores - usual) >= DIFFERS:
            lines.append(f"{name}: {cores_text(busy, cores)} are busy, {usual:.0%} elsewhere")
    return lines

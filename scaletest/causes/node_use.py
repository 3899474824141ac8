"""The use of each node while a step was measured, from its samples and what its requests report."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from scaletest.causes.resources import ENERGY_J, Energy, NodeUse, StepResources
from scaletest.causes.steps import MeasuredStep, Rows
from scaletest.model import Record, Reply
from scaletest.model.node_sample import DEVICE, NodeSample
from scaletest.stats.completions import Completions

# A sample lies in a step when more than the first part of its interval lies there; more than the
# second where the rest is between two measurements of the step that follow each other.
LEAST_PART, LEAST_PART_OF_TWO = 0.999, 0.9


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
        """Return the seconds of a sample's interval that lie in it."""
        return max(
            0.0, min(self.end_s, sample.at_s) - max(self.begin_s, sample.at_s - sample.interval_s)
        )

    def includes(self, instant_s: float) -> bool:
        """Whether an instant lies in it."""
        return self.begin_s <= instant_s <= self.end_s


def windows_of(step: MeasuredStep, records: Rows) -> list[MeasuredWindow]:
    """Return the times behind a step's throughput.

    Of every measurement that counts, from the first completion of all workers to the last.
    """
    repeats = step.used_repeats
    windows = []
    for sample in step.samples:
        completions = sample.counted_completions
        if sample.starved:
            completions = completions.dealt_in_turn
        first_s, last_s = completions.span
        rows = records.get(sample.measurement.key, ())
        if last_s <= first_s and rows:
            # a round of requests or two: the time in which all workers ran them
            by_worker: dict[str, list[Record]] = defaultdict(list)
            for record in rows:
                by_worker[record.reply.worker].append(record)
            first_s = max(
                min(row.reply.started_s for row in served) for served in by_worker.values()
            )
            last_s = min(max(row.reply.ended_s for row in served) for served in by_worker.values())
        if sample.measurement.repeat not in repeats or last_s <= first_s:
            continue
        # when the last worker began its first request that counts; `first_s` where it is unknown
        began: dict[str, float] = {}
        for record in sample.counted:
            reply = record.reply
            began[reply.worker] = min(reply.started_s or first_s, began.get(reply.worker, first_s))
        at_work_s = max(began.values(), default=first_s)
        windows.append(MeasuredWindow(first_s, last_s, completions, rows, at_work_s))
    return windows


def resources_by_step(
    steps: Sequence[MeasuredStep], records: Rows, samples: Sequence[NodeSample]
) -> list[StepResources]:
    """Return the resources of every step that has samples."""
    by_node = samples_by_node(samples)
    resources: list[StepResources] = []
    for step in steps:
        windows = windows_of(step, records)
        rows = itertools.chain.from_iterable(window.rows for window in windows)
        served_by = sorted({record.reply.node for record in rows} & by_node.keys())
        nodes = [_node_use(name, by_node[name], windows) for name in served_by]
        sampled = tuple(node for node in nodes if node.samples)
        if sampled:
            resources.append(StepResources(step.workers, step.per_device, sampled))
    return resources


def samples_by_node(samples: Iterable[NodeSample]) -> dict[str, list[NodeSample]]:
    """Return the samples of each node in the order of time."""
    by_node: dict[str, list[NodeSample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda sample: sample.at_s):
        by_node[sample.node].append(sample)
    return by_node


def _node_use(
    name: str, samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> NodeUse:
    """Return one node in a step. samples: of that node, in the order of time."""
    inside = samples_inside(samples, windows)
    # the mean of each figure over the samples that have it, weighted with their seconds
    sums: dict[tuple[str, str], float] = defaultdict(float)
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    for sample, weight_s in inside:
        for resource, values in sample.resources.items():
            for figure, value in values.items():
                sums[resource, figure] += weight_s * value
                seconds[resource, figure] += weight_s
    figures: dict[str, dict[str, float]] = defaultdict(dict)
    for (resource, figure), total in sums.items():
        if figure != ENERGY_J:  # a counter, of which a mean says nothing
            figures[resource][figure] = total / seconds[resource, figure]
    # devices that no sample calls busy: the requests' own use of their engines counts
    for device, engine_shares in _engine_shares(name, windows).items():
        sampled = figures.get(f"{DEVICE}:{device}", {})
        if "busy" not in sampled:
            figures[f"{DEVICE}:{device}"] = {
                **{f"busy.{engine}": share for engine, share in engine_shares.items()},
                **sampled,
                "busy": max(engine_shares.values()),
            }
    records = itertools.chain.from_iterable(window.rows for window in windows)
    devices = {record.reply.device for record in records if record.reply.node == name}
    return NodeUse(
        node=name,
        samples=len(inside),
        resources=dict(figures),
        energy=_energies(samples, windows),
        requests_cpu=_requests_cpu(name, windows),
        devices=frozenset(devices - {""}),
    )


def samples_inside(
    samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> list[tuple[NodeSample, float]]:
    """Return the samples that lie in the time of a step, each with its seconds there.

    In a short step no sample may do so. Then those count that lie in the time in which all its
    workers ran requests. Others also tell of the time between two steps, in which workers start,
    so they say nothing of the step.
    """
    return _samples_in(samples, windows) or _samples_in(
        samples, [replace(window, begin_s=window.at_work_s) for window in windows]
    )


def _samples_in(
    samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> list[tuple[NodeSample, float]]:
    """Return the samples whose interval lies in one window, or in two that follow each other."""
    inside = []
    for sample in samples:
        seconds = sum(window.covers(sample) for window in windows)
        least_part = LEAST_PART
        ends_s = (sample.at_s - sample.interval_s, sample.at_s)
        if all(any(window.includes(end_s) for window in windows) for end_s in ends_s):
            least_part = LEAST_PART_OF_TWO
        if seconds > least_part * sample.interval_s:
            inside.append((sample, seconds))
    return inside


def _engine_shares(node: str, windows: Sequence[MeasuredWindow]) -> dict[str, dict[str, float]]:
    """Return for which share of the time requests of a node kept each engine of a device busy.

    A device has the name that replies carry where they report its PCI address, else that address.
    """
    whole_s = math.fsum(window.seconds for window in windows)
    shares: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for reply, seconds in _served(node, windows):
        if reply.activity is None:
            continue
        part = seconds / (reply.ended_s - reply.started_s)
        for name, busy_s in reply.activity.engines.items():
            device, _, engine = name.partition(" ")
            if reply.device_info.get("pci") == device:
                device = reply.device
            engines = shares[device]
            # parts of requests are estimated: together they may be more than there was
            engines[engine] = min(1.0, engines[engine] + busy_s * part / whole_s)
    return shares


def _served(node: str, windows: Sequence[MeasuredWindow]) -> Iterator[tuple[Reply, float]]:
    """Yield requests that ran on a node in some windows, each with its seconds inside them."""
    for window in windows:
        for record in window.rows:
            reply = record.reply
            seconds = min(window.end_s, reply.ended_s) - max(window.begin_s, reply.started_s)
            if reply.node == node and seconds > 0:
                yield reply, seconds


def _requests_cpu(node: str, windows: Sequence[MeasuredWindow]) -> float | None:
    """Return the cores that the requests of a node used on average.

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
    if ran_s.keys() - reported_s.keys():
        return None
    whole_s = math.fsum(window.seconds for window in windows)
    used_s = [cpu_s[worker] * ran_s[worker] / reported_s[worker] for worker in ran_s]
    return math.fsum(used_s) / whole_s


def _energies(
    samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> dict[str, Energy]:
    """Return the energy of every device of a node whose counter was read twice in some window.

    A device whose counter fell meanwhile, as after a reset, has none.
    """
    readings: dict[str, list[tuple[float, float]]] = defaultdict(list)  # times and joules
    for sample in samples:
        for name, figures in sample.of_kind(DEVICE).items():
            if ENERGY_J in figures:
                readings[name].append((sample.at_s, figures[ENERGY_J]))
    by_device: dict[str, Energy] = {}
    for name, device_readings in sorted(readings.items()):
        joules = seconds = requests = 0.0
        has_fallen = False
        for window in windows:
            inside = [reading for reading in device_readings if window.includes(reading[0])]
            if len(inside) < 2:
                continue
            (first_s, first_j), (last_s, last_j) = inside[0], inside[-1]
            joules += last_j - first_j
            seconds += last_s - first_s
            requests += sum(window.completions.progress((first_s, last_s)))
            counter = [reading[1] for reading in inside]
            has_fallen = has_fallen or counter != sorted(counter)
        if requests > 0 and not has_fallen:
            by_device[name] = Energy(joules, seconds, requests)
    return by_device

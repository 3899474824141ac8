"""What the nodes did in each step, as a table for pages and comments, and as one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.resources import Energy, Figures, NodeUse, StepResources
from scaletest.model.measurement import CONTAINER, CPU, DISK, NETWORK, PRESSURE
from scaletest.model.record import Reply
from scaletest.render.contents import Table
from scaletest.render.numbers import NOTHING, percent, plural, quantity, significant
from scaletest.validation.run_type import ValidationRun

# Of more nodes and steps only the sums of each step are shown.
MOST_ROWS = 40
# A unit of work by the name of its figure.
UNITS = {"frames": "frame", "samples": "sample", "bytes": "byte"}
PRESSURES = {"CPU": "cpu_some", "memory": "memory_some", "I/O": "io_some"}


def table(result: Evaluation, **options: Any) -> Table:
    """A row for each node in each step, without columns that no step knows; no row where nothing is
    known. options: of the table.
    """
    steps = result.resources
    whole = sum(len(step.nodes) for step in steps) > MOST_ROWS
    works = dict.fromkeys(chain.from_iterable(step.joules_per_unit for step in steps))
    several = any(len(step.nodes) > 1 for step in steps)
    rows = []
    for step in steps:
        uses = [_sum(step)] if whole else step.nodes
        energies = _energies(step, [*works])
        for use in uses:
            node = {"node": use.node} if several else {}
            rows.append({"workers": str(step.workers), **node, **_cells(use), **energies})
            # they are of the whole step, so they stand in the row of its first node
            energies = dict.fromkeys(energies, NOTHING)
    known = Table.of_rows(rows, blanks=("", NOTHING, "0.0"), **options)
    return known if len(known.titles) > 1 else Table((), ())


def _sum(step: StepResources) -> NodeUse:
    """All nodes of a step as one: the sums of cores, and the highest pressure."""
    # each node's busy cores, also of those that do not tell user and system apart
    cores = {"user": step.cores_busy, "cores": step.cores, "steal": step.total(CPU, "steal")}
    pressures = {name: step.highest(PRESSURE, name) for name in PRESSURES.values()}
    figures = {kind: _known(values) for kind, values in ((CPU, cores), (PRESSURE, pressures))}
    name = plural(len(step.nodes), "node")
    return NodeUse(name, len(step.nodes), figures, requests_cpu=step.requests_cpu)


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _cells(use: NodeUse) -> dict[str, str]:
    cores, limit = use.value(CPU, "cores"), use.value(CONTAINER, "cpu_limit")
    throttled = use.value(CONTAINER, "throttled_periods")
    periods = "" if throttled is None else f", throttled {percent(throttled, 0)}"
    busy_cores = _decimal(use.cores_busy)
    disks, networks = use.of_kind(DISK), use.of_kind(NETWORK)
    busy = {name: figures["busy"] for name, figures in disks.items() if "busy" in figures}
    moved = {name: _moved(figures) for name, figures in networks.items() if _moved(figures)}
    return {
        "cores busy": f"{busy_cores} of {cores:g}" if cores and busy_cores != NOTHING else NOTHING,
        "requests' own": _decimal(use.requests_cpu),
        "steal": _decimal(use.value(CPU, "steal")),
        "pressure": _pressure(use),
        "CPU limit": NOTHING if limit is None else f"{limit:.3g}{periods}",
        "disk": _largest(busy, lambda part: percent(part, 0)),
        "network": _largest(moved, lambda per_s: quantity(per_s, "B/s", 3)),
        "device": _devices(use),
    }


def _energies(step: StepResources, works: Sequence[str]) -> dict[str, str]:
    """Joules of a step's requests and of their units of work."""
    joules = {"J/request": step.joules_per_request}
    joules |= {f"J/{UNITS[name]}": step.joules_per_unit.get(name) for name in works}
    return {title: _text(value, significant) for title, value in joules.items()}


def _text(value: float | None, show: Callable[[float], str]) -> str:
    return NOTHING if value is None else show(value)


def _decimal(value: float | None) -> str:
    return _text(value, lambda known: f"{known:.1f}")


def _pressure(use: NodeUse) -> str:
    """Pressure on the CPUs, and on memory and disks where there is any."""
    values = {name: use.value(PRESSURE, figure) for name, figure in PRESSURES.items()}
    return ", ".join(
        f"{name} {percent(value, 0)}"
        for name, value in _known(values).items()
        if value >= 0.005 or name == "CPU"
    )


def _largest(values: Mapping[str, float], show: Callable[[float], str]) -> str:
    """The disk or network that does most, with what it does."""
    if not values:
        return NOTHING
    name, most = max(values.items(), key=itemgetter(1))
    return f"{name} {show(most)}"


def _moved(figures: Figures) -> float:
    """Bytes a second, both ways together."""
    return figures.get("received", 0.0) + figures.get("sent", 0.0)


def _devices(use: NodeUse) -> str:
    """Each device that requests ran on, with the part of the time that it was busy."""
    parts = []
    for name, figures in sorted(use.used_devices().items()):
        states = [percent(figures["busy"], 0)] if "busy" in figures else []
        if figures.get("throttled", 0.0) >= 0.5:
            states.append("throttled")
        if states:
            parts.append(f"{name.rpartition('/')[2]} {' '.join(states)}")
    return ", ".join(parts)


def note(result: Evaluation) -> str:
    """How the energy was measured; "" where none was."""
    nodes = chain.from_iterable(step.nodes for step in result.resources)
    energies: dict[tuple[str, str], Energy] = {}
    for node in nodes:
        energies |= {(node.node, name): energy for name, energy in node.energy.items()}
    if not energies:
        return ""
    idle = [energy.idle_w for energy in energies.values() if energy.idle_w is not None]
    watts = quantity(sum(idle), "W", 3)
    before = f" Before the first request they used {watts}, which is not taken off." if idle else ""
    return (
        f"Energy is the difference of the counters, divided by the requests of the same"
        f" time; it is that of {plural(len(energies), 'device')}.{before}"
    )


def line(result: Evaluation) -> str:
    """The cores that were busy in each step, the pressure on them and the energy, in a line; ""
    without samples.

    Steps without a sample are left out, and the line names the others.
    """
    by_level = {(step.workers, step.per_device): step for step in result.resources}
    levels = [(step.workers, step.per_device) for step in result.steps]
    steps = [by_level[level] for level in levels if level in by_level]
    cores = [step.cores for step in steps if step.cores and step.cores_busy is not None]
    pressures = [step.highest(PRESSURE, "cpu_some") for step in steps]
    busy = _course([step.cores and step.cores_busy for step in steps], _decimal)
    joules = _course([step.joules_per_request for step in steps], significant)
    parts = {
        "cores busy": f"{busy} of {cores[-1]:g}" if cores else "",
        "pressure": _course(pressures, lambda part: percent(part, 0)),
        "joules a request": joules,
    }
    courses = "; ".join(f"{name} {course}" for name, course in parts.items() if course)
    return f"{courses}{_sampled(result, steps)}" if courses else ""


def _sampled(result: Evaluation, steps: Sequence[StepResources]) -> str:
    """The numbers of workers of these steps, in words; "" where they are all."""
    if len(steps) == len(result.steps):
        return ""
    *firsts, last = [step.per_device or step.workers for step in steps]
    known = ", ".join([*map(str, firsts), plural(last, "worker")])
    place = " on each device" if result.plan.compares else ""
    return f" (with {known}{place}: the other steps are too short for a sample)"


def _course(values: Sequence[float | None], show: Callable[[float], str]) -> str:
    """A figure in each step; "" where no step knows it."""
    if all(value is None for value in values):
        return ""
    return ", ".join(_text(value, show) for value in values)


def limits_of(run: ValidationRun) -> dict[str, int]:
    """Numbers of cores and of devices with requests, as in "2 cores"; more workers share them.

    Cores are those of the samples, else those of the tester's machine where all requests ran there.
    """
    if run.result.plan.compares:
        return {}
    replies = [record.reply for record in chain.from_iterable(run.records.values())]
    cores = _cores_of(run, replies)
    devices = len({(reply.node, reply.device) for reply in replies if reply.device})
    if cores and cores == devices:
        return {f"{plural(cores, 'core')} and {plural(devices, 'device')}": cores}
    counts = {plural(cores, "core"): cores, plural(devices, "device"): devices}
    return {label: count for label, count in counts.items() if count}


def _cores_of(run: ValidationRun, replies: Sequence[Reply]) -> int:
    """Cores that the requests shared; 0 where nobody knows."""
    sampled = max((round(step.cores or 0.0) for step in run.result.resources), default=0)
    if sampled:
        return sampled
    host, cores = run.environment.get("host"), run.environment.get("cores")
    ran_there = replies and all(reply.node == host for reply in replies)
    return cores if ran_there and isinstance(cores, int) else 0

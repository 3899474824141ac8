"""What the nodes did in each step, as a table for pages and comments, and as one line."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from scaletest.causes.resources import Figures, NodeUse, StepResources
from scaletest.model.node_sample import CONTAINER, CPU, DISK, NETWORK, PRESSURE
from scaletest.render.blocks import Table
from scaletest.render.numbers import (
    NOTHING,
    format_percent,
    format_quantity,
    format_significant,
    plural,
)
from scaletest.validation.judging.evaluation import Evaluation

# Of more nodes and steps only the sums of each step are shown.
MOST_ROWS = 40
PRESSURES = {"CPU": "cpu_some", "memory": "memory_some", "I/O": "io_some"}


def table(result: Evaluation, **options: Any) -> Table:
    """A row for each node in each step, without columns that no step knows; no row where nothing is
    known. options: of the table.
    """
    steps = result.resources
    whole = sum(len(step.nodes) for step in steps) > MOST_ROWS
    several = any(len(step.nodes) > 1 for step in steps)
    rows = []
    for step in steps:
        uses = [_sum(step)] if whole else step.nodes
        # it is of the whole step, so it stands in the row of its first node
        energy = _text(step.joules_per_request, format_significant)
        for use in uses:
            node = {"node": use.node} if several else {}
            rows.append({"workers": str(step.workers), **node, **_cells(use), "J/request": energy})
            energy = NOTHING
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
    periods = "" if throttled is None else f", throttled {format_percent(throttled, 0)}"
    busy_cores = _decimal(use.cores_busy)
    disks, networks = use.of_kind(DISK), use.of_kind(NETWORK)
    busy = {name: figures["busy"] for name, figures in disks.items() if "busy" in figures}
    moved = {name: _moved(figures) for name, figures in networks.items() if _moved(figures)}
    # on the CPUs, and on memory and disks where there is any
    pressures = _known({name: use.value(PRESSURE, figure) for name, figure in PRESSURES.items()})
    pressure = ", ".join(
        f"{name} {format_percent(value, 0)}"
        for name, value in pressures.items()
        if value >= 0.005 or name == "CPU"
    )
    return {
        "cores busy": f"{busy_cores} of {cores:g}" if cores and busy_cores != NOTHING else NOTHING,
        "requests' own": _decimal(use.requests_cpu),
        "steal": _decimal(use.value(CPU, "steal")),
        "pressure": pressure,
        "CPU limit": NOTHING if limit is None else f"{limit:.3g}{periods}",
        "disk": _largest(busy, lambda part: format_percent(part, 0)),
        "network": _largest(moved, lambda per_s: format_quantity(per_s, "B/s", 3)),
        "device": _devices(use),
    }


def _text(value: float | None, show: Callable[[float], str]) -> str:
    return NOTHING if value is None else show(value)


def _decimal(value: float | None) -> str:
    return _text(value, lambda known: f"{known:.1f}")


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
        states = [format_percent(figures["busy"], 0)] if "busy" in figures else []
        if figures.get("throttled", 0.0) >= 0.5:
            states.append("throttled")
        if states:
            parts.append(f"{name.rpartition('/')[2]} {' '.join(states)}")
    return ", ".join(parts)


def note(result: Evaluation) -> str:
    """How the energy was measured; "" where none was."""
    nodes = chain.from_iterable(step.nodes for step in result.resources)
    devices = {(node.node, name) for node in nodes for name in node.energy}
    if not devices:
        return ""
    return (
        "Energy is the difference of the counters, divided by the requests of the same time; it is"
        f" that of {plural(len(devices), 'device')}."
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
    joules = _course([step.joules_per_request for step in steps], format_significant)
    parts = {
        "cores busy": f"{busy} of {cores[-1]:g}" if cores else "",
        "pressure": _course(pressures, lambda part: format_percent(part, 0)),
        "joules a request": joules,
    }
    courses = "; ".join(f"{name} {course}" for name, course in parts.items() if course)
    # the numbers of workers of these steps, where they are not all
    sampled = ""
    if len(steps) != len(result.steps) and courses:
        *firsts, last = [step.per_device or step.workers for step in steps]
        known = ", ".join([*map(str, firsts), plural(last, "worker")])
        place = " on each device" if result.plan.compares else ""
        sampled = f" (with {known}{place}: the other steps are too short for a sample)"
    return f"{courses}{sampled}"


def _course(values: Sequence[float | None], show: Callable[[float], str]) -> str:
    """A figure in each step; "" where no step knows it."""
    if all(value is None for value in values):
        return ""
    return ", ".join(_text(value, show) for value in values)

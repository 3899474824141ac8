"""What the nodes did in each step, as a table for pages and comments, and as one line."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from scaletest.causes.resources import NodeUse, StepResources
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


def resources_table(result: Evaluation, **options: Any) -> Table:
    """Return a row for each node in each step; no row where nothing is known.

    Columns that no step knows are left out. options: of the table.
    """
    steps = result.resources
    only_sums = sum(len(step.nodes) for step in steps) > MOST_ROWS
    several = any(len(step.nodes) > 1 for step in steps)
    rows = []
    for step in steps:
        # the energy is that of the whole step, so it stands in the row of its first node
        energy = format_significant(step.joules_per_request)
        for node in [_sum_of_nodes(step)] if only_sums else step.nodes:
            name = {"node": node.node} if several else {}
            # busy cores of those that there are, and what a limit takes of them
            busy_cores, cores = _one_decimal(node.cores_busy), node.value(CPU, "cores")
            limit = node.value(CONTAINER, "cpu_limit")
            throttled = node.value(CONTAINER, "throttled_periods")
            periods = "" if throttled is None else f", throttled {format_percent(throttled, 0)}"
            # pressure on the CPUs, and on memory and disks where there is any
            pressures = []
            for resource, figure in PRESSURES.items():
                part = node.value(PRESSURE, figure)
                if part is not None and (part >= 0.005 or resource == "CPU"):
                    pressures.append(f"{resource} {format_percent(part, 0)}")
            # the busiest disk, and the network that moves most, both ways together
            disks, networks = node.of_kind(DISK), node.of_kind(NETWORK)
            busy = {disk: figures["busy"] for disk, figures in disks.items() if "busy" in figures}
            moved = {
                network: figures.get("received", 0.0) + figures.get("sent", 0.0)
                for network, figures in networks.items()
            }
            # each device that requests ran on, with the part of the time that it was busy
            devices = []
            for device, figures in sorted(node.used_devices().items()):
                states = [format_percent(figures["busy"], 0)] if "busy" in figures else []
                if figures.get("throttled", 0.0) >= 0.5:
                    states.append("throttled")
                if states:
                    devices.append(f"{device.rpartition('/')[2]} {' '.join(states)}")
            rows.append(
                {
                    "workers": str(step.workers),
                    **name,
                    "cores busy": f"{busy_cores} of {cores:g}"
                    if cores and busy_cores != NOTHING
                    else NOTHING,
                    "requests' own": _one_decimal(node.requests_cpu),
                    "steal": _one_decimal(node.value(CPU, "steal")),
                    "pressure": ", ".join(pressures),
                    "CPU limit": NOTHING if limit is None else f"{limit:.3g}{periods}",
                    "disk": _name_largest(busy, lambda part: format_percent(part, 0)),
                    "network": _name_largest(moved, lambda per_s: format_quantity(per_s, "B/s", 3))
                    if any(moved.values())
                    else NOTHING,
                    "device": ", ".join(devices),
                    "J/request": energy,
                }
            )
            energy = NOTHING
    table = Table.of_rows(rows, blanks=("", NOTHING, "0.0"), **options)
    return table if len(table.titles) > 1 else Table((), ())


def _sum_of_nodes(step: StepResources) -> NodeUse:
    """Return all nodes of a step as one: the sums of cores, and the highest pressure."""
    # each node's busy cores, also of those that do not tell user and system apart
    cores = {"user": step.cores_busy, "cores": step.cores, "steal": step.total(CPU, "steal")}
    pressures = {figure: step.highest(PRESSURE, figure) for figure in PRESSURES.values()}
    return NodeUse(
        plural(len(step.nodes), "node"),
        len(step.nodes),
        {CPU: _without_unknown(cores), PRESSURE: _without_unknown(pressures)},
        requests_cpu=step.requests_cpu,
    )


def _without_unknown(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _one_decimal(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def _name_largest(values: Mapping[str, float], show: Callable[[float], str]) -> str:
    """Return the disk or network that does most, with what it does."""
    if not values:
        return NOTHING
    name, most = max(values.items(), key=itemgetter(1))
    return f"{name} {show(most)}"


def energy_note(result: Evaluation) -> str:
    """Return how the energy was measured; "" where none was."""
    devices = set()
    for step in result.resources:
        for node in step.nodes:
            devices |= {(node.node, name) for name in node.energy}
    if not devices:
        return ""
    return (
        "Energy is the difference of the counters, divided by the requests of the same time; it is"
        f" that of {plural(len(devices), 'device')}."
    )


def resources_line(result: Evaluation) -> str:
    """Return the busy cores, the pressure on them and the energy of each step, in a line.

    "" without samples. Steps without a sample are left out, and the line names the others.
    """
    steps = result.resources
    cores = [step.cores for step in steps if step.cores and step.cores_busy is not None]
    busy = _join_by_step([step.cores and step.cores_busy for step in steps], _one_decimal)
    pressures = [step.highest(PRESSURE, "cpu_some") for step in steps]
    parts = {
        "cores busy": f"{busy} of {cores[-1]:g}" if cores else "",
        "pressure": _join_by_step(pressures, lambda part: format_percent(part, 0)),
        "joules per request": _join_by_step(
            [step.joules_per_request for step in steps], format_significant
        ),
    }
    line = "; ".join(f"{name} {figures}" for name, figures in parts.items() if figures)
    if not line or len(steps) == len(result.steps):
        return line
    *others, last = [step.per_device or step.workers for step in steps]
    sampled = ", ".join([*map(str, others), plural(last, "worker")])
    place = " on each device" if result.plan.compares else ""
    return f"{line} (with {sampled}{place}: other steps were too short to sample)"


def _join_by_step(values: Sequence[float | None], show: Callable[[float | None], str]) -> str:
    """Return a figure in each step; "" where no step knows it."""
    if all(value is None for value in values):
        return ""
    return ", ".join(map(show, values))

"""What the nodes did in each step, as a table for pages, and as one line."""

from collections.abc import Callable, Mapping
from operator import itemgetter

from scaletest.causes.resources import NodeUse
from scaletest.model.node_sample import CONTAINER, CPU, DISK, NETWORK, PRESSURE
from scaletest.render.blocks import Table
from scaletest.render.numbers import (
    NOTHING,
    format_percent,
    format_quantity,
    format_significant,
)
from scaletest.validation.judging.evaluation import Evaluation

PRESSURES = {"CPU": "cpu_some", "memory": "memory_some", "I/O": "io_some"}
# Less pressure is shown as 0 %.
LEAST_PRESSURE = 0.005
NOTE = (
    "Mean of the samples of each step. Requests' own: cores used by the requests themselves."
    " Pressure: share of time in which at least one task was stalled (PSI). Disk, device: share of"
    " time it was busy. J/request: energy of all devices, by their counters."
)


def resources_table(result: Evaluation) -> Table:
    """Return a row for each node in each step; no row where nothing is known.

    Columns that no step knows are left out.
    """
    rows = []
    for step in result.resources:
        # the energy is that of the whole step, so it stands in the row of its first node
        energy = format_significant(step.joules_per_request)
        for node in step.nodes:
            rows.append(
                {"workers": str(step.workers), "node": node.node}
                | _cells_of_node(node)
                | {"J/request": energy}
            )
            energy = NOTHING
    # the name of the only node says nothing
    if len({row["node"] for row in rows}) < 2:
        rows = [{**row, "node": ""} for row in rows]
    table = Table.of_rows(rows, blanks=("", NOTHING, "0.0"), note=NOTE)
    return table if len(table.titles) > 1 else Table((), ())


def _cells_of_node(node: NodeUse) -> dict[str, str]:
    """Return what a node did in a step, by the titles of the table."""
    # busy cores of those that there are, and what a limit takes of them
    busy_cores, cores = _one_decimal(node.cores_busy), node.value(CPU, "cores")
    if cores and busy_cores != NOTHING:
        busy_cores = f"{busy_cores} of {cores:g}"
    limit = node.value(CONTAINER, "cpu_limit")
    throttled = node.value(CONTAINER, "throttled_periods")
    limit_text = NOTHING if limit is None else f"{limit:.3g}"
    if limit is not None and throttled is not None:
        limit_text += f", throttled {format_percent(throttled, 0)}"

    # pressure on the CPUs, and on memory and disks where there is any
    pressures = []
    for resource, figure in PRESSURES.items():
        part = node.value(PRESSURE, figure)
        if part is not None and (part >= LEAST_PRESSURE or resource == "CPU"):
            pressures.append(f"{resource} {format_percent(part, 0)}")

    # the busiest disk, and the network that moves most, both ways together
    busy = {
        disk: figures["busy"] for disk, figures in node.of_kind(DISK).items() if "busy" in figures
    }
    moved = {
        network: figures.get("received", 0.0) + figures.get("sent", 0.0)
        for network, figures in node.of_kind(NETWORK).items()
    }

    # each device that requests ran on, with the part of the time that it was busy
    devices = []
    for device, figures in sorted(node.used_devices().items()):
        states = [format_percent(figures["busy"], 0)] if "busy" in figures else []
        if figures.get("throttled", 0.0) >= 0.5:
            states.append("throttled")
        if states:
            devices.append(f"{device.rpartition('/')[2]} {' '.join(states)}")
    return {
        "cores busy": busy_cores,
        "requests' own": _one_decimal(node.requests_cpu),
        "steal": _one_decimal(node.value(CPU, "steal")),
        "pressure": ", ".join(pressures),
        "CPU limit": limit_text,
        "disk": _name_largest(busy, lambda part: format_percent(part, 0)),
        "network": _name_largest(moved, lambda per_s: format_quantity(per_s, "B/s", 3)),
        "device": ", ".join(devices),
    }


def _one_decimal(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def _name_largest(values: Mapping[str, float], show: Callable[[float], str]) -> str:
    """Return the disk or network that does most, with what it does; n/a where that is nothing."""
    name, value = max(values.items(), key=itemgetter(1), default=("", 0.0))
    return f"{name} {show(value)}" if value else NOTHING


def resources_line(result: Evaluation) -> str:
    """Return the busy cores, the pressure on them and the energy of each step, in a line.

    "" without samples; n/a for a step without any, as a short one is.
    """
    sampled = {step.workers: step for step in result.resources}
    steps = [sampled.get(step.workers) for step in result.steps]
    busy = [_one_decimal(step.cores_busy if step else None) for step in steps]
    pressures = [step.highest(PRESSURE, "cpu_some") if step else None for step in steps]
    joules = [step.joules_per_request if step else None for step in steps]
    figures = {
        "cores busy": busy,
        "pressure": [format_percent(part, 0) for part in pressures],
        "joules per request": [format_significant(number) for number in joules],
    }
    parts = {
        name: f"{name} {', '.join(texts)}"
        for name, texts in figures.items()
        if set(texts) - {NOTHING}
    }
    cores = [step.cores for step in result.resources if step.cores]
    if cores and "cores busy" in parts:
        parts["cores busy"] += f" of {cores[-1]:g}"
    return "; ".join(parts.values())

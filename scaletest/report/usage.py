"""What the nodes did in each step, as rows for pages and comments, and as one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.resources import Figures, NodeUse, StepResources
from scaletest.model.measurement import CONTAINER, CPU, DISK, NETWORK, PRESSURE
from scaletest.render.numbers import NOTHING, percent, plural, quantity, significant

# Of more nodes and steps only the sums of each step are shown.
MOST_ROWS = 40
WORKERS, NODE = "workers", "node"
# A unit of work by the name of its figure.
UNITS = {"frames": "frame", "samples": "sample", "bytes": "byte"}
PRESSURES = (("CPU", "cpu_some"), ("memory", "memory_some"), ("I/O", "io_some"))


@dataclass(frozen=True, slots=True)
class UseRow:
    """A node in a step. use: None in the row of a whole step, where there are too many nodes."""

    step: StepResources
    use: NodeUse | None


def table(result: Evaluation) -> tuple[list[str], list[list[str]]]:
    """Titles and cells without columns that no step knows. Empty without samples."""
    rows = _rows(result.resources)
    columns = {
        title: [cell(row) for row in rows] for title, cell in _columns(result.resources).items()
    }
    known = {
        title: cells
        for title, cells in columns.items()
        if title == WORKERS or any(map(_worth_a_column, cells))
    }
    if not rows or len(known) < 2:
        return [], []
    return list(known), [list(cells) for cells in zip(*known.values(), strict=True)]


def note(result: Evaluation) -> str:
    """How the energy was measured; "" where none was."""
    sources = dict.fromkeys(step.energy_sources for step in result.resources if step.energy_sources)
    energies = {
        (node.node, name): energy
        for step in result.resources
        for node in step.nodes
        for name, energy in node.energy.items()
    }
    if not energies:
        return ""
    source = f" of {', '.join(sources)}" if sources else ""
    idle = [energy.idle_w for energy in energies.values() if energy.idle_w is not None]
    before = (
        f" Before the first request they used {_watts(sum(idle))}, which is not taken off."
        if idle
        else ""
    )
    return (
        f"Energy is the difference of the counters{source}, divided by the requests of the same"
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
    busy = _course(steps, lambda step: step.cores_busy if step.cores else None, _decimal)
    parts = {
        "cores busy": f"{busy} of {cores[-1]:g}" if cores else "",
        "pressure": _course(
            steps, lambda step: step.highest(PRESSURE, "cpu_some"), lambda part: percent(part, 0)
        ),
        "joules a request": _course(steps, lambda step: step.joules_per_request, significant),
    }
    courses = "; ".join(f"{name} {course}" for name, course in parts.items() if course)
    if not courses or len(steps) == len(levels):
        return courses
    return f"{courses} ({_sampled(result, steps)}: the other steps are too short for a sample)"


def _sampled(result: Evaluation, steps: Sequence[StepResources]) -> str:
    """The numbers of workers of these steps, in words."""
    *firsts, last = [step.per_device or step.workers for step in steps]
    known = ", ".join([*map(str, firsts), plural(last, "worker")])
    place = " on each device" if result.plan.compares else ""
    return f"with {known}{place}"


def _course(
    steps: Sequence[StepResources],
    figure: Callable[[StepResources], float | None],
    text: Callable[[float], str],
) -> str:
    """A figure in each step; "" where no step knows it."""
    values = [figure(step) for step in steps]
    known = any(value is not None for value in values)
    return ", ".join(NOTHING if value is None else text(value) for value in values) if known else ""


def limits_of(result: Evaluation) -> dict[str, float]:
    """Numbers of cores and of devices with requests, as in "2 cores"; more workers share them."""
    steps = [] if result.plan.compares else result.resources
    cores = max((round(step.cores) for step in steps if step.cores), default=0)
    devices = max((step.devices for step in steps), default=0)
    if cores and cores == devices:
        return {f"{plural(cores, 'core')} and {plural(devices, 'device')}": float(cores)}
    counts = {
        plural(count, name): float(count) for name, count in (("core", cores), ("device", devices))
    }
    return {label: count for label, count in counts.items() if count}


def _rows(steps: Sequence[StepResources]) -> list[UseRow]:
    rows = [UseRow(step, use) for step in steps for use in step.nodes]
    return rows if len(rows) <= MOST_ROWS else [UseRow(step, None) for step in steps]


def _columns(steps: Sequence[StepResources]) -> dict[str, Callable[[UseRow], str]]:
    works = dict.fromkeys(name for step in steps for name in step.joules_per_unit)
    several = any(len(step.nodes) > 1 for step in steps)
    return {
        WORKERS: lambda row: str(row.step.workers),
        **(
            {NODE: lambda row: row.use.node if row.use else plural(len(row.step.nodes), "node")}
            if several
            else {}
        ),
        "cores busy": _cores,
        "requests' own": lambda row: _decimal((row.use or row.step).requests_cpu),
        "steal": lambda row: _decimal(
            row.use.value(CPU, "steal") if row.use else row.step.total(CPU, "steal")
        ),
        "pressure": _pressure,
        "CPU limit": _container,
        "disk": _disk,
        "network": _network,
        "device": _device,
        "J/request": lambda row: _joules(row, row.step.joules_per_request),
        **{f"J/{UNITS[name]}": _per_unit(name) for name in works},
    }


def _worth_a_column(cell: str) -> bool:
    """Whether a cell is worth a column."""
    return cell not in ("", NOTHING, "0.0")


def _decimal(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def _cores(row: UseRow) -> str:
    own = row.use or row.step
    cores = row.use.value(CPU, "cores") if row.use else row.step.cores
    if own.cores_busy is None or not cores:
        return NOTHING
    return f"{own.cores_busy:.1f} of {cores:g}"


def _pressure(row: UseRow) -> str:
    """Of the CPUs, and of memory and disks where there is any."""
    parts = []
    for name, figure in PRESSURES:
        value = row.use.value(PRESSURE, figure) if row.use else row.step.highest(PRESSURE, figure)
        if value is not None and (value >= 0.005 or name == "CPU"):
            parts.append(f"{name} {percent(value, 0)}")
    return ", ".join(parts)


def _container(row: UseRow) -> str:
    """The container's limit, and in how many of its periods it was throttled."""
    if row.use is None:
        return NOTHING
    limit, part = (
        row.use.value(CONTAINER, "cpu_limit"),
        row.use.value(CONTAINER, "throttled_periods"),
    )
    if limit is None:
        return NOTHING
    return f"{limit:.3g}" if part is None else f"{limit:.3g}, throttled {percent(part, 0)}"


def _disk(row: UseRow) -> str:
    """The busiest disk of the node."""
    disks = row.use.of_kind(DISK) if row.use else {}
    busy = {name: figures["busy"] for name, figures in disks.items() if "busy" in figures}
    if not busy:
        return NOTHING
    name = max(busy, key=lambda disk: busy[disk])
    return f"{name} {percent(busy[name], 0)}"


def _network(row: UseRow) -> str:
    """The busiest network of the node, both ways together."""
    moved = {
        name: _moved(figures)
        for name, figures in (row.use.of_kind(NETWORK) if row.use else {}).items()
    }
    name = max(moved, key=lambda network: moved[network], default="")
    if not moved.get(name):
        return NOTHING
    return f"{name} {quantity(moved[name], 'B/s', 3)}"


def _moved(figures: Figures) -> float:
    return figures.get("received", 0.0) + figures.get("sent", 0.0)


def _device(row: UseRow) -> str:
    """Each device that requests ran on, with the part of the time that it was busy."""
    devices = row.use.used_devices() if row.use else {}
    parts = []
    for name, figures in sorted(devices.items()):
        states = [percent(figures["busy"], 0)] if "busy" in figures else []
        states += ["throttled"] if figures.get("throttled", 0.0) >= 0.5 else []
        parts += [f"{name.rpartition('/')[2]} {' '.join(states)}"] if states else []
    return ", ".join(parts)


def _per_unit(name: str) -> Callable[[UseRow], str]:
    return lambda row: _joules(row, row.step.joules_per_unit.get(name))


def _joules(row: UseRow, value: float | None) -> str:
    """Of the whole step, so it stands in the row of its first node."""
    first = row.use is None or row.use is row.step.nodes[0]
    return significant(value) if first and value is not None else NOTHING


def _watts(value: float) -> str:
    return quantity(value, "W", 3)

"""Whether a machine is busy before a run: other programs, pressure, steal and heat distort a run.

A figure counts when every sample before the first request shows it, since programs that start take
a core for a moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from scaletest.analysis.node_text import cores_text
from scaletest.model.node_sample import CPU, DEVICE, PRESSURE, NodeSample

# Parts of the cores that other programs may use, or a hypervisor take, without a warning.
FOREIGN_PART, STOLEN = 0.25, 0.05
# Threads that run or wait for a core over cores, in the last minute.
LOAD = 1.0
# Part of the time in which some thread waits for a CPU; less happens on machines that are not busy.
CPU_PRESSED = 0.2
# Pressures that count even without other signs, with their names in texts and limits. Workers that
# start read files and wait for some of them.
PRESSED = {"memory_some": ("memory", 0.25), "io_some": ("disks", 0.5)}
# A single sample may lie where a worker starts.
LEAST_SAMPLES = 2
REMEDY = "end the other programs there, or wait for them"
Resources = Mapping[str, Mapping[str, float]]


def busy(resources: Resources, own_cores: float = 0.0, where: str = "") -> list[str]:
    """A warning that names what kept a machine busy; none for an idle one.

    Readers see it during the run and after it.

    resources: as in a sample, of about a second before the load; own_cores: cores that the tester
    itself used of them. where: "" for this machine, else such as " on node-a".
    """
    cpu, pressure = resources.get(CPU, {}), resources.get(PRESSURE, {})
    signs = _cpu_signs(cpu, pressure, own_cores)
    if cpu.get("heat_throttled"):
        signs.append(f"heat lowered a CPU's clock {cpu['heat_throttled']:.1f} times a second")
    for figure, (name, most) in PRESSED.items():
        if pressure.get(figure, 0.0) >= most:
            signs.append(f"the pressure on {name} was {pressure[figure]:.0%}")
    for resource, figures in resources.items():
        kind, _, name = resource.partition(":")
        if kind == DEVICE and figures.get("throttled"):
            signs.append(f"heat, power or another limit lowered the clock of {name}")
    if not signs:
        return []
    return [f"before the run{where}, {', '.join(signs)}: {REMEDY}"]


def _cpu_signs(
    cpu: Mapping[str, float], pressure: Mapping[str, float], own_cores: float
) -> list[str]:
    """Signs of other programs and of a hypervisor on the cores; none where cores are unknown."""
    cores = cpu.get("cores", 0.0)
    if cores <= 0:
        return []
    signs = []
    foreign = min(cores, cpu.get("user", 0.0) + cpu.get("system", 0.0) - own_cores)
    if foreign >= FOREIGN_PART * cores:
        signs.append(f"other programs used {cores_text(foreign, cores)}")
        if (
            pressure.get("cpu_some", 0.0) >= CPU_PRESSED
        ):  # alone it may come from workers that start
            signs.append(f"the pressure on CPUs was {pressure['cpu_some']:.0%}")
        if cpu.get("load", 0.0) >= LOAD * cores:  # alone it may come from a program that has ended
            signs.append(f"the load of the minute before it was {cpu['load']:.1f}")
    if cpu.get("steal", 0.0) >= STOLEN * cores:
        signs.append(f"the hypervisor took {cores_text(cpu['steal'], cores)}")
    return signs


def busy_before(samples: Sequence[NodeSample], began_s: float) -> list[str]:
    """A warning for each node that was busy in every sample before the first request.

    began_s: when the first request started.
    """
    by_node: dict[str, list[NodeSample]] = defaultdict(list)
    for sample in samples:
        if sample.at_s <= began_s:
            by_node[sample.node].append(sample)
    lines = []
    for node, own in sorted(by_node.items()):
        if len(own) >= LEAST_SAMPLES:
            lines += busy(_least(own), where=f" on {node}")
    return lines


def _least(samples: Sequence[NodeSample]) -> dict[str, dict[str, float]]:
    """The lowest reading of each figure that all samples have; cores do not vary."""
    least: dict[str, dict[str, float]] = {}
    for resource, figures in samples[0].resources.items():
        own = [sample.resources.get(resource, {}) for sample in samples]
        shared = set(figures).intersection(*own)
        least[resource] = {figure: _lowest(own, figure) for figure in figures if figure in shared}
    return least


def _lowest(own: Sequence[Mapping[str, float]], figure: str) -> float:
    return min(figures[figure] for figures in own)

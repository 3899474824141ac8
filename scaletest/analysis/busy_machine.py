"""Whether a machine is busy before a run: other programs, pressure, steal and heat change what is measured.

A figure counts when every sample before the first request shows it, since programs that start take a core for a moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from scaletest.analysis.node_text import cores_text
from scaletest.model.node_sample import CPU, DEVICE, PRESSURE, NodeSample

# Parts of the cores that others may use, or a hypervisor take, before it is worth a word.
FOREIGN_PART, STOLEN = 0.25, 0.05
# Threads that want a core over cores, in the last minute.
LOAD = 1.0
# Part of the time in which some thread waits for a CPU; less says nothing of how busy the machine is.
CPU_PRESSED = 0.2
# The same for what is a sign alone; workers that start read files and wait for some of them.
PRESSED = {"memory_some": ("memory", 0.25), "io_some": ("disks", 0.5)}
# One sample may lie where a worker starts.
LEAST_SAMPLES = 2
REMEDY = "end what else runs there, or wait for it"
Resources = Mapping[str, Mapping[str, float]]


def busy(resources: Resources, own_cores: float = 0.0, where: str = "") -> list[str]:
    """A warning that says what kept a machine busy; none where nothing did. It is read while a run lasts, and after.

    resources: as in a sample, of about a second before the load; own_cores: what the tester itself used of them then.
    where: "" for this machine, else as in " on node-a".
    """
    cpu, pressure = resources.get(CPU, {}), resources.get(PRESSURE, {})
    cores = cpu.get("cores", 0.0)
    known = cores > 0
    signs = []
    foreign = min(cores, cpu.get("user", 0.0) + cpu.get("system", 0.0) - own_cores)
    if known and foreign >= FOREIGN_PART * cores:
        signs.append(f"other programs used {cores_text(foreign, cores)}")
        if pressure.get("cpu_some", 0.0) >= CPU_PRESSED:  # alone it may come from workers that start
            signs.append(f"the pressure on CPUs was {pressure['cpu_some']:.0%}")
        if cpu.get("load", 0.0) >= LOAD * cores:  # alone it may come from what has just ended
            signs.append(f"the load of the minute before it was {cpu['load']:.1f}")
    if known and cpu.get("steal", 0.0) >= STOLEN * cores:
        signs.append(f"the hypervisor took {cores_text(cpu['steal'], cores)}")
    if cpu.get("heat_throttled"):
        signs.append(f"heat lowered a CPU's clock {cpu['heat_throttled']:.1f} times a second")
    for figure, (name, most) in PRESSED.items():
        if pressure.get(figure, 0.0) >= most:
            signs.append(f"the pressure on {name} was {pressure[figure]:.0%}")
    slowed = [name for name, figures in resources.items() if name.startswith(f"{DEVICE}:") and figures.get("throttled")]
    signs += [f"heat, power or another limit lowered the clock of {name.partition(':')[2]}" for name in slowed]
    return [f"before the run{where}, {', '.join(signs)}: {REMEDY}"] if signs else []


def busy_before(samples: Sequence[NodeSample], began_s: float) -> list[str]:
    """A warning for each node that was busy in every sample before the first request. began_s: when that started."""
    by_node: dict[str, list[NodeSample]] = defaultdict(list)
    for sample in samples:
        if sample.at_s <= began_s:
            by_node[sample.node].append(sample)
    return [
        line
        for node, own in sorted(by_node.items())
        if len(own) >= LEAST_SAMPLES
        for line in busy(_least(own), where=f" on {node}")
    ]


def _least(samples: Sequence[NodeSample]) -> dict[str, dict[str, float]]:
    """The lowest value of each figure, of those that all samples have; cores do not vary."""
    first, *others = samples
    return {
        resource: {
            figure: min(value, *(other.resources[resource][figure] for other in others))
            for figure, value in figures.items()
            if all(figure in other.resources.get(resource, {}) for other in others)
        }
        for resource, figures in first.resources.items()
    }

"""Whether a machine is busy before a run, so that its figures cannot be trusted."""

from collections.abc import Mapping

from scaletest.causes.resources import cores_text
from scaletest.model.node_sample import CPU, DEVICE, PRESSURE

# Parts of the cores that other programs may use, or a hypervisor take, without a warning.
BUSY_PART, STOLEN_PART = 0.25, 0.05
# Pressures that count, with their names in texts and limits. Workers that start read files and wait
# for some of them.
PRESSED = {"memory_some": ("memory", 0.25), "io_some": ("disks", 0.5)}
REMEDY = "stop the other programs, or run again when the machine is idle"
Resources = Mapping[str, Mapping[str, float]]


def busy_machine_warnings(resources: Resources, own_cores: float) -> list[str]:
    """Return a warning that names what kept a machine busy; none for an idle one.

    Readers see it during the run and after it.

    resources: as in a sample, of about a second before the load; own_cores: cores that the tester
    itself used of them.
    """
    cpu, pressure = resources.get(CPU, {}), resources.get(PRESSURE, {})
    signs = []
    # other programs and a hypervisor on the cores, where these are known
    cores = cpu.get("cores", 0.0)
    if cores > 0:
        foreign = min(cores, cpu.get("user", 0.0) + cpu.get("system", 0.0) - own_cores)
        if foreign >= BUSY_PART * cores:
            signs.append(f"other programs used {cores_text(foreign, cores)}")
        if cpu.get("steal", 0.0) >= STOLEN_PART * cores:
            signs.append(f"the hypervisor took {cores_text(cpu['steal'], cores)}")
    signs += [
        f"the pressure on {name} was {pressure[figure]:.0%}"
        for figure, (name, most) in PRESSED.items()
        if pressure.get(figure, 0.0) >= most
    ]
    for resource, figures in resources.items():
        kind, _, name = resource.partition(":")
        if kind == DEVICE and figures.get("throttled"):
            signs.append(f"heat, power or another limit lowered the clock of {name}")
    return [f"before the run, {', '.join(signs)}: {REMEDY}"] if signs else []

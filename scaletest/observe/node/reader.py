"""The resources of the node and the container that this process runs on, read again and again.

No privilege is needed. Files that are absent or may not be read leave their figures out, never a 0
in their place.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from scaletest.model.node_sample import CONTAINER, CPU, DISK, FIGURES, MEMORY, NETWORK, PRESSURE
from scaletest.observe import control_groups
from scaletest.observe.node.resources import (
    ContainerReader,
    CpuReader,
    DiskReader,
    MemoryReader,
    NetworkReader,
    PressureReader,
    ResourceReading,
    interval_figures,
)

# The busiest: a node may have hundreds, of which a sample has no room for all.
MOST_DISKS, MOST_NETWORKS = 8, 4

Figures = dict[str, float]


class NodeReader:
    """Reads all `FIGURES` but devices. interval_s: between the last two readings, 0 at first."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        procfs: Path = Path("/proc"),
        sysfs: Path = Path("/sys"),
        cgroups: Path = control_groups.CGROUPS,
        own_cgroup: Path = control_groups.OWN,
    ) -> None:
        """clock: seconds. The rest: where the node's files lie."""
        self._clock = clock
        # how the only resource of each kind is read
        self._single: dict[str, Callable[[], ResourceReading]] = {
            CPU: CpuReader(procfs, sysfs).read,
            MEMORY: MemoryReader(procfs).read,
            PRESSURE: PressureReader(procfs).read,
            CONTAINER: ContainerReader(cgroups, own_cgroup).read,
        }
        self._disks, self._networks = DiskReader(procfs, sysfs), NetworkReader(procfs, sysfs)
        self._before: Mapping[str, ResourceReading] = {}
        self._read_at_s: float | None = None
        self.interval_s = 0.0

    def read(self) -> dict[str, Figures]:
        """Return the figures of every resource since the last call.

        The first call gives levels only.
        """
        now_s = self._clock()
        self.interval_s = 0.0 if self._read_at_s is None else max(0.0, now_s - self._read_at_s)
        readings = {kind: read() for kind, read in self._single.items()}
        for kind, named in ((DISK, self._disks.read()), (NETWORK, self._networks.read())):
            readings.update({f"{kind}:{name}": reading for name, reading in named.items()})
        resources = {}
        for name, reading in readings.items():
            row = interval_figures(self._before.get(name), reading, self.interval_s)
            for figure, unit in FIGURES[name.partition(":")[0]].items():
                if unit == "1" and figure in row:
                    # an interval is known less exactly than what happened in it
                    row[figure] = min(1.0, row[figure])
            resources[name] = row
        self._before, self._read_at_s = readings, now_s
        # a sample has no room for all disks and networks
        disks = _busiest(resources, DISK, MOST_DISKS, ("busy",))
        networks = _busiest(resources, NETWORK, MOST_NETWORKS, ("received", "sent"))
        for name in networks:
            resources[name].update(self._networks.speed(name.partition(":")[2]))
        known = {*self._single, *disks, *networks}
        return {name: row for name, row in resources.items() if row and name in known}


def _busiest(rows: Mapping[str, Figures], kind: str, limit: int, by: tuple[str, ...]) -> list[str]:
    """Return the names of those that did most; of those that did alike the first by name."""
    amounts = {
        name: sum(row.get(figure, 0.0) for figure in by)
        for name, row in rows.items()
        if name.startswith(f"{kind}:")
    }
    return sorted(amounts, key=lambda name: (-amounts[name], name))[:limit]

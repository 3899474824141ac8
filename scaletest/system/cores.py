"""CPU seconds of the machine and of some processes, as the kernel counts them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from scaletest.system import proc
from scaletest.system.node_cpu import parse_stat

# what is work: idle and iowait are none, and what a hypervisor takes is no longer there for us
_BUSY = ("user", "system", "steal")


class MachineTime(NamedTuple):
    """cores: that are online. busy_s: since boot, of all of them."""

    cores: int
    busy_s: float


def machine_time() -> MachineTime:
    """Now. Raises OSError."""
    return parse_machine(proc.read_all("/proc/stat"))


def parse_machine(text: str) -> MachineTime:
    """/proc/stat; zeros for anything else."""
    reading = parse_stat(text)
    return MachineTime(
        int(reading.levels.get("cores", 0.0)),
        sum(reading.counters.get(name, 0.0) for name in _BUSY),
    )


def used_s(roots: Iterable[int]) -> float:
    """CPU seconds of processes, of all that live below them, and of the children that they waited
    for.

    Nothing counts of what is gone, or may not be read.
    """
    total_s, visited, waiting = 0.0, set[int](), list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in visited:
            continue
        visited.add(pid)
        try:
            total_s += proc.parse_cpu_s(proc.read(f"/proc/{pid}/stat")) or 0.0
            for thread in proc.numbers(f"/proc/{pid}/task"):
                waiting += proc.parse_numbers(
                    proc.read(f"/proc/{pid}/task/{thread}/children", 65536)
                )
        except OSError:  # it is gone, or hidden
            continue
    return total_s


def own_used_s() -> float:
    """CPU seconds of this process and all its descendants."""
    return used_s([os.getpid()])

"""CPU time of the machine and of processes on it."""

import os
import time
from collections.abc import Iterable
from typing import NamedTuple

from scaletest.observe.control_groups import Throttling
from scaletest.observe.node.resources import parse_stat
from scaletest.processes import proc

# what is work: idle and iowait are none, and what a hypervisor takes is no longer there for us
_BUSY = ("user", "system", "steal")


class MachineTime(NamedTuple):
    """CPU time of the machine."""

    cores: int  # that are online
    busy_s: float  # since boot, of all of them


def machine_time() -> MachineTime:
    """Return the CPU time of the machine until now. Raises OSError."""
    return parse_machine(proc.read_all("/proc/stat"))


def parse_machine(text: str) -> MachineTime:
    """Parse /proc/stat; zeros for anything else."""
    reading = parse_stat(text)
    return MachineTime(
        int(reading.levels.get("cores", 0.0)),
        sum(reading.counters.get(name, 0.0) for name in _BUSY),
    )


def cpu_used_s(roots: Iterable[int]) -> float:
    """Return CPU seconds of processes, and of all that live below them or were waited for.

    Nothing counts of what is gone, or may not be read.
    """
    total_s, visited, waiting = 0.0, set[int](), list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in visited:
            continue
        visited.add(pid)
        try:
            status = proc.parse_status(proc.read(f"/proc/{pid}/stat"))
            total_s += status.cpu_s if status else 0.0
            for thread in proc.numbers(f"/proc/{pid}/task"):
                waiting += proc.children(pid, thread)
        except OSError:  # it is gone, or hidden
            continue
    return total_s


def own_processes_cpu_s() -> float:
    """Return CPU seconds of this process and all its descendants."""
    return cpu_used_s([os.getpid()])


class Effort:
    """Counts from when it is made. throttling: by the CPU limit of this container."""

    def __init__(self) -> None:
        self._began, self._cpu_s = time.monotonic(), time.process_time()
        self.throttling = Throttling()

    def cores(self) -> float:
        """Return CPU time of this process over time passed."""
        passed = time.monotonic() - self._began
        return (time.process_time() - self._cpu_s) / passed if passed > 0 else 0.0

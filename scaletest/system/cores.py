"""CPU seconds of the machine and of some processes, as the kernel counts them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from scaletest.system import proc

# user, nice, system, irq, softirq and steal of a row of /proc/stat; idle and iowait are no work
_BUSY = (1, 2, 3, 6, 7, 8)
# utime, stime and those of children that were waited for, behind the name in /proc/PID/stat
_USED = slice(11, 15)


class MachineTime(NamedTuple):
    """cores: that are online. busy_s: since boot, of all of them."""

    cores: int
    busy_s: float


def machine_time() -> MachineTime:
    """Now. Raises OSError."""
    return parse_machine(proc.read_all("/proc/stat"))


def parse_machine(text: str) -> MachineTime:
    """/proc/stat; zeros for anything else."""
    rows = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    whole = next((row for row in rows if row[0] == "cpu" and len(row) > max(_BUSY)), None)
    ticks = sum(int(whole[at]) for at in _BUSY if whole[at].isdigit()) if whole else 0
    return MachineTime(sum(row[0] != "cpu" for row in rows), ticks / proc.TICKS_PER_S)


def used_s(roots: Iterable[int]) -> float:
    """CPU seconds of processes, of all that live below them, and of the children that they waited for."""
    total, visited, waiting = 0.0, set[int](), list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in visited:
            continue
        visited.add(pid)
        try:
            fields = proc.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            total += sum(map(int, fields[_USED])) / proc.TICKS_PER_S
            for thread in proc.numbers(f"/proc/{pid}/task"):
                waiting += proc.parse_numbers(proc.read(f"/proc/{pid}/task/{thread}/children", 65536))
        except (OSError, ValueError):  # it is gone, or hidden
            continue
    return total

"""CPU time of a process with all that descend from it, as /proc tells: what a run itself uses of its machine."""

from __future__ import annotations

import os

from scaletest.system import proc


def cpu_s(root: int) -> float:
    """Seconds of user and system time of a process, its descendants, and those of them that ended and were awaited.

    0 for what is gone, or may not be read.
    """
    total_s, waiting, visited = 0.0, [root], set[int]()
    while waiting:
        pid = waiting.pop()
        if pid in visited:
            continue
        visited.add(pid)
        try:
            total_s += proc.parse_cpu_s(proc.read(f"/proc/{pid}/stat")) or 0.0
            for thread in proc.numbers(f"/proc/{pid}/task"):
                waiting += proc.parse_numbers(proc.read(f"/proc/{pid}/task/{thread}/children"))
        except OSError:  # it is gone, or hidden
            continue
    return total_s


def own_cpu_s() -> float:
    """That of this process."""
    return cpu_s(os.getpid())

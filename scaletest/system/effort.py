"""How much of the machine this process took, and whether the kernel held it back."""

from __future__ import annotations

import os
import time
from pathlib import Path

CPU_STAT = Path("/sys/fs/cgroup/cpu.stat")


class Effort:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._began, self._cpu, self._throttled = time.monotonic(), _cpu_s(), _throttled_s()

    def cores(self) -> float:
        """CPU time of this process over time passed."""
        passed = time.monotonic() - self._began
        return (_cpu_s() - self._cpu) / passed if passed > 0 else 0.0

    def throttled_s(self) -> float:
        """Seconds that the control group's CPU limit held its processes back; 0 when there is none."""
        return max(0.0, _throttled_s() - self._throttled)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


def _throttled_s() -> float:
    try:
        rows = dict(line.split() for line in CPU_STAT.read_text().splitlines())
        return int(rows.get("throttled_usec", 0)) / 1e6
    except (OSError, ValueError):
        return 0.0


def raise_open_files(wanted: int) -> int:
    """Allow this process so many open files, as far as the machine lets it; how many it are."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft

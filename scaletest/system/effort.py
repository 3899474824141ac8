"""How much of the machine this process took, and whether the kernel held it back."""

from __future__ import annotations

import os
import time

from scaletest.system.throttling import Throttling


class Effort:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._began, self._cpu, self._throttling = time.monotonic(), _cpu_s(), Throttling()

    def cores(self) -> float:
        """CPU time of this process over time passed."""
        passed = time.monotonic() - self._began
        return (_cpu_s() - self._cpu) / passed if passed > 0 else 0.0

    def throttled_s(self) -> float:
        """Seconds, summed over CPUs, that the CPU limit held its processes back; 0 without one."""
        return self._throttling.seconds()

    def throttled_periods(self) -> float:
        """The part of the limit's periods in which it did that."""
        return self._throttling.part()


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


def raise_open_files(wanted: int) -> int:
    """Allow this process so many open files, as far as the machine lets it; how many it are."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft

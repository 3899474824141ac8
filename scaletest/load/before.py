"""A look at this machine before a load begins: what else keeps it busy changes what is measured."""

from __future__ import annotations

import time
from collections.abc import Callable

from scaletest.analysis.busy_machine import Resources, busy
from scaletest.system.cores import own_used_s
from scaletest.system.node import NodeReader

# So long a look lasts at least; workers usually take longer to start.
LOOK_S = 1.0


class Before:
    """Reads the machine at once, and again when it is asked for warnings."""

    def __init__(
        self,
        read: Callable[[], Resources],
        own_cpu_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """read: the figures since the call before. own_cpu_s: CPU seconds of this run's own processes so far."""
        self._read, self._own_cpu_s, self._clock, self._wait = read, own_cpu_s, clock, wait
        read()
        self._began, self._own_s = clock(), own_cpu_s()

    def warnings(self) -> list[str]:
        """What else keeps the machine busy. A second after the first look at the earliest: it waits for that."""
        self._wait(max(0.0, LOOK_S - (self._clock() - self._began)))
        resources = self._read()
        own_cores = (self._own_cpu_s() - self._own_s) / (self._clock() - self._began)
        return busy(resources, own_cores)


def of_this_machine(own_cpu_s: Callable[[], float] = own_used_s) -> Before:
    """The look begins now. own_cpu_s: CPU seconds of what belongs to the run."""
    return Before(NodeReader().read, own_cpu_s)

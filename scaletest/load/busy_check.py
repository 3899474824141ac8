"""Check of this machine before a load begins: other programs would change the measurement."""

import time
from collections.abc import Callable

from scaletest.causes.busy_machine import Resources, busy_machine_warnings
from scaletest.observe.node.reader import NodeReader
from scaletest.observe.node.used_time import own_processes_cpu_s

# The least time between two readings; workers usually take longer to start.
LOOK_S = 1.0


class BusyCheck:
    """Reads the machine's resources when it is created, and again for the warnings."""

    def __init__(
        self,
        read: Callable[[], Resources],
        own_cpu_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """read: figures since the call before. own_cpu_s: CPU seconds of this run's processes."""
        self._read, self._own_cpu_s, self._clock, self._wait = read, own_cpu_s, clock, wait
        read()
        self._began, self._own_s = clock(), own_cpu_s()

    def warnings(self) -> list[str]:
        """Wait until a second after the first reading; return warnings about other programs."""
        self._wait(max(0.0, LOOK_S - (self._clock() - self._began)))
        resources = self._read()
        own_cores = (self._own_cpu_s() - self._own_s) / (self._clock() - self._began)
        return busy_machine_warnings(resources, own_cores)


def of_this_machine(own_cpu_s: Callable[[], float] = own_processes_cpu_s) -> BusyCheck:
    """Begin the check of this machine now. own_cpu_s: CPU seconds of the run's own processes."""
    return BusyCheck(NodeReader().read, own_cpu_s)

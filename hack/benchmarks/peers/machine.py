"""How much of the machine somebody else used: a row measured beside a busy neighbour says little.

Cores that were busy, less what the processes of our own sessions used. Linux counts both in ticks
of a hundredth of a second, so it means something for drains of a second and more.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

# Beside this many cores of foreign work a row is loud: it is left out where a quiet one exists.
LOUD_CORES = 0.4
_SAMPLE_S = 0.3
_TICKS = os.sysconf("SC_CLK_TCK")


def busy_s() -> float:
    """CPU seconds that the whole machine has spent so far: all but idle and waiting for disks."""
    first = Path("/proc/stat").read_text().split("\n", 1)[0]
    user, nice, system, _, _, irq, soft, steal = map(int, first.split()[1:9])
    return (user + nice + system + irq + soft + steal) / _TICKS


def ours_s(sessions: Iterable[int]) -> float:
    """CPU seconds of living processes of these sessions and this process, with their children."""
    wanted = set(sessions)
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it ended
            continue
        if int(fields[3]) in wanted or int(path.parent.name) == os.getpid():
            total += sum(map(int, fields[11:15]))
    return total / _TICKS


def wait_for_quiet(longest_s: float) -> float:
    """Wait while others are loud and we do nothing; seconds waited."""
    start = time.monotonic()
    while time.monotonic() - start < longest_s:
        before, at = busy_s(), time.monotonic()
        time.sleep(_SAMPLE_S)
        if busy_s() - before <= LOUD_CORES * (time.monotonic() - at):
            break
    return time.monotonic() - start

"""Orphans, the processes that a workload leaves behind: this process adopts and ends them."""

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress

from scaletest.processes import proc
from scaletest.processes.children import POLL_S

# Killed orphans are waited for so long: one that waits for a device may take for ever.
ORPHANS_LIMIT_S = 1.0
# PR_SET_CHILD_SUBREAPER of prctl(2).
_SET_CHILD_SUBREAPER = 36
_adopting = False  # whether orphans become children of this process


def adopt_orphans() -> None:
    """Become the parent of orphans, so that `end_orphans` finds them.

    A process that left its group and cleared its environment, and whose parent has ended, is a
    child of init otherwise. Call it only where one workload at a time is started, as in a worker.
    """
    # here, since it takes a while, and --help needs none of it
    import ctypes

    global _adopting
    _adopting = ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def own_children() -> frozenset[int]:
    """Return the children of this process, also those that it adopted."""
    children: set[int] = set()
    with suppress(OSError):  # there is no /proc
        for thread in proc.list_numbers("/proc/self/task"):
            children.update(proc.read_children(os.getpid(), thread))
    return frozenset(children)


def end_orphans(known: Collection[int]) -> None:
    """KILL the orphans of a workload: adopted children that are not `known` from before it."""
    deadline = time.monotonic() + ORPHANS_LIMIT_S
    while _adopting and time.monotonic() < deadline:
        # a workload has a session of its own; what an RQ job started in this one is not its orphan
        orphans = []
        for pid in own_children().difference(known):
            with suppress(ProcessLookupError):  # it has been reaped
                if os.getsid(pid) != os.getsid(0):
                    orphans.append(pid)
        if not orphans:
            return
        for pid in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(POLL_S)  # then their own orphans are here

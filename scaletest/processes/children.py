"""Child processes, which are ended with their groups, and waited for without polling."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from resource import struct_rusage
from typing import Protocol

# Between two looks at a child whose end cannot be waited for.
POLL_S = 0.005


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs one of our modules in a child.

    -P keeps the working folder off the module path: a user's queue.py there would take the place of
    Python's own.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


class ChildWatch(Protocol):
    """Something that looks at a child again and again while it runs."""

    @property
    def due(self) -> float:
        """The time of the next look, on the monotonic clock; infinity for never."""

    @property
    def end_handles(self) -> Sequence[int]:
        """Descriptors that are readable when something has ended meanwhile."""

    def note_ends(self, handles: Sequence[int]) -> None:
        """Take in that these of them are readable; the watch has closed them afterwards."""

    def look(self) -> None:
        """Look at the child; after that it is due later."""

    def ended(self) -> None:
        """Look for the last time: the child has ended, or soon will have, and is reaped next."""


def has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the child has ended, without reaping it: its group id stays taken."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def end_group(
    process: subprocess.Popen[bytes], grace_s: float, watch: ChildWatch | None = None
) -> struct_rusage | None:
    """End the child's whole process group: TERM, KILL after `grace_s`; then reap the child.

    The child is reaped last: as long as it is not, no other process can get its group id. Returns
    the resources that the child, with all processes that it waited for, has used; None when
    another thread has reaped it.
    """
    if not has_exited(process):
        _signal_group(process.pid, signal.SIGTERM)
        wait_child(process, time.monotonic() + grace_s, watch=watch)
    _signal_group(process.pid, signal.SIGKILL)
    if watch is not None:
        watch.ended()
    usage = None
    if process.returncode is None:
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            process.wait()
    if os.getpid() == 1:
        # the first process of a container inherits the orphans of workloads, and must reap them
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    return usage


def end_all(processes: Sequence[subprocess.Popen[bytes]], grace_s: float) -> None:
    """End these children: TERM to each, KILL to those that are still there after `grace_s`."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + grace_s
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_child(
    process: subprocess.Popen[bytes], deadline: float, *others: int, watch: ChildWatch | None = None
) -> bool:
    """Wait for the child's end, a descriptor of `others`, or `deadline`.

    Return whether the child has ended.
    """
    with end_handle(process) as handles:
        if handles:
            wait_ready([*handles, *others], deadline, watch)
            return has_exited(process)
    # nothing tells of its end: look again and again
    while not has_exited(process) and time.monotonic() < deadline:
        if wait_ready(others, min(deadline, time.monotonic() + POLL_S), watch):
            break
    return has_exited(process)


@contextmanager
def end_handle(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Return a descriptor that is readable when the child has ended; none without pidfd."""
    handles = []
    with suppress(AttributeError, OSError):  # not every Python and kernel has it
        handles.append(os.pidfd_open(process.pid))
    try:
        yield handles
    finally:
        for handle in handles:
            os.close(handle)


def wait_ready(
    handles: Sequence[int], deadline: float, watch: ChildWatch | None = None
) -> list[int]:
    """Wait until a descriptor is readable; return those that are, none at the deadline.

    deadline: on the monotonic clock, infinity for none. watch: looks when it is due meanwhile.
    """
    while True:
        due = min(deadline, watch.due) if watch else deadline
        left_s = None if due == float("inf") else max(0.0, due - time.monotonic())
        ended = watch.end_handles if watch else ()
        readable, _, _ = select.select([*handles, *ended], [], [], left_s)
        ready = [handle for handle in handles if handle in readable]
        if ready or watch is None:
            return ready
        if readable:
            watch.note_ends(readable)
        elif due == deadline:
            return ready
        else:
            watch.look()


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)

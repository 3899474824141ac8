"""Wait for a child process, a wake-up pipe or a time in one system call, without polling."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from resource import struct_rusage
from typing import Protocol


class ChildWatch(Protocol):
    """Something to do repeatedly while a child runs. due: when next, on the monotonic clock."""

    @property
    def due(self) -> float:
        """The next time; infinity for never."""

    def look(self) -> None:
        """Do it, and be due later."""

    def ended(self) -> None:
        """The child has ended, or soon will have; it is about to be reaped."""


class Wake:
    """A self-pipe: any thread or signal handler wakes who waits on `fileno()`, until `clear()`."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)

    def fileno(self) -> int:
        """The end to wait on."""
        return self._read

    def set(self) -> None:
        """Wake the waiter; safe in a signal handler."""
        try:
            os.write(self._write, b"x")
        except (BlockingIOError, OSError):  # full: it is awake already; closed: nobody waits
            pass

    def wait(self, seconds: float) -> bool:
        """Wait until woken, at most `seconds`; whether it was woken."""
        ready, _, _ = select.select([self._read], [], [], max(0.0, seconds))
        return bool(ready)

    def clear(self) -> None:
        """Reset the event."""
        try:
            while os.read(self._read, 4096):
                pass
        except OSError:
            pass

    def close(self) -> None:
        """Close both ends; waking it afterwards does nothing."""
        for end in (self._write, self._read):
            try:
                os.close(end)
            except OSError:
                pass


def exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether the child has ended, without reaping it, so that its process group id stays taken."""
    try:
        state = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return state is not None


def end_group(
    process: subprocess.Popen[bytes], grace_s: float, watch: ChildWatch | None = None
) -> struct_rusage | None:
    """End the child's whole process group: TERM, KILL after `grace_s`; then reap the child.

    The child is reaped last: as long as it is not, no other process can get its group id. Returns
    what the child and all processes that it waited for have used; None when somebody else has
    reaped it.
    """
    if not exited(process):
        _signal_group(process.pid, signal.SIGTERM)
        wait_child(process, time.monotonic() + grace_s, watch=watch)
    _signal_group(process.pid, signal.SIGKILL)
    if watch is not None:
        watch.ended()
    usage = _reap(process)
    if os.getpid() == 1:
        _reap_adopted()
    return usage


def _reap(process: subprocess.Popen[bytes]) -> struct_rusage | None:
    if process.returncode is None:
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except ChildProcessError:
            process.wait()
            return None
        process.returncode = os.waitstatus_to_exitcode(status)
        return usage
    return None


def _reap_adopted() -> None:
    """Reap what a workload left behind, since the first process of a container inherits it."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def wait_child(
    process: subprocess.Popen[bytes], deadline: float, *others: int, watch: ChildWatch | None = None
) -> bool:
    """Wait for the child's end, a descriptor of `others`, or `deadline`; whether it ended."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return _wait_child_polling(process, deadline, others, watch)
    try:
        while not _is_ready([handle, *others], deadline, watch):
            pass
    finally:
        os.close(handle)
    return exited(process)


def _wait_child_polling(
    process: subprocess.Popen[bytes],
    deadline: float,
    others: tuple[int, ...],
    watch: ChildWatch | None,
) -> bool:
    """For systems without pidfd: look every 5 ms."""
    while not exited(process):
        left = _left(deadline)
        ready, _, _ = select.select(others, [], [], 0.005 if left is None else min(0.005, left))
        if ready or left == 0.0:
            break
        if watch is not None and time.monotonic() >= watch.due:
            watch.look()
    return exited(process)


def _is_ready(handles: Sequence[int], deadline: float, watch: ChildWatch | None) -> bool:
    """Whether one is readable or the deadline has passed; false after other work."""
    due = min(deadline, watch.due) if watch else deadline
    ready, _, _ = select.select(handles, [], [], _left(due))
    if ready or due == deadline:
        return True
    assert watch is not None
    watch.look()
    return False


def _left(deadline: float) -> float | None:
    if deadline == float("inf"):
        return None
    return max(0.0, deadline - time.monotonic())


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass

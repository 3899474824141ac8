"""Waiting for a child process, a wake-up pipe or a point in time, in one system call and without polling."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time


class Wake:
    """A self-pipe: any thread or signal handler wakes whoever waits on `fileno()`. Stays awake until `clear()`."""

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
        """Be asleep again."""
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


def end_group(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """End the child's whole process group: TERM, KILL after `grace_s`; then reap the child.

    The child is reaped last: as long as it is not, no other process can get its group id.
    """
    if not exited(process):
        _signal_group(process.pid, signal.SIGTERM)
        wait_child(process, time.monotonic() + grace_s)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()
    if os.getpid() == 1:
        _reap_adopted()


def _reap_adopted() -> None:
    """As the first process of a container we inherit what a workload left behind; nobody else would reap it."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def wait_child(process: subprocess.Popen[bytes], deadline: float, *others: int) -> bool:
    """Wait for the child's end, a readable descriptor of `others`, or the monotonic `deadline`; whether it ended."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return _wait_child_polling(process, deadline, *others)
    try:
        select.select([handle, *others], [], [], _left(deadline))
    finally:
        os.close(handle)
    return exited(process)


def _wait_child_polling(process: subprocess.Popen[bytes], deadline: float, *others: int) -> bool:
    """For systems without pidfd: look every 5 ms."""
    while not exited(process):
        left = _left(deadline)
        ready, _, _ = select.select(others, [], [], 0.005 if left is None else min(0.005, left))
        if ready or left == 0.0:
            break
    return exited(process)


def _left(deadline: float) -> float | None:
    return None if deadline == float("inf") else max(0.0, deadline - time.monotonic())


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass

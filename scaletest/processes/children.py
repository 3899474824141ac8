"""Child processes: a guard that ends what a killed parent leaves, and waits without polling.

A guard is a tiny shell that outlives its parent by a moment. The parent holds the write end of the
guard's standard input. When the parent dies, however it dies, the kernel closes that end, the
shell's `read` returns, and it signals the process group that it was last told of. Then it looks
through /proc for processes that carry the guard's own mark in their environment: that finds a
process that was started but not yet announced, and one that left its group. A shell costs a
megabyte and no Python start-up, and nothing that the parent does (a long C call, a stopped
interpreter) can hold it up.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
import uuid
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from resource import struct_rusage
from typing import IO, Protocol

from scaletest.processes import proc

MARK = "SCALETEST_GUARD"
# Between two looks at a child whose end cannot be waited for.
POLL_S = 0.005
# How long killed orphans may take to end: one that waits for a device may take for ever.
ORPHANS_S = 1.0
# Of prctl(2).
_SET_CHILD_SUBREAPER = 36

# $1 mark, $2 signal, $3 directory to remove or empty. Reads group ids line by line; an empty line
# means "no group".
_SCRIPT = r"""
trap '' INT TERM HUP
group=
strike() {
  [ -n "$group" ] && kill -s "$1" -- "-$group" 2>/dev/null
  for file in $(grep -lsa "$MARK_LINE" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${file#/proc/}; pid=${pid%/environ}
    [ "$pid" = "$$" ] || kill -s "$1" "$pid" 2>/dev/null
  done
}
MARK_LINE=$1
while read -r line; do
  # the parent ends in order: one look for strays, and no second one
  [ "$line" = close ] && { group=; strike "$2"; exit 0; }
  group=$line
done
struck=$group
strike "$2"
# again: a process may have been between fork and exec at the first look
sleep 0.2; strike "$2"
sleep 0.8; strike "$2"
[ -n "$3" ] && [ -n "$struck" ] && rm -rf -- "$3"
exit 0
"""


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs one of our modules in a child.

    -P keeps the working folder off the module path: a user's queue.py there would take the place of
    Python's own.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def _close(stream: IO[bytes] | None) -> None:
    """Let go of a pipe's end in a forked child, whose stream object stays usable."""
    if stream is not None and not stream.closed:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno(), inheritable=False)
        os.close(nowhere)


class Guard:
    """Ends a process group when this process dies; what it guards needs `environment()`."""

    def __init__(self, signal_name: str = "KILL", remove: Path | None = None) -> None:
        """signal_name: sent to the group; remove: a folder that is deleted with a group."""
        self._mark = uuid.uuid4().hex
        self._process = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                _SCRIPT,
                "scaletest-guard",
                f"{MARK}_{self._mark}=",
                signal_name,
                str(remove or ""),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )

        # A forked child must not hold the pipe open: the guard would take it for the parent.
        stream = weakref.ref(self._process.stdin) if self._process.stdin else lambda: None
        os.register_at_fork(after_in_child=lambda: _close(stream()))

    def environment(self, base: dict[str, str] | None = None) -> dict[str, str]:
        """The environment for a guarded process: `base` (default: ours) with the mark."""
        return {**(os.environ if base is None else base), f"{MARK}_{self._mark}": "1"}

    def watch(self, group: int | None) -> None:
        """Name the process group to end, None for none. Costs one small write."""
        stream = self._process.stdin
        assert stream is not None
        # the guard was killed: nothing to tell it; the next command starts without one
        with suppress(OSError):
            os.write(stream.fileno(), b"%d\n" % group if group else b"\n")

    def close(self) -> None:
        """End whatever still carries the mark, then the guard."""
        stream = self._process.stdin
        assert stream is not None
        if stream.closed:
            return
        with suppress(OSError):  # it was killed
            os.write(stream.fileno(), b"close\n")
        self._process.wait()
        stream.close()


class ChildWatch(Protocol):
    """Something to do repeatedly while a child runs. due: when next, on the monotonic clock."""

    @property
    def due(self) -> float:
        """The next time; infinity for never."""

    def look(self) -> None:
        """Do it, and be due later."""

    def ended(self) -> None:
        """The child has ended, or soon will have; it is about to be reaped."""


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
        # what a workload left behind, since the first process of a container inherits it
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    return usage


def end_all(processes: Sequence[subprocess.Popen[bytes]], grace_s: float) -> None:
    """End these children: TERM to each, KILL to those that are there after `grace_s` together."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + grace_s
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


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


_adopting = False


def adopt_orphans() -> None:
    """Become the parent of what a workload leaves behind, so that `end_orphans` finds it.

    A process that left its group and cleared its environment, and whose parent has ended, is a
    child of init otherwise. Call it only where one workload at a time is started, as in a worker.
    """
    # it takes a while to import, and --help needs none of it
    import ctypes

    global _adopting
    with suppress(AttributeError, OSError):  # only Linux has it
        _adopting = ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def own_children() -> frozenset[int]:
    """Return the children of this process, also those that it adopted."""
    children: set[int] = set()
    with suppress(OSError):  # there is no /proc
        for thread in proc.numbers("/proc/self/task"):
            with suppress(OSError):  # it has ended
                children.update(proc.children(os.getpid(), thread))
    return frozenset(children)


def end_orphans(known: Collection[int]) -> None:
    """KILL what a workload left behind: adopted children that are not `known` from before it."""
    deadline = time.monotonic() + ORPHANS_S
    while _adopting and time.monotonic() < deadline:
        # a workload has a session of its own; what an RQ job started in this one is not its orphan
        orphans = [pid for pid in own_children().difference(known) if _has_left_session(pid)]
        if not orphans:
            return
        for pid in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(POLL_S)  # then their own orphans are here


def _has_left_session(pid: int) -> bool:
    try:
        return os.getsid(pid) != os.getsid(0)
    except ProcessLookupError:  # it has been reaped
        return False


def wait_child(
    process: subprocess.Popen[bytes], deadline: float, *others: int, watch: ChildWatch | None = None
) -> bool:
    """Wait for the child's end, a descriptor of `others`, or `deadline`; whether it ended."""
    with end_handle(process) as handles:
        if handles:
            wait_ready([*handles, *others], deadline, watch)
            return exited(process)
    while not exited(process) and time.monotonic() < deadline:
        if wait_ready(others, min(deadline, time.monotonic() + POLL_S), watch):
            break
    return exited(process)


@contextmanager
def end_handle(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """A descriptor that is readable when the child has ended; none on systems without pidfd."""
    try:
        handles = [os.pidfd_open(process.pid)]
    except (AttributeError, OSError):
        handles = []
    try:
        yield handles
    finally:
        for handle in handles:
            os.close(handle)


def wait_ready(
    handles: Sequence[int], deadline: float, watch: ChildWatch | None = None
) -> list[int]:
    """Wait until one of the descriptors is readable; those that are, none at the deadline.

    deadline: on the monotonic clock, infinity for none. watch: looks when it is due meanwhile.
    """
    while True:
        due = min(deadline, watch.due) if watch else deadline
        left_s = None if due == float("inf") else max(0.0, due - time.monotonic())
        ready, _, _ = select.select(handles, [], [], left_s)
        if ready or watch is None or due == deadline:
            return ready
        watch.look()


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)

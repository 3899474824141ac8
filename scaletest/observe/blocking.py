"""What a thread of a child process does now: it can run, or is blocked, in a state, on an object.

The best source is the system call with its arguments, which names the descriptor. Where the kernel
or its security modules hide it (Yama, hidepid), the kernel function in which the thread sleeps
gives the state, and objects may be missing.
"""

import os
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from scaletest.model.activity import TOKENS, State
from scaletest.observe import wait_targets
from scaletest.observe.descriptors import MOST_DESCRIPTORS, Descriptors, open_descriptors, path_of
from scaletest.observe.doing import (
    LOCK_COMMANDS,
    OF_LETTERS,
    RUNNABLE,
    UNKNOWN,
    Doing,
    WaitKind,
    call_kinds,
    of_function,
)
from scaletest.observe.sockets import Sockets
from scaletest.processes import addresses, proc

_POLLING = re.compile(r"ep_poll|epoll|do_poll|do_sys_poll|do_select|core_sys_select|poll_schedule")
# The flag of a futex that no other process can share; nearly all have it.
_FUTEX_PRIVATE = 128
_HIGHEST_OF_32_BITS = 0xFFFFFFFF


class ThreadLook(NamedTuple):
    """A look at a thread. line: its system call as the kernel wrote it, b"" when unreadable."""

    line: bytes
    doing: Doing


class Blocking:
    """Looks at threads. denied: called with each kind of file that may not be read."""

    def __init__(
        self, sockets: Sockets | None = None, denied: Callable[[str], None] = lambda _: None
    ) -> None:
        self._descriptors = Descriptors(sockets or Sockets())
        self._calls = call_kinds()
        self.denied = denied

    def use_device(self, path: str) -> None:
        """Treat this file as the device of programs from now on, besides files known as devices."""
        self._descriptors.device = path

    def open(self, pid: int, tid: int) -> int:
        """Return a handle for `look`, which the caller closes.

        -1 where the kernel has no such file.
        """
        with suppress(OSError):
            if self._calls:
                return os.open(f"/proc/{pid}/task/{tid}/syscall", os.O_RDONLY | os.O_CLOEXEC)
        return -1

    def look(
        self, pid: int, tid: int, handle: int, before: ThreadLook | None = None
    ) -> ThreadLook | None:
        """Look at a thread; None when it is gone. Raises OSError.

        before: the last look, when the thread did not run since.
        """
        line = b""
        try:
            line = os.pread(handle, 512, 0) if handle >= 0 else b""
        except PermissionError:
            # the thread belongs to another user, as after a setuid program: try again next time
            self.denied("syscall")
        if before is not None and line == before.line != b"":
            return before
        thread = f"/proc/{pid}/task/{tid}"
        doing = self._by_call(pid, thread, line) if line else self._by_function(pid, thread)
        if not line and doing == UNKNOWN:
            self.denied("wchan")
        return None if doing is None else ThreadLook(line, doing)

    def _by_call(self, pid: int, thread: str, line: bytes) -> Doing | None:
        call = proc.parse_call(line)
        if call is None:
            return RUNNABLE
        if call.number >= 0:
            return self._in_call(pid, thread, call)
        if not call.stack:
            return None
        # blocked outside of any call: it waits for a page or is stopped
        doing = self._by_function(pid, thread)
        return Doing(State.MEMORY) if doing is not None and doing.state is State.DISK else doing

    def _in_call(self, pid: int, thread: str, call: proc.SystemCall) -> Doing | None:
        if call.stack <= _HIGHEST_OF_32_BITS:  # these have numbers of their own
            return self._by_function(pid, thread)
        kind, first = self._calls.get(call.number), call.arguments[0]
        match kind:
            case WaitKind.FCNTL if call.arguments[1] not in LOCK_COMMANDS:
                return self._descriptor(pid, thread, first)
            case WaitKind.DESCRIPTOR:
                return self._descriptor(pid, thread, first)
            case WaitKind.SEND if not call.arguments[4]:  # the socket is connected
                return self._descriptor(pid, thread, first)
            case WaitKind.POLL | WaitKind.SELECT | WaitKind.EPOLL | WaitKind.RING:
                return self._polled(pid, kind, call.arguments)
            case None:
                return self._by_function(pid, thread)
        return _in_named_call(pid, kind, call.arguments)

    def _by_function(self, pid: int, thread: str) -> Doing | None:
        status = proc.parse_status(proc.read(f"{thread}/stat"))
        if status is None or status.letter in "ZXx":
            return None
        if status.letter == "R":
            return RUNNABLE
        name = proc.read(f"{thread}/wchan").decode(errors="replace")
        if name in ("", "0"):
            return OF_LETTERS.get(status.letter, UNKNOWN)
        if _POLLING.search(name):
            return self._descriptors.most_active(pid, open_descriptors(pid))
        state = of_function(name)
        if state is State.FILE_LOCK:
            return Doing(state, _quietly(lambda: _locked_file(pid)))
        if state is State.NETWORK:
            peers = self._descriptors.most_active(pid, open_descriptors(pid))
            return peers if peers.state is State.NETWORK else Doing(state)
        return Doing(state) if state else OF_LETTERS.get(status.letter, UNKNOWN)

    def _descriptor(self, pid: int, thread: str, number: int) -> Doing | None:
        """Return the activity of a thread that is blocked on a descriptor, which decides the state.

        A named pipe looks like a file, so the kernel function is checked too.
        """
        doing = self._descriptors.target(pid, number)
        if doing.state is not State.DISK:
            return doing
        by_function = self._by_function(pid, thread)
        if by_function is None or by_function.state is None:
            return by_function
        if by_function.state is State.PIPE and doing.object:
            is_own = wait_targets.is_two_way(proc.read_text(f"/proc/{pid}/fdinfo/{number}"))
            return Doing(State.PIPE, doing.object + (TOKENS if is_own else ""))
        if by_function.state in (State.PIPE, State.MEMORY, State.DEVICE, State.NETWORK):
            return Doing(by_function.state, doing.object)
        return doing

    def _polled(self, pid: int, kind: WaitKind, arguments: Sequence[int]) -> Doing:
        """Return the state of the most important descriptor of a poll, or of a ring's requests."""
        try:
            match kind:
                case WaitKind.EPOLL:
                    numbers = wait_targets.parse_epoll(
                        proc.read_long_text(f"/proc/{pid}/fdinfo/{arguments[0]}")
                    )
                case WaitKind.POLL:
                    size = 8 * min(arguments[1], MOST_DESCRIPTORS)
                    numbers = wait_targets.parse_pollfds(_memory(pid, arguments[0], size))
                case WaitKind.RING:
                    ring = wait_targets.find_ring(proc.read_long_text(f"/proc/{pid}/maps"))
                    numbers = wait_targets.parse_ring(_memory(pid, ring, MOST_DESCRIPTORS * 64))
                    numbers = numbers or open_descriptors(pid)
                case _:
                    size = (min(arguments[0], 1024) + 63) // 64 * 8
                    selected: set[int] = set()
                    for address in filter(None, arguments[1:3]):
                        selected.update(wait_targets.parse_fd_set(_memory(pid, address, size)))
                    numbers = sorted(selected)
        except OSError:
            numbers = open_descriptors(pid)
        if not numbers:
            return Doing(State.SLEEP)
        doing = self._descriptors.most_active(pid, numbers)
        if kind is WaitKind.RING and doing.state is State.IDLE:  # unlike a poll it waits for files
            return self._descriptors.target(pid, numbers[0])
        return doing


def _in_named_call(pid: int, kind: WaitKind | State, arguments: Sequence[int]) -> Doing:
    """Return the activity of a thread in a call whose arguments name what it waits for."""
    match kind:
        case WaitKind.FLOCK | WaitKind.FCNTL:
            return Doing(State.FILE_LOCK, path_of(pid, arguments[0]))
        case WaitKind.FUTEX:
            if arguments[1] & _FUTEX_PRIVATE:
                return Doing(State.LOCK)
            return Doing(State.LOCK, _quietly(lambda: _mapped_file(pid, arguments[0])))
        case WaitKind.CONNECT | WaitKind.SEND:
            begin = 1 if kind is WaitKind.CONNECT else 4
            address = arguments[begin : begin + 2]
            return Doing(
                State.NETWORK, _quietly(lambda: addresses.parse_address(_memory(pid, *address)))
            )
        case WaitKind.SEMAPHORES:
            return Doing(State.LOCK, f"System V semaphores {arguments[0]}")
        case WaitKind.QUEUE:
            return Doing(State.PIPE, f"System V message queue {arguments[0]}")
        case WaitKind.SLEEP:
            return Doing(State.SLEEP, _quietly(lambda: _file_locked_by_others(pid)))
        case State():
            return Doing(kind)
    return UNKNOWN


def _memory(pid: int, address: int, size: int) -> bytes:
    """Return a process's memory. Raises OSError."""
    return proc.read(f"/proc/{pid}/mem", min(size, 4096), address) if address and size else b""


def _mapped_file(pid: int, address: int) -> str:
    """Return the shared file that is mapped at an address, such as that of a semaphore."""
    return wait_targets.find_mapped_file(proc.read_long_text(f"/proc/{pid}/maps"), address)


def _locked_file(pid: int) -> str:
    """Return the file whose lock a process waits for, by its inode."""
    inode = wait_targets.find_awaited_inode(proc.read_long_text("/proc/locks"), pid)
    for number in open_descriptors(pid)[:MOST_DESCRIPTORS] if inode else ():
        if wait_targets.parse_inode(proc.read_long_text(f"/proc/{pid}/fdinfo/{number}")) == inode:
            return path_of(pid, number)
    return ""


def _file_locked_by_others(pid: int) -> str:
    """Return the open file of a sleeping process that somebody else has locked; "" for none.

    So a program sleeps that tries again and again, as SQLite does. Locks of its own session, which
    a request is, do not keep it from anything: its parent may hold one for it.
    """
    files = {
        number: path
        for number in open_descriptors(pid)[:MOST_DESCRIPTORS]
        if number > 2 and (path := path_of(pid, number))
    }
    if not files:
        return ""
    holders = wait_targets.parse_lock_holders(proc.read_long_text("/proc/locks"))
    for number, path in files.items():
        status = os.stat(f"/proc/{pid}/fd/{number}")  # noqa: PTH116 - a path of /proc
        holder = holders.get(status.st_ino, pid) if stat.S_ISREG(status.st_mode) else pid
        if holder != pid and os.getsid(holder) != os.getsid(pid):
            return path
    return ""


def _quietly(look: Callable[[], str]) -> str:
    """Return the text that the function returns, "" where reading is forbidden."""
    try:
        return look()
    except (OSError, ValueError):
        return ""

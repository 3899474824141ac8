"""The processes of one request: what each did since the last look at them, and what it does now."""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from scaletest.model.activity import State
from scaletest.observe.blocking import Blocking, ThreadLook
from scaletest.observe.doing import Doing
from scaletest.processes import proc

# Threads beyond these are not looked at, so that a look stays cheap whatever a request starts. Each
# takes two files, and a process one more: half of the 1024 that a process usually may open.
MOST_THREADS = 256
# select() takes no higher descriptor.
MOST_HANDLE = 1024
_NEVER_RAN = proc.Schedule(0.0, 0.0, 0)
# A thread that was put on a CPU no more often between two looks was blocked once or twice, and not
# in many short waits.
FEW_SLICES = 4
# To end, a thread runs once, or once more when it is interrupted.
ENDING_SLICES = 2
# Where so many of a thread's short waits can be page faults that read from a disk, these are what
# it waited for.
FAULTING_PART = 0.5

# of its process, and its own
ThreadId = tuple[int, int]


class ThreadShare(NamedTuple):
    """Seconds that one thread ran and waited for a CPU since the last look."""

    run_s: float
    wait_s: float
    slices: int = 1  # how often it ran


NOTHING_RAN = ThreadShare(0.0, 0.0, 0)


class TreeLook(NamedTuple):
    """The processes at one moment."""

    doing: Doing  # what the most active thread does
    age_s: float  # of that thread's process, infinite for the first process
    shares: list[ThreadShare]  # of the threads that ran or waited since the last look
    threads: frozenset[ThreadId]  # all that live
    # what the most active thread waited for many times since the last look, where that is known
    short_waits: Doing | None = None
    # whether all other threads wait for a child to end, as in a script that runs one command after
    # the other: then the request does nothing else until this thread goes on or its process ends
    in_sequence: bool = False
    active_tid: int = 0  # of the most active thread


@dataclass(slots=True)
class _Thread:
    handle: int
    call_handle: int
    schedule: proc.Schedule
    line: bytes = b""
    last: ThreadLook | None = None
    children: list[int] = field(default_factory=list)
    # page faults that read from a disk, and slices, when they were compared last
    faults: int = 0
    compared_slices: int = 0
    is_faulting: bool = False
    # whether it may be one of a pool that has nothing to do
    is_spare: bool = False


@dataclass(slots=True)
class _Process:
    began_s: float
    threads: dict[int, _Thread] = field(default_factory=dict)
    # a pidfd, readable from the end of the process on; -1 for none
    end_handle: int = -1


class Tree:
    """A process and its descendants."""

    def __init__(
        self, root: int, blocking: Blocking, *, watch_ends: bool = False, serves: bool = False
    ) -> None:
        """watch_ends: keep a handle of each descendant that tells of its end.

        serves: the processes are a service. Of its threads those that were there when their process
        was met, wait for a lock and have not run since, are spare ones of a pool: they wait for no
        request.
        """
        self.root = root
        self._serves = serves
        self._watch_ends = watch_ends
        self._blocking = blocking
        self._processes: dict[int, _Process] = {}
        self._thread_count = 0
        # of processes that ended since the last look, up to their end
        self._ended_shares: list[ThreadShare] = []

    def is_unchanged(self) -> bool:
        """Return whether no thread ran since the last look, so that nothing can be new.

        Cheaper than a look.
        """
        has_threads = False
        try:
            for process in self._processes.values():
                for thread in process.threads.values():
                    if os.pread(thread.handle, 128, 0) != thread.line:
                        return False
                    has_threads = True
        except OSError:
            return False
        return has_threads

    def look(self) -> TreeLook | None:
        """Return what the processes did since the last look, and do now; None when none is left."""
        # look at the processes from the first one down to those that have no children
        shares = self._ended_shares
        self._ended_shares = []
        visited: set[int] = set()
        to_visit = [self.root]
        while to_visit:
            pid = to_visit.pop()
            may_visit = pid in self._processes or self._thread_count < MOST_THREADS
            if pid in visited or not may_visit:
                continue
            visited.add(pid)
            try:
                to_visit += self._visit(pid, shares)
            except OSError as error:  # it is gone, or hidden
                if isinstance(error, PermissionError):
                    self._blocking.denied("stat")
                self._forget(pid)
        for pid in self._processes.keys() - visited:
            self._forget(pid)

        # the most active of all threads says what the request does
        doings: dict[ThreadId, Doing] = {}
        for pid, process in self._processes.items():
            for tid, thread in process.threads.items():
                if thread.last is not None:
                    doings[pid, tid] = thread.last.doing
        if not doings:
            return None
        most_active = min(doings, key=lambda thread_id: doings[thread_id].rank)
        pid, tid = most_active
        process = self._processes[pid]
        others = [doing for thread_id, doing in doings.items() if thread_id != most_active]
        return TreeLook(
            doing=doings[most_active],
            age_s=max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - process.began_s),
            shares=shares,
            threads=frozenset(doings),
            short_waits=Doing(State.MEMORY) if process.threads[tid].is_faulting else None,
            in_sequence=all(doing.state is State.CHILD for doing in others),
            active_tid=tid,
        )

    @property
    def end_handles(self) -> list[int]:
        """Handles that are readable when the process of one of them has ended."""
        handles = (process.end_handle for process in self._processes.values())
        return [handle for handle in handles if 0 <= handle < MOST_HANDLE]

    def note_ends(self, ended: Collection[int]) -> bool:
        """Take in that the processes of these handles have ended, and close the handles.

        Return whether they may have done the same from the last look to the end. Until its parent
        has waited for it, a process tells how long it ran, and how often.
        """
        for pid, process in self._processes.items():
            if process.end_handle not in ended:
                continue
            os.close(process.end_handle)
            process.end_handle = -1
            for tid, thread in process.threads.items():
                with suppress(OSError):
                    self._look_at(pid, tid, thread, self._ended_shares)
        return all(share.slices <= ENDING_SLICES for share in self._ended_shares)

    @property
    def processes(self) -> Collection[int]:
        """Processes of the last look."""
        return self._processes.keys()

    def look_at_end(self) -> ThreadShare:
        """Return how long the first process ran and waited for a CPU since the last look.

        It is not reaped yet.
        """
        process = self._processes.get(self.root)
        thread = process.threads.get(self.root) if process else None
        try:
            path = f"/proc/{self.root}/schedstat"
            line = os.pread(thread.handle, 128, 0) if thread else proc.read(path, 128)
        except OSError:
            return NOTHING_RAN
        last = proc.parse_schedule(line)
        if last is None:
            return NOTHING_RAN
        before = thread.schedule if thread else _NEVER_RAN
        return ThreadShare(
            max(0.0, last.run_s - before.run_s), max(0.0, last.wait_s - before.wait_s)
        )

    def close(self) -> None:
        """Close all files."""
        for pid in list(self._processes):
            self._forget(pid)

    def _visit(self, pid: int, shares: list[ThreadShare]) -> Iterator[int]:
        """Look at a process's threads, and return the ids of its children. Raises OSError."""
        process = self._processes.get(pid)
        is_new = process is None
        if process is None:
            process = self._processes[pid] = self._meet(pid)
        if is_new or self._look_at_known(pid, process, shares):
            # A folder and its parent are links to it, and a folder for each thread; a list costs
            # several times as much.
            folder = f"/proc/{pid}/task"
            is_alone = os.stat(folder).st_nlink == 3  # noqa: PTH116 - a path of /proc
            for tid in [pid] if is_alone else proc.list_numbers(folder):
                if tid in process.threads or self._thread_count >= MOST_THREADS:
                    continue
                try:
                    handle = os.open(f"{folder}/{tid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
                except OSError:
                    continue
                process.threads[tid] = _Thread(
                    handle,
                    self._blocking.open(pid, tid),
                    _NEVER_RAN,
                    is_spare=self._serves and is_new,
                )
                self._thread_count += 1
                try:
                    self._look_at(pid, tid, process.threads[tid], shares)
                except OSError:
                    self._drop(process, tid)
        return chain.from_iterable(thread.children for thread in process.threads.values())

    def _meet(self, pid: int) -> _Process:
        """Return a process that was not looked at before. Raises OSError."""
        if pid == self.root:
            return _Process(began_s=float("-inf"))  # it lives as long as the request
        status = proc.parse_status(proc.read(f"/proc/{pid}/stat"))
        process = _Process(began_s=status.began_s if status else 0.0)
        if self._watch_ends:
            with suppress(OSError):
                process.end_handle = os.pidfd_open(pid)
        return process

    def _look_at_known(self, pid: int, process: _Process, shares: list[ThreadShare]) -> bool:
        """Look at known threads; whether any of them ran, and so may have started others."""
        has_run = has_ended = False
        for tid, thread in list(process.threads.items()):
            try:
                has_run |= self._look_at(pid, tid, thread, shares)
            except OSError:
                self._drop(process, tid)
                has_ended = True
        if has_ended:  # another thread, which need not have run, is the parent of its children now
            for tid, thread in process.threads.items():
                thread.children = proc.read_children(pid, tid)
        return has_run or has_ended

    def _look_at(self, pid: int, tid: int, thread: _Thread, shares: list[ThreadShare]) -> bool:
        """Look at one thread; whether it ran. Raises OSError when it is gone or hidden."""
        thread.line = os.pread(thread.handle, 128, 0)
        schedule = proc.parse_schedule(thread.line) or thread.schedule
        ran = schedule != thread.schedule
        before, waited_s = thread.last, schedule.wait_s - thread.schedule.wait_s
        if ran:
            # less than before: another thread, which called exec, has this one's id now
            run_s = max(0.0, schedule.run_s - thread.schedule.run_s)
            slices = max(1, schedule.slices - thread.schedule.slices)
            shares.append(ThreadShare(run_s, max(0.0, waited_s), slices))
            status = proc.read_status(f"/proc/{pid}/task/{tid}") if slices > FEW_SLICES else None
            thread.is_faulting = False
            if status is not None:
                # whether most of its waits since the last comparison were page faults that read
                # from a disk
                waits = schedule.slices - thread.compared_slices
                thread.is_faulting = status.major_faults - thread.faults >= FAULTING_PART * waits
                thread.faults, thread.compared_slices = status.major_faults, schedule.slices
        thread.schedule = schedule
        thread.is_spare = thread.is_spare and (before is None or not ran)
        thread.last = self._blocking.look(pid, tid, thread.call_handle, None if ran else before)
        if thread.last is None:
            raise ProcessLookupError(tid)
        if thread.is_spare and thread.last.doing.state is State.LOCK:
            thread.last = thread.last._replace(doing=Doing(State.IDLE))
        if ran or before is None:
            thread.children = proc.read_children(pid, tid)
        return ran or before is None

    def _drop(self, process: _Process, tid: int) -> None:
        thread = process.threads.pop(tid)
        os.close(thread.handle)
        if thread.call_handle >= 0:
            os.close(thread.call_handle)
        self._thread_count -= 1

    def _forget(self, pid: int) -> None:
        process = self._processes.pop(pid, _Process(0.0))
        if process.end_handle >= 0:
            os.close(process.end_handle)
        for tid in list(process.threads):
            self._drop(process, tid)

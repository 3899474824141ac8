"""Trees of odd programs: threads and processes that come, go and take over."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hack.benchmarks.causes_programs import python
from scaletest.model import State
from scaletest.system import proc
from scaletest.system.blocking import Blocking, Doing
from scaletest.system.tree import Tree
from tests.integration.sampling import (
    running,
)


def test_the_child_of_a_thread_that_ended_is_still_seen() -> None:
    code = """
import os, subprocess, threading
wait, end = os.pipe()
def start():
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, threading.get_native_id(), end, flush=True)
    os.read(wait, 1)
threading.Thread(target=start).start()
os.read(os.pipe()[0], 1)
"""
    with subprocess.Popen(
        python(code), stdout=subprocess.PIPE, start_new_session=True, text=True
    ) as process:
        child, thread, end = process.stdout.readline().split()
        tree = Tree(process.pid, Blocking())
        try:
            first = tree.look()
            assert first is not None and (int(child), int(child)) in first.threads
            Path(f"/proc/{process.pid}/fd/{end}").write_bytes(b"x")
            while Path(f"/proc/{process.pid}/task/{thread}").exists():
                pass
            look = tree.look()
            assert look is not None and (int(child), int(child)) in look.threads
        finally:
            tree.close()
            os.killpg(process.pid, signal.SIGKILL)


def test_the_cpu_time_of_a_thread_that_calls_exec_is_not_negative() -> None:
    code = """
import os, sys, threading
def replace():
    os.read(0, 1)
    os.execv("/bin/sh", ["sh", "-c", "echo replaced; sleep 60"])
sum(range(3_000_000))
threading.Thread(target=replace).start()
print("ready", flush=True)
os.read(os.pipe()[0], 1)
"""
    with running(*python(code)) as process:
        tree = Tree(process.pid, Blocking())
        tree.look()
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.stdout.readline() == b"replaced\n"
        look = tree.look()
        tree.close()
    assert look is not None and all(share.run_s >= 0 for share in look.shares)


def test_processes_over_the_limit_of_threads_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaletest.system.tree.MOST_THREADS", 3)
    looked_at: list[str] = []

    def numbers(path: str, listed: Callable[[str], list[int]] = proc.numbers) -> list[int]:
        looked_at.append(path)
        return listed(path)

    monkeypatch.setattr(proc, "numbers", numbers)
    with running(
        "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; echo ready; wait"
    ) as process:
        tree = Tree(process.pid, Blocking())
        looks = [tree.look(), tree.look()]
        tree.close()
    assert all(look is not None and len(look.threads) == 3 for look in looks)
    assert len([path for path in looked_at if path.endswith("/task")]) <= 4


def test_system_calls_of_32_bit_programs_are_not_read_as_those_of_64_bit(tmp_path: Path) -> None:
    line = tmp_path / "syscall"
    # nanosleep of i386 has the number of sync on x86_64
    line.write_text("162 0xffd0a0b8 0x0 0x0 0x0 0x0 0x0 0xffd0a080 0xf7f0b549\n")
    with running("sh", "-c", "echo ready; exec sleep 60") as process, line.open("rb") as file:
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
            pass
        while proc.parse_call(proc.read(f"/proc/{process.pid}/syscall")) is None:
            pass
        activity = Blocking().look(process.pid, process.pid, file.fileno())
    assert activity is not None and activity.doing.state is State.SLEEP


def test_private_locks_need_no_list_of_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> str:
        raise AssertionError(path)

    monkeypatch.setattr(proc, "read_all", refused)
    code = """
import threading
lock = threading.Lock()
lock.acquire()
print("ready", flush=True)
lock.acquire()
"""
    with running(*python(code)) as process:
        blocking = Blocking()
        handle = blocking.open(process.pid, process.pid)
        while (
            activity := blocking.look(process.pid, process.pid, handle)
        ) is None or activity.doing.state is None:
            pass
        os.close(handle)
    assert activity.doing == Doing(State.LOCK)


def test_a_thread_that_has_ended_has_no_activity() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        blocking = Blocking()
        handle = blocking.open(process.pid, process.pid)
        # a zombie
        assert blocking.look(process.pid, process.pid, handle) is None
    with pytest.raises(OSError):
        blocking.look(process.pid, process.pid, handle)
    if handle >= 0:  # only root may open that of a zombie
        os.close(handle)

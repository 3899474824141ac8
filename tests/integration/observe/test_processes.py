"""Trees of odd programs: threads and processes that come, go and take over; peers of their sockets,
found without a duplicate of the descriptor.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hack.benchmarks import causes_injectors as injectors
from hack.benchmarks.causes_programs import python
from scaletest.model import State
from scaletest.observe.blocking import Blocking
from scaletest.observe.doing import Doing
from scaletest.observe.socket_diagnosis import tcp_peers
from scaletest.observe.sockets import CLIENTS, Sockets, server_processes
from scaletest.observe.tree import Tree
from scaletest.processes import addresses, proc
from tests.conftest import eventually
from tests.integration.sampling import LONG_S, running


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
    monkeypatch.setattr("scaletest.observe.tree.MOST_THREADS", 3)
    looked_at: list[str] = []

    def numbers(path: str, listed: Callable[[str], list[int]] = proc.list_numbers) -> list[int]:
        looked_at.append(path)
        return listed(path)

    monkeypatch.setattr(proc, "list_numbers", numbers)
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

    monkeypatch.setattr(proc, "read_long_text", refused)
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


def test_peers_are_found_by_the_tables_of_the_kernel(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(path)
        local.listen()
        with (
            socket.create_connection(server.getsockname()) as tcp,
            socket.socket(socket.AF_UNIX) as unix,
        ):
            unix.connect(path)
            near, far = socket.socketpair()
            with near, far, local.accept()[0]:
                for sockets in (Sockets(duplicate=False), Sockets()):
                    names = [_peer(sockets, each) for each in (tcp, unix, near)]
                    assert names == [f"127.0.0.1:{server.getsockname()[1]}", path, ""]


def _peer(sockets: Sockets, connection: socket.socket) -> str | None:
    number = connection.fileno()
    inode = int(proc.read_link(f"/proc/self/fd/{number}").partition("[")[2].rstrip("]"))
    peer = sockets.peer(os.getpid(), number, inode)
    return None if peer is None else peer.name


def test_socket_tables_are_read_at_a_rate_bounded_by_their_cost() -> None:
    now = 0.0
    sockets = Sockets(duplicate=False, clock=lambda: now)
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(server.getsockname()))

        first = connected()
        assert _peer(sockets, first)
        # what one list has not, another may have
        assert _peer(sockets, connected())
        third = connected()
        assert _peer(sockets, third) is None and _peer(sockets, first)
        now = 1e6
        assert _peer(sockets, third)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernels_diagnosis_says_what_its_tables_say(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        inode = os.fstat(client.fileno()).st_ino
        table = f"/proc/self/net/{'tcp6' if ':' in host else 'tcp'}"
        expected = (
            inode,
            addresses.host_and_port(*server.getsockname()[:2]),
            client.getsockname()[1],
            False,
        )
        # sockets of other programs come and go while a table is read, which may leave others out
        eventually(lambda: expected in list(tcp_peers()))
        eventually(lambda: expected in list(addresses.parse_peers(proc.read_long_text(table))))


@pytest.mark.parametrize("duplicate", [True, False])
def test_clients_of_a_service_are_told_from_services_that_it_calls(duplicate: bool) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as service,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        sockets = Sockets(duplicate=duplicate, served=service.getsockname()[1])
        asks = socket.create_connection(service.getsockname())
        with (
            asks,
            service.accept()[0] as client,
            socket.create_connection(other.getsockname()) as asked,
        ):
            names = [_peer(sockets, each) for each in (client, asked)]
            assert names == [CLIENTS, f"127.0.0.1:{other.getsockname()[1]}"]


SERVICE = """
import select, socket
service = socket.create_server(("127.0.0.1", 0))
print("ready", service.getsockname()[1], sep="\\n", flush=True)
connection, _ = service.accept()
asked = socket.create_connection(("127.0.0.1", int(connection.recv(9))))
select.select([connection, service, asked], [], [])
select.select([connection, service], [], [])
"""


def test_a_service_that_calls_no_other_waits_for_its_clients() -> None:
    # given a service that has clients and asks another one, until that answers
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        running(sys.executable, "-c", SERVICE) as process,
    ):
        port = int(process.stdout.readline())
        blocking = Blocking(Sockets(served=port))
        handle = blocking.open(process.pid, process.pid)

        def object_is(name: str) -> bool:
            activity = blocking.look(process.pid, process.pid, handle)
            return activity is not None and activity.doing.object == name

        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"%d" % other.getsockname()[1])
            with other.accept()[0] as answers:
                eventually(lambda: object_is(f"127.0.0.1:{other.getsockname()[1]}"))
                answers.sendall(b"x")
                eventually(lambda: object_is(CLIENTS))
        os.close(handle)


def test_threads_that_come_with_requests_wait_for_a_lock(tmp_path: Path) -> None:
    # given a service with a thread for each request, of which it serves two at a time
    with injectors.pool(tmp_path, 10.0 * LONG_S) as injected, ExitStack() as stack:
        address = urlsplit(injected.service)
        (pid,) = server_processes(address.port or 0)
        tree = Tree(pid, Blocking(Sockets(served=address.port or 0)), serves=True)
        stack.callback(tree.close)

        def state() -> State | None:
            look = tree.look()
            assert look is not None
            return look.doing.state

        eventually(lambda: state() is State.IDLE)
        for _ in range(3):
            client = socket.create_connection((address.hostname, address.port))
            stack.enter_context(client).sendall(b"GET / HTTP/1.0\r\n\r\n")
        eventually(lambda: state() is State.LOCK)


def test_descriptors_that_are_not_sockets_leave_no_open_file() -> None:
    near, far = os.pipe()
    sockets = Sockets()
    counts = set()
    for _ in range(3):
        assert sockets.peer(os.getpid(), near, 1) is None
        counts.add(len(os.listdir("/proc/self/fd")))  # noqa: PTH208
    os.close(near)
    os.close(far)
    assert len(counts) == 1


def test_the_cache_of_unused_peers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    inodes = iter(range(1, 10**9))
    rows = [f"{number}: 0100007F:0001 0100007F:0002 01 0 0 0 0 0" for number in range(1000)]

    def table(_: str) -> str:
        return "\n".join(["titles", *(f"{row} {next(inodes)}" for row in rows)])

    monkeypatch.setattr(proc, "read_long_text", table)
    clock = iter(range(0, 10**12, 10**6))
    sockets = Sockets(duplicate=False, clock=lambda: float(next(clock)))
    for _ in range(20):
        assert sockets.peer(os.getpid(), 0, 0) is None
    assert len(sockets._cached) <= 2 * 4096

"""Peers of sockets are found without a duplicate of the descriptor."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from scaletest.model import State
from scaletest.system import proc
from scaletest.system.blocking import Blocking
from scaletest.system.sockets import CLIENTS, Sockets, tcp_peers
from tests.conftest import eventually
from tests.integration.sampling import (
    running,
)


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
    inode = int(proc.link(f"/proc/self/fd/{number}").partition("[")[2].rstrip("]"))
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
        table = proc.read_all(f"/proc/self/net/{'tcp6' if ':' in host else 'tcp'}")
        expected = (inode, proc.place(*server.getsockname()[:2]), client.getsockname()[1], False)
        for connections in (tcp_peers(), proc.parse_peers(table)):
            assert expected in list(connections)


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
            return activity is not None and activity.doing == (State.NETWORK, name)

        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"%d" % other.getsockname()[1])
            with other.accept()[0] as answers:
                eventually(lambda: object_is(f"127.0.0.1:{other.getsockname()[1]}"))
                answers.sendall(b"x")
                eventually(lambda: object_is(CLIENTS))
        os.close(handle)


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

    monkeypatch.setattr(proc, "read_all", table)
    clock = iter(range(0, 10**12, 10**6))
    sockets = Sockets(duplicate=False, clock=lambda: float(next(clock)))
    for _ in range(20):
        assert sockets.peer(os.getpid(), 0, 0) is None
    assert len(sockets._known) <= 2 * 4096

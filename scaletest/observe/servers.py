"""Which processes of this machine serve a port."""

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import suppress

from scaletest.observe.sockets import SOCKET
from scaletest.processes import addresses, proc


def is_here(host: str) -> bool:
    """Return whether a name or address is one of this machine."""
    with suppress(OSError, ValueError, UnicodeError):
        for family, _, _, _, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
            if ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback:
                return True
            with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.bind((place[0], 0))  # only an address of this machine can be had
                return True
    return False


def servers(port: int) -> list[int]:
    """Return the processes that listen on a port, without us and without children of such
    processes.
    """
    wanted = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for connection in addresses.parse_peers(proc.read_all(f"/proc/self/net/{name}")):
                if connection.listening and connection.own_port == port:
                    wanted.add(connection.inode)
    if not wanted:
        return []
    holders = {
        pid
        for pid in proc.numbers("/proc")
        if pid != os.getpid() and wanted & set(_socket_inodes(pid))
    }
    statuses = {pid: proc.status_of(f"/proc/{pid}") for pid in holders}
    return sorted(
        pid for pid, status in statuses.items() if status is None or status.parent not in holders
    )


def _socket_inodes(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                match = SOCKET.fullmatch(proc.link(descriptor.path))
                if match:
                    yield int(match[1])

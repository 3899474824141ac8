"""Peers of other processes' sockets, and who serves a port, as far as we may look.

A peer is found by a duplicate of the descriptor, else by what the kernel lists. A duplicate costs
microseconds; containers forbid it. The kernel's diagnosis of all connections costs a fifth of a
millisecond, the tables of /proc/PID/net milliseconds, however few sockets there are: each is read
no more often than a thousandth of a core allows.
"""

import ctypes
import errno
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from scaletest.observe.socket_diagnosis import tcp_peers, unix_peer
from scaletest.processes import addresses, proc

# What the link of a socket's descriptor reads.
SOCKET = re.compile(r"socket:\[(\d+)\]")
_LIBRARY = ctypes.CDLL(None, use_errno=True)
_PIDFD_GETFD = 438
_MOST_KNOWN = 4096
# Part of a core that reading each list may take.
LISTS_SHARE = 0.001
_INTERNET = (socket.AF_INET, socket.AF_INET6)
# The peer of a service that waits for whoever may ask it.
CLIENTS = "waiting for requests"


class SocketPeer(NamedTuple):
    """The other end of a socket."""

    name: str = ""
    listening: bool = False  # there is none, the socket waits for clients
    unnamed: bool = False


class Sockets:
    """Finds peers and caches them by the socket's inode, which is unique while it lives."""

    def __init__(
        self,
        *,
        duplicate: bool = True,
        clock: Callable[[], float] = time.monotonic,
        served: int = 0,
    ) -> None:
        """duplicate: whether to try the cheap way.

        served: the TCP port on which the processes themselves serve: the peer of its connections,
        and of sockets that listen, is CLIENTS; 0 for none.
        """
        self._duplicate = duplicate and socket.getdefaulttimeout() is None
        self._clock = clock
        self._served_port = served
        self._cached: dict[int, SocketPeer] = {}
        # source -> when it may be read again
        self._may_read_at_s: dict[str, float] = {}

    def peer(self, pid: int, descriptor: int, inode: int) -> SocketPeer | None:
        """Return the peer of a process's socket; None while it is not known."""
        cached = self._cached.get(inode)
        if cached is not None:
            return cached
        if len(self._cached) >= _MOST_KNOWN:
            self._cached.clear()
        peer = self._by_duplicate(pid, descriptor) if self._duplicate else None
        if peer is None and not self._duplicate:
            with suppress(OSError, struct.error):
                name = unix_peer(inode)
                peer = None if name is None else SocketPeer(name, unnamed=not name)
            peer = (
                peer
                or self._listed("connections", inode, lambda: self._named(tcp_peers()))
                or self._listed("tables", inode, lambda: self._of_tables(pid))
            )
        if peer is not None and (peer.name or peer.listening or peer.unnamed):
            self._cached[inode] = peer
        return peer

    def _by_duplicate(self, pid: int, descriptor: int) -> SocketPeer | None:
        try:
            process = os.pidfd_open(pid)
            try:
                copy: int = _LIBRARY.syscall(_PIDFD_GETFD, process, descriptor, 0)
                if copy < 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            finally:
                os.close(process)
        except OSError as error:
            if isinstance(error, PermissionError) or error.errno == errno.ENOSYS:
                self._duplicate = False
            return None
        try:
            connection = socket.socket(fileno=copy)
        except OSError:  # the program has opened something else under this number meanwhile
            os.close(copy)
            return None
        with connection:
            peer = _peer_of(connection)
            is_ours = peer.listening
            if self._served_port and peer.name and connection.family in _INTERNET:
                is_ours = connection.getsockname()[1] == self._served_port
            return SocketPeer(CLIENTS) if self._served_port and is_ours else peer

    def _listed(
        self, source: str, inode: int, peers: Callable[[], Iterable[tuple[int, str]]]
    ) -> SocketPeer | None:
        """Return the peer by a list of all, when that may be read again."""
        if self._clock() < self._may_read_at_s.get(source, 0.0):
            return None
        began_s = time.thread_time()
        with suppress(OSError, struct.error):
            self._cached.update({number: SocketPeer(peer) for number, peer in peers() if peer})
        self._may_read_at_s[source] = self._clock() + (time.thread_time() - began_s) / LISTS_SHARE
        return self._cached.get(inode)

    def _of_tables(self, pid: int) -> Iterator[tuple[int, str]]:
        for name in ("tcp", "tcp6", "udp", "udp6"):
            with suppress(OSError):
                yield from self._named(
                    addresses.parse_peers(proc.read_long_text(f"/proc/{pid}/net/{name}"))
                )

    def _named(self, connections: Iterable[addresses.Connection]) -> Iterator[tuple[int, str]]:
        """Yield inode and peer of each connection."""
        for inode, peer, port, _ in connections:
            yield inode, CLIENTS if peer and port == self._served_port else peer


def _peer_of(connection: socket.socket) -> SocketPeer:
    try:
        address = connection.getpeername()
    except OSError:  # it is not connected
        with suppress(OSError):
            return SocketPeer(
                listening=bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
            )
        return SocketPeer()
    if connection.family in _INTERNET:
        return SocketPeer(addresses.host_and_port(address[0], address[1]))
    if connection.family != socket.AF_UNIX:
        return SocketPeer()
    name = addresses.unix_name(address if isinstance(address, bytes) else os.fsencode(address))
    return SocketPeer(name, unnamed=not name)


def is_here(host: str) -> bool:
    """Return whether a name or address is one of this machine."""
    with suppress(OSError, ValueError, UnicodeError):
        for family, _, _, _, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
            with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.bind((place[0], 0))  # only an address of this machine can be had
                return True
    return False


def server_processes(port: int) -> list[int]:
    """Return the processes that listen on a port, without us and without children of such."""
    wanted = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for connection in addresses.parse_peers(proc.read_long_text(f"/proc/self/net/{name}")):
                if connection.listening and connection.own_port == port:
                    wanted.add(connection.inode)
    if not wanted:
        return []
    holders = {
        pid
        for pid in proc.list_numbers("/proc")
        if pid != os.getpid() and wanted & set(_socket_inodes(pid))
    }
    statuses = {pid: proc.read_status(f"/proc/{pid}") for pid in holders}
    return sorted(
        pid for pid, status in statuses.items() if status is None or status.parent not in holders
    )


def _socket_inodes(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            match = SOCKET.fullmatch(proc.read_link(descriptor.path))
            if match:
                yield int(match[1])

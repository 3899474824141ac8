"""Peers of other processes' sockets: by a duplicate of the descriptor, else by what the kernel
lists.

A duplicate costs microseconds; containers forbid it. The kernel's diagnosis of all connections
costs a fifth of a millisecond, the tables of /proc/PID/net milliseconds, however few sockets there
are: each is read no more often than a thousandth of a core allows.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from scaletest.system import proc
from scaletest.system.proc import Connection
from scaletest.system.socket_diagnosis import tcp_peers, unix_peer

_PIDFD_GETFD = 438
_MOST_KNOWN = 4096
# Part of a core that reading each list may take.
LISTS_SHARE = 0.001
_TABLES = ("tcp", "tcp6", "udp", "udp6")
# The peer of a service that waits for whoever may ask it.
CLIENTS = "waiting for requests"


class SocketPeer(NamedTuple):
    """The other end of a socket. listening: there is none, the socket waits for clients."""

    name: str = ""
    listening: bool = False
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
        """duplicate: whether to try the cheap way. served: the TCP port on which the processes
        themselves serve: the peer of its connections, and of sockets that listen, is CLIENTS; 0 for
        none.
        """
        self._duplicate = duplicate and socket.getdefaulttimeout() is None
        self._clock = clock
        self._served = served
        self._known: dict[int, SocketPeer] = {}
        # source -> when it may be read again
        self._after: dict[str, float] = {}

    def peer(self, pid: int, descriptor: int, inode: int) -> SocketPeer | None:
        """The peer of a process's socket; None while it is not known."""
        known = self._known.get(inode)
        if known is not None:
            return known
        peer = self._by_duplicate(pid, descriptor) if self._duplicate else None
        if peer is None and not self._duplicate:
            peer = _unix(inode) or self._listed("connections", inode, self._connections)
            peer = peer or self._listed("tables", inode, lambda: self._of_tables(pid))
        if peer is not None and (peer.name or peer.listening or peer.unnamed):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[inode] = peer
        return peer

    def _by_duplicate(self, pid: int, descriptor: int) -> SocketPeer | None:
        try:
            copy = _copy(pid, descriptor)
        except PermissionError:
            self._duplicate = False
            return None
        except OSError as error:
            if error.errno == errno.ENOSYS:
                self._duplicate = False
            return None
        try:
            connection = socket.socket(fileno=copy)
        except OSError:  # the program has opened something else under this number meanwhile
            os.close(copy)
            return None
        with connection:
            return self._describe(connection)

    def _describe(self, connection: socket.socket) -> SocketPeer:
        peer = _peer_of(connection)
        if not self._served:
            return peer
        serves = bool(peer.name) and connection.family in (socket.AF_INET, socket.AF_INET6)
        if peer.listening or (serves and connection.getsockname()[1] == self._served):
            return SocketPeer(CLIENTS)
        return peer

    def _listed(
        self, source: str, inode: int, peers: Callable[[], Iterable[tuple[int, str]]]
    ) -> SocketPeer | None:
        """The peer by a list of all, when that may be read again."""
        if self._clock() < self._after.get(source, 0.0):
            return None
        began = time.thread_time()
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        with suppress(OSError, struct.error):
            self._known.update({number: SocketPeer(peer) for number, peer in peers() if peer})
        self._after[source] = self._clock() + (time.thread_time() - began) / LISTS_SHARE
        return self._known.get(inode)

    def _connections(self) -> Iterator[tuple[int, str]]:
        return self._named(tcp_peers())

    def _of_tables(self, pid: int) -> Iterator[tuple[int, str]]:
        for name in _TABLES:
            try:
                text = proc.read_all(f"/proc/{pid}/net/{name}")
            except OSError:
                continue
            yield from self._named(proc.parse_peers(text))

    def _named(self, connections: Iterable[Connection]) -> Iterator[tuple[int, str]]:
        """Inode and peer of each."""
        for inode, peer, port in connections:
            yield inode, CLIENTS if peer and port == self._served else peer


def _unix(inode: int) -> SocketPeer | None:
    try:
        name = unix_peer(inode)
    except (OSError, struct.error):
        return None
    if name is None:
        return None
    return SocketPeer(name, unnamed=not name)


def _copy(pid: int, descriptor: int) -> int:
    """A process's descriptor in this process. Raises OSError."""
    process = os.pidfd_open(pid)
    try:
        copy: int = _library().syscall(_PIDFD_GETFD, process, descriptor, 0)
        if copy < 0:
            number = _errno()
            raise OSError(number, os.strerror(number))
        return copy
    finally:
        os.close(process)


@cache
def _library() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _errno() -> int:
    import ctypes

    return ctypes.get_errno()


def _peer_of(connection: socket.socket) -> SocketPeer:
    try:
        address = connection.getpeername()
    except OSError:
        return SocketPeer(listening=_listens(connection))
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        return SocketPeer(proc.place(address[0], address[1]))
    if connection.family != socket.AF_UNIX:
        return SocketPeer()
    name = proc.unix_name(address if isinstance(address, bytes) else os.fsencode(address))
    return SocketPeer(name, unnamed=not name)


def _listens(connection: socket.socket) -> bool:
    try:
        return bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False

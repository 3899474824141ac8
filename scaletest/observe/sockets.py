"""Peers of other processes' sockets, and which processes serve a port, as far as we may look.

A peer is found by a duplicate of the descriptor, else by what the kernel lists. A duplicate costs
microseconds; containers forbid it. The kernel's diagnosis of all connections costs a fifth of a
millisecond, the tables of /proc/PID/net milliseconds, however few sockets there are: each is read
no more often than a thousandth of a core allows.

The kernel's socket diagnosis answers everybody about the sockets of their own network. It names the
peer of a unix socket, and lists connections at a tenth of what reading /proc/net/tcp costs.
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from scaletest.processes import proc

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _DUMP = 4, 20, 0x001, 0x300
_ERROR, _DONE = 2, 3
_SHOW_NAME, _SHOW_PEER = 1, 4
_NAME, _PEER = 0, 2
# established, and half closed by the peer
_CONNECTED = 1 << 1 | 1 << 8
_PATIENCE_S = 0.2
_ANY_COOKIE = 0xFFFFFFFF


def unix_peer(inode: int) -> str | None:
    """The path of a unix socket's peer, "" for one without a name; None for other sockets, and
    before it is accepted.

    Raises OSError where the kernel does not answer.
    """
    with _link() as link:
        peer = _attributes(link, inode, _SHOW_PEER).get(_PEER)
        (other,) = struct.unpack("=I", peer[:4]) if peer else (0,)
        names = _attributes(link, other, _SHOW_NAME) if other else None
        return None if names is None else proc.unix_name(names.get(_NAME, b""))


def tcp_peers() -> Iterator[proc.Connection]:
    """Every TCP connection of this network. Raises OSError where the kernel does not answer."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with _link() as link:
            request = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 0, 0, _CONNECTED)
            for message in _answers(link, request, _REQUEST | _DUMP):
                connection = parse_connection(message)
                # the kernel also lists connections that belong to no process any more
                if connection.inode:
                    yield connection


def parse_connection(message: bytes) -> proc.Connection:
    """One struct inet_diag_msg. Raises struct.error."""
    (family,) = struct.unpack_from("=B", message)
    own_port, port = struct.unpack_from("!HH", message, 4)
    address = message[24 : 24 + (16 if family == socket.AF_INET6 else 4)]
    (inode,) = struct.unpack_from("=I", message, 68)
    return proc.Connection(inode, proc.place(socket.inet_ntop(family, address), port), own_port)


def _link() -> socket.socket:
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
    link.settimeout(_PATIENCE_S)
    return link


def _answers(link: socket.socket, request: bytes, flags: int) -> Iterator[bytes]:
    """The messages that answer a request, without their headers. Raises OSError."""
    link.send(struct.pack("=IHHII", 16 + len(request), _BY_FAMILY, flags, 0, 0) + request)
    while True:
        data = link.recv(65536)
        at = 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind == _DONE or length < 16:
                return
            if kind == _ERROR:
                (code,) = struct.unpack_from("=i", data, at + 16)
                raise OSError(-code, "the kernel refuses to tell of its sockets")
            yield data[at + 16 : at + length]
            at += (length + 3) & ~3
        if not flags & _DUMP:
            return


def _attributes(link: socket.socket, inode: int, show: int) -> dict[int, bytes]:
    """Attributes by number of the unix socket with this inode. OSError without such a socket."""
    fields = (0xFFFFFFFF, inode & 0xFFFFFFFF, show, _ANY_COOKIE, _ANY_COOKIE)
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, *fields)
    attributes: dict[int, bytes] = {}
    for message in _answers(link, request, _REQUEST):
        at = 16  # after struct unix_diag_msg
        while at + 4 <= len(message):
            size, number = struct.unpack_from("=HH", message, at)
            if size < 4:
                break
            attributes[number] = message[at + 4 : at + size]
            at += (size + 3) & ~3
    return attributes


# What the link of a socket's descriptor reads.
SOCKET = re.compile(r"socket:\[(\d+)\]")
_LIBRARY = ctypes.CDLL(None, use_errno=True)
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
            peer = (
                _unix(inode)
                or self._listed("connections", inode, lambda: self._named(tcp_peers()))
                or self._listed("tables", inode, lambda: self._of_tables(pid))
            )
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

    def _of_tables(self, pid: int) -> Iterator[tuple[int, str]]:
        for name in _TABLES:
            with suppress(OSError):
                yield from self._named(proc.parse_peers(proc.read_all(f"/proc/{pid}/net/{name}")))

    def _named(self, connections: Iterable[proc.Connection]) -> Iterator[tuple[int, str]]:
        """Inode and peer of each."""
        for inode, peer, port, _ in connections:
            yield inode, CLIENTS if peer and port == self._served else peer


def _unix(inode: int) -> SocketPeer | None:
    try:
        name = unix_peer(inode)
    except (OSError, struct.error):
        return None
    return None if name is None else SocketPeer(name, unnamed=not name)


def _copy(pid: int, descriptor: int) -> int:
    """A process's descriptor in this process. Raises OSError."""
    process = os.pidfd_open(pid)
    try:
        copy: int = _LIBRARY.syscall(_PIDFD_GETFD, process, descriptor, 0)
        if copy < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return copy
    finally:
        os.close(process)


def _peer_of(connection: socket.socket) -> SocketPeer:
    try:
        address = connection.getpeername()
    except OSError:  # it is not connected
        with suppress(OSError):
            listening = bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
            return SocketPeer(listening=listening)
        return SocketPeer()
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        return SocketPeer(proc.place(address[0], address[1]))
    if connection.family != socket.AF_UNIX:
        return SocketPeer()
    name = proc.unix_name(address if isinstance(address, bytes) else os.fsencode(address))
    return SocketPeer(name, unnamed=not name)


def is_here(host: str) -> bool:
    """Whether a name or address is one of this machine."""
    with suppress(OSError, ValueError, UnicodeError):
        for family, _, _, _, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
            if ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback:
                return True
            with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as own:
                own.bind((place[0], 0))  # only an address of this machine can be had
                return True
    return False


def servers(port: int) -> list[int]:
    """Processes that listen on a port, without us and without children of such processes."""
    wanted = set(_listening(port))
    if not wanted:
        return []
    holders = {
        pid for pid in proc.numbers("/proc") if pid != os.getpid() and wanted & set(_sockets(pid))
    }
    return sorted(pid for pid in holders if _parent(pid) not in holders)


def _listening(port: int) -> Iterator[int]:
    """Inodes of sockets that listen on the port."""
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for connection in proc.parse_peers(proc.read_all(f"/proc/self/net/{name}")):
                if connection.listening and connection.own_port == port:
                    yield connection.inode


def _sockets(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                match = SOCKET.fullmatch(proc.link(descriptor.path))
                if match:
                    yield int(match[1])


def _parent(pid: int) -> int:
    status = proc.status_of(f"/proc/{pid}")
    return status.parent if status else 0

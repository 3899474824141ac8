"""Peers of other processes' sockets: by a duplicate of the descriptor, else by the kernel's tables.

A duplicate costs microseconds. The tables of /proc/PID/net cost milliseconds however few sockets there are, so they are
read no more often than a thousandth of a core allows.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from scaletest.system import proc

_PIDFD_GETFD = 438
_MOST_KNOWN = 4096
# Part of a core that reading tables may take.
TABLES_SHARE = 0.001
_TABLES = ("tcp", "tcp6", "udp", "udp6")

_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_SHOW_NAME, _SHOW_PEER = 1, 4
_NAME, _PEER = 0, 2


class Peer(NamedTuple):
    """What is at the other end. listening: nothing is, the socket waits for clients."""

    name: str = ""
    listening: bool = False
    unnamed: bool = False


class Sockets:
    """Finds peers and keeps them by the socket's inode, which no other socket has while it lives."""

    def __init__(self, *, duplicate: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        """duplicate: whether to try the cheap way."""
        self._duplicate = duplicate and socket.getdefaulttimeout() is None
        self._clock = clock
        self._known: dict[int, Peer] = {}
        self._tables_after = 0.0

    def peer(self, pid: int, descriptor: int, inode: int) -> Peer | None:
        """The peer of a process's socket; None while it is not known."""
        known = self._known.get(inode)
        if known is not None:
            return known
        peer = self._by_duplicate(pid, descriptor) if self._duplicate else None
        if peer is None and not self._duplicate:
            peer = _by_diagnosis(inode) or self._by_tables(pid, inode)
        if peer is not None and (peer.name or peer.listening or peer.unnamed):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[inode] = peer
        return peer

    def _by_duplicate(self, pid: int, descriptor: int) -> Peer | None:
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
            return _describe(connection)

    def _by_tables(self, pid: int, inode: int) -> Peer | None:
        if self._clock() < self._tables_after:
            return None
        began = time.thread_time()
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        for name in _TABLES:
            try:
                rows = proc.parse_peers(proc.read_all(f"/proc/{pid}/net/{name}"))
            except OSError:
                continue
            self._known.update({number: Peer(peer) for number, peer in rows if peer})
        self._tables_after = self._clock() + (time.thread_time() - began) / TABLES_SHARE
        return self._known.get(inode)


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


def _describe(connection: socket.socket) -> Peer:
    try:
        address = connection.getpeername()
    except OSError:
        return Peer(listening=_listens(connection))
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        return Peer(proc.place(address[0], address[1]))
    if connection.family != socket.AF_UNIX:
        return Peer()
    name = proc.unix_name(address if isinstance(address, bytes) else os.fsencode(address))
    return Peer(name, unnamed=not name)


def _listens(connection: socket.socket) -> bool:
    try:
        return bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False


def _by_diagnosis(inode: int) -> Peer | None:
    """A unix socket's peer by the kernel's socket diagnosis, which answers everybody; None for other sockets."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as link:
            link.settimeout(0.2)
            peer = _ask(link, inode, _SHOW_PEER).get(_PEER)
            (other,) = struct.unpack("=I", peer[:4]) if peer else (0,)
            if not other:  # no unix socket, or its server has not accepted it yet
                return None
            name = _ask(link, other, _SHOW_NAME).get(_NAME, b"")
    except OSError:
        return None
    text = proc.unix_name(name)
    return Peer(text, unnamed=not text)


def _ask(link: socket.socket, inode: int, show: int) -> dict[int, bytes]:
    """Attributes of the unix socket with this inode by number; none when there is no such socket."""
    cookie = 0xFFFFFFFF
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, inode & 0xFFFFFFFF, show, cookie, cookie)
    link.send(struct.pack("=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, 1, 0, 0) + request)
    answer = link.recv(8192)
    length, kind = struct.unpack_from("=IH", answer)
    attributes: dict[int, bytes] = {}
    at = 32  # after the header and struct unix_diag_msg
    while kind == _SOCK_DIAG_BY_FAMILY and at + 4 <= min(length, len(answer)):
        size, number = struct.unpack_from("=HH", answer, at)
        if size < 4:
            break
        attributes[number] = answer[at + 4 : at + size]
        at += (size + 3) & ~3
    return attributes

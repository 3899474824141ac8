"""Addresses of sockets, as the kernel and processes write them."""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

_LISTENING = "0A"


class Connection(NamedTuple):
    """A socket of a process, as the kernel lists it."""

    inode: int
    peer: str  # "" when it is not connected
    own_port: int
    listening: bool = False  # whether it waits for clients


def parse_peers(table: str) -> Iterator[Connection]:
    """Parse each socket of /proc/PID/net/tcp, tcp6, udp or udp6."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        with suppress(IndexError, ValueError, struct.error):  # a line that is cut short
            own_port = int(fields[1].partition(":")[2], 16)
            # the kernel prints an address as 32-bit words in native byte order, then the port
            host, _, digits = fields[2].partition(":")
            port = int(digits, 16)
            peer = ""
            if port:
                words = [int(host[start : start + 8], 16) for start in range(0, len(host), 8)]
                family = socket.AF_INET6 if len(words) == 4 else socket.AF_INET
                peer = host_and_port(
                    socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words)), port
                )
            yield Connection(int(fields[9]), peer, own_port, fields[3] == _LISTENING)


def host_and_port(host: str, port: int) -> str:
    """Return host:port, with brackets around IPv6."""
    host = host.removeprefix("::ffff:") if "." in host else host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(data: bytes) -> str:
    """Parse a struct sockaddr in a process's memory: host:port or a unix path; "" for others."""
    if len(data) < 4:
        return ""
    (family,) = struct.unpack_from("=H", data)
    if family == socket.AF_UNIX:
        return unix_name(data[2:])
    if family not in (socket.AF_INET, socket.AF_INET6):
        return ""
    offset, size = (4, 4) if family == socket.AF_INET else (8, 16)  # of the address
    if len(data) < offset + size:
        return ""
    (port,) = struct.unpack_from("!H", data, 2)
    host = socket.inet_ntop(socket.AddressFamily(family), data[offset : offset + size])
    return host_and_port(host, port)


def unix_name(name: bytes) -> str:
    """Return a unix socket's name: its path, or @ and an abstract name; "" without one."""
    if name[:1] == b"\0":
        abstract = name[1:].rstrip(b"\0")
        return f"@{abstract.decode(errors='replace')}" if abstract else ""
    return name.partition(b"\0")[0].decode(errors="replace")

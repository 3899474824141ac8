"""Which processes of this machine serve a TCP port, as far as we may look."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from scaletest.system import proc

_LISTENING = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def is_here(host: str) -> bool:
    """Whether a name or address is one of this machine."""
    with contextlib.suppress(OSError, ValueError, UnicodeError):
        for family, _, _, _, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
            if ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback:
                return True
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as own:
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
        try:
            lines = proc.read_all(f"/proc/self/net/{name}").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENING and fields[1].endswith(f":{port:04X}"):
                yield int(fields[9])


def _sockets(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                match = _SOCKET.fullmatch(str(Path(descriptor.path).readlink()))
                if match:
                    yield int(match[1])


def _parent(pid: int) -> int:
    try:
        fields = proc.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        return int(fields[1])
    except (OSError, IndexError, ValueError):
        return 0

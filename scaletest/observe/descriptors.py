"""What a thread waits for that is blocked on descriptors of its process."""

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress

from scaletest.model.activity import State
from scaletest.observe.doing import UNKNOWN, Doing
from scaletest.observe.sockets import CLIENTS, SOCKET, Sockets
from scaletest.processes import proc

# Descriptors of one process or poll that are examined, at most.
MOST_DESCRIPTORS = 64
_DEVICES = re.compile(
    r"/dev/(?:dri/|nvidia|accel/|kfd\b|dxg\b|habanalabs|neuron|davinci|infiniband/|apex_|video\d|media\d)"
)
_TERMINALS = re.compile(r"/dev/(?:pts/|ptmx|tty|console|null|zero|u?random)")
_INODES = (
    (re.compile(r"sync_file|dmabuf|i915|kvm|drm"), State.DEVICE),
    (re.compile("timerfd"), State.SLEEP),
    (re.compile("^pipe:"), State.PIPE),
)


class Descriptors:
    """Tells what descriptors stand for."""

    def __init__(self, sockets: Sockets) -> None:
        self._sockets = sockets
        # a file that is a device, besides those known as devices
        self.device = ""

    def target(self, pid: int, number: int) -> Doing:
        """Return state and object of a thread that waits for a descriptor."""
        link = proc.read_link(f"/proc/{pid}/fd/{number}")
        if socket := SOCKET.fullmatch(link):
            peer = self._sockets.peer(pid, number, int(socket[1]))
            if peer is None:
                return Doing(State.NETWORK)
            if peer.listening or peer.name == CLIENTS:
                return Doing(State.IDLE, peer.name)
            return Doing(State.PIPE) if peer.unnamed else Doing(State.NETWORK, peer.name)
        if link.startswith(("pipe:", "anon_inode:")):
            # it has no path
            return Doing(
                next((state for pattern, state in _INODES if pattern.search(link)), State.IDLE)
            )
        path = _path_in(link)
        if path and (path == self.device or _DEVICES.match(path)):
            return Doing(State.DEVICE, path)
        if _TERMINALS.match(path):
            return Doing(State.IDLE)
        if path.startswith("/dev/"):
            # a character device, and not a disk or a file, as in /dev/shm
            with suppress(OSError):
                if stat.S_ISCHR(os.stat(f"/proc/{pid}/fd/{number}").st_mode):  # noqa: PTH116 - a path of /proc
                    return Doing(State.DEVICE, path)
        return Doing(State.DISK, path) if path else UNKNOWN

    def most_active(self, pid: int, numbers: Iterable[int]) -> Doing:
        """Return the state of the most important of these descriptors.

        Files are always ready, so a poll does not wait for them.
        """
        targets = [self.target(pid, number) for number in list(numbers)[:MOST_DESCRIPTORS]]
        waiting = (doing for doing in targets if doing.state is not State.DISK)
        return min(waiting, key=lambda doing: doing.rank, default=Doing(State.IDLE))


def open_descriptors(pid: int) -> list[int]:
    """Return the open descriptors of a process; none when they may not be read."""
    try:
        return proc.list_numbers(f"/proc/{pid}/fd")
    except OSError:
        return []


def path_of(pid: int, number: int) -> str:
    """Return the path of a descriptor's file; "" where it has none, or may not be read."""
    return _path_in(proc.read_link(f"/proc/{pid}/fd/{number}"))


def _path_in(link: str) -> str:
    return link.removesuffix(" (deleted)") if link.startswith("/") else ""

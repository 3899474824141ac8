"""What the kernel tells of the things that blocked calls wait for. Pure parsers.

They take the text of files in /proc/PID (maps, fdinfo/N) and of /proc/locks, and memory of programs
that holds the arguments of a call.
"""

import os
import re
import struct

# A line of /proc/PID/maps: first address, end address, permissions, then the file's path, if any.
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+\s*(.*)")


def find_mapped_file(maps: str, address: int) -> str:
    """Return the shared file that is mapped at an address, from /proc/PID/maps.

    "" for memory without one, and for the anonymous memory that /dev/zero stands for.
    """
    for line in maps.splitlines():
        match = _MAPPING.match(line)
        if match and int(match[1], 16) <= address < int(match[2], 16):
            name = match[4] if match[3].endswith("s") and match[4].startswith("/") else ""
            return "" if name.startswith("/dev/zero") else name.removesuffix(" (deleted)")
    return ""


def find_ring(maps: str) -> int:
    """Return where the requests to io_uring are mapped, from /proc/PID/maps; 0 for nowhere."""
    match = re.search(r"^([0-9a-f]+)-\S+ \S+ 10000000 .*\[io_uring\]$", maps, re.MULTILINE)
    return int(match[1], 16) if match else 0


def find_awaited_inode(locks: str, pid: int) -> int | None:
    """Return the inode of the file whose lock a process waits for, from /proc/locks.

    None when it waits for none.
    """
    for line in locks.splitlines():
        fields = line.split()
        if len(fields) >= 7 and fields[1] == "->" and fields[5] == str(pid):
            inode = fields[6].rpartition(":")[2]
            return int(inode) if inode.isdigit() else None
    return None


def parse_lock_holders(locks: str) -> dict[int, int]:
    """Return which process holds a record lock (fcntl), by the file's inode, from /proc/locks.

    Locks of open file descriptions (OFD), and of other PID namespaces, have no holder there.
    """
    holders = {}
    for line in locks.splitlines():
        fields = line.split()
        inode = fields[-3].rpartition(":")[2] if len(fields) >= 8 else ""
        if (
            fields[1:2] == ["POSIX"]
            and inode.isdigit()
            and fields[4].isdigit()
            and fields[4] != "0"
        ):
            holders[int(inode)] = int(fields[4])
    return holders


def is_two_way(fdinfo: str) -> bool:
    """Return whether a descriptor is open to read and to write, from /proc/PID/fdinfo/N."""
    match = re.search(r"^flags:\s*([0-7]+)", fdinfo, re.MULTILINE)
    return match is not None and int(match[1], 8) & os.O_ACCMODE == os.O_RDWR


def parse_epoll(fdinfo: str) -> list[int]:
    """Parse the descriptors that an epoll descriptor watches, from /proc/PID/fdinfo/N."""
    return [int(number) for number in re.findall(r"^tfd:\s*(\d+)", fdinfo, re.MULTILINE)]


def parse_inode(fdinfo: str) -> int | None:
    """Return the inode of a descriptor's file, from /proc/PID/fdinfo/N; None before Linux 5.14."""
    match = re.search(r"^ino:\s*(\d+)", fdinfo, re.MULTILINE)
    return int(match[1]) if match else None


def parse_pollfds(data: bytes) -> list[int]:
    """Parse the descriptors of an array of struct pollfd, without those that poll() skips."""
    return [
        number
        for number, _, _ in struct.iter_unpack("=ihh", data[: len(data) // 8 * 8])
        if number >= 0
    ]


def parse_ring(data: bytes) -> list[int]:
    """Parse the descriptors in requests to io_uring, without those of requests for none (0)."""
    requests = struct.iter_unpack("=BBHi56x", data[: len(data) // 64 * 64])
    return [number for operation, _, _, number in requests if operation and number >= 0]


def parse_fd_set(data: bytes) -> list[int]:
    """Parse the descriptors in an fd_set, as bytes of a little-endian bit mask."""
    bits = int.from_bytes(data, "little")
    return [number for number in range(len(data) * 8) if bits >> number & 1]

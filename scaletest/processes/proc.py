"""The files of /proc about processes and their threads, and pure parsers of their content."""

import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+\s*(.*)")

# Longer files are cut: whoever maps or locks thousands of things is described by the first of them.
MOST_BYTES = 262_144
# A part that is shorter than a page without its last line is the last one.
_SHORT_BYTES, _CHUNK_BYTES = 3072, 16_384
# Of a number of 64 bits.
_MOST_DIGITS = 20
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Schedule(NamedTuple):
    """A thread's seconds on CPUs, and waiting for one."""

    run_s: float
    wait_s: float
    slices: int  # how often it was put on a CPU


class Status(NamedTuple):
    """The status of a process or thread."""

    letter: str  # of its state, such as R for running
    parent: int  # the parent of its process
    major_faults: int  # page faults that read from a disk
    cpu_s: float  # user and system time of its process, with children that were reaped
    began_s: float  # since boot


class SystemCall(NamedTuple):
    """The system call that blocks a thread."""

    number: int  # -1 outside of any
    arguments: tuple[int, ...]
    stack: int  # 0 when the thread is dead


def read(path: str | Path, limit: int = 4096, offset: int = 0) -> bytes:
    """Read some bytes of a file, its beginning unless an offset is given. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, limit, offset)
    except OverflowError as error:  # no process has memory at an address above 63 bits
        raise OSError(str(error)) from error
    finally:
        os.close(handle)


def text_of(path: str | Path) -> str:
    """Return what a short file holds; "" where it cannot be read."""
    try:
        return read(path).decode(errors="replace")
    except OSError:
        return ""


def read_all(path: str) -> str:
    """Read a file that may be long. Raises OSError."""
    with open(path, "rb") as file:  # noqa: PTH123 - a path of /proc
        return file.read(MOST_BYTES).decode(errors="replace")


class OpenFile:
    """A file of /proc or /sys that is read repeatedly: opening costs more than reading."""

    def __init__(self, path: Path) -> None:
        """Open the file, once: one that is absent, or denied, is so for good."""
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._handle = -1

    def __del__(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def text(self) -> str:
        """Return what it holds now; "" when it cannot be read."""
        if self._handle < 0:
            return ""
        content = b""
        try:
            # the kernel answers a page at a time, of which the last line may not fit
            while len(content) < MOST_BYTES:
                part = os.pread(self._handle, _CHUNK_BYTES, len(content))
                content += part
                if len(part) < _SHORT_BYTES:
                    break
        except OSError:
            return ""
        return content.decode(errors="replace")


def link(path: str) -> str:
    """Return where a symbolic link points; "" when it may not be read, or is no longer there."""
    try:
        return os.readlink(path)  # noqa: PTH115 - a path of /proc
    except (OSError, ValueError):
        return ""


def numbers(path: str) -> list[int]:
    """Return the numbers among the names in a folder. Raises OSError."""
    return sorted(int(name) for name in os.listdir(path) if name.isdigit())  # noqa: PTH208 - a path of /proc


def parse_schedule(data: bytes) -> Schedule | None:
    """Parse /proc/PID/task/TID/schedstat."""
    try:
        run, wait, slices = map(int, data.split()[:3])
    except ValueError:
        return None
    return Schedule(run / 1e9, wait / 1e9, slices)


def children(pid: int, tid: int) -> list[int]:
    """Return the processes that a thread started. Raises OSError."""
    return parse_numbers(read(f"/proc/{pid}/task/{tid}/children", 65536))


def entries(folder: Path) -> list[Path]:
    """Return the paths of all that a folder holds; none where it cannot be listed."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def parse_status(data: bytes) -> Status | None:
    """Parse /proc/PID/stat or /proc/PID/task/TID/stat; None when it is cut short."""
    # the program's name, in parentheses, may hold anything
    fields = data.rpartition(b")")[2].split()
    try:
        return Status(
            fields[0].decode("ascii"),
            parent=int(fields[1]),
            major_faults=int(fields[9]),
            cpu_s=sum(map(int, fields[11:15])) / TICKS_PER_S,
            began_s=int(fields[19]) / TICKS_PER_S,
        )
    except (IndexError, ValueError):
        return None


def status_of(folder: str) -> Status | None:
    """Return the status of a process or thread by its folder; None when it is gone, or hidden."""
    return parse_status(text_of(f"{folder}/stat").encode())


def parse_call(data: bytes) -> SystemCall | None:
    """Parse /proc/PID/task/TID/syscall; None while the thread runs, or could run."""
    try:
        values = [int(word, 0) for word in data.split()]
    except ValueError:
        return None
    if len(values) < 3:
        return None
    return SystemCall(values[0], tuple(values[1:7]) if values[0] >= 0 else (), values[-2])


def parse_numbers(data: bytes) -> list[int]:
    """Parse the process ids of /proc/PID/task/TID/children."""
    return [int(word) for word in data.split() if word.isdigit()]


def parse_number(text: str) -> int | None:
    """Return the only number in a file, or the first of several."""
    fields = text.split(None, 1)
    return _parse_digits(fields[0]) if fields else None


def parse_columns(columns: Iterable[str]) -> list[int]:
    """Parse numbers, one a word; none where any word is something else."""
    words = list(columns)
    numbers = [number for number in map(_parse_digits, words) if number is not None]
    return numbers if len(numbers) == len(words) else []


def parse_table(text: str) -> dict[str, int]:
    """Parse lines of a name and a number, as in cpu.stat, /proc/meminfo and /proc/vmstat."""
    table = {}
    for line in text.splitlines():
        fields = line.split(None, 2)
        number = _parse_digits(fields[1]) if len(fields) >= 2 else None
        if number is not None:
            table[fields[0].rstrip(":")] = number
    return table


def _parse_digits(word: str) -> int | None:
    """Return a number as the kernel writes it: int() takes more forms, and refuses many digits."""
    is_number = word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS
    return int(word) if is_number else None


def parse_throttled_s(text: str) -> float | None:
    """Return the seconds for which a CPU limit held a control group back, of cpu.stat."""
    table = parse_table(text)
    if "throttled_usec" in table:  # version 2
        return table["throttled_usec"] / 1e6
    return table["throttled_time"] / 1e9 if "throttled_time" in table else None


def mapped_file(maps: str, address: int) -> str:
    """Return the shared file that is mapped at an address; "" for memory without one."""
    for line in maps.splitlines():
        match = _MAPPING.match(line)
        if match and int(match[1], 16) <= address < int(match[2], 16):
            name = match[4] if match[3].endswith("s") and match[4].startswith("/") else ""
            return "" if name.startswith("/dev/zero") else name.removesuffix(" (deleted)")
    return ""


def awaited_inode(locks: str, pid: int) -> int | None:
    """Return the inode of the file whose lock a process waits for, of /proc/locks."""
    for line in locks.splitlines():
        fields = line.split()
        if len(fields) >= 7 and fields[1] == "->" and fields[5] == str(pid):
            inode = fields[6].rpartition(":")[2]
            return int(inode) if inode.isdigit() else None
    return None


def lock_holders(locks: str) -> dict[int, int]:
    """Return who holds a record lock (fcntl) of a file, by the file's inode, of /proc/locks.

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
    """Return whether a descriptor is open to read and to write, of /proc/PID/fdinfo/N."""
    match = re.search(r"^flags:\s*([0-7]+)", fdinfo, re.MULTILINE)
    return match is not None and int(match[1], 8) & os.O_ACCMODE == os.O_RDWR


def parse_epoll(fdinfo: str) -> list[int]:
    """Parse the descriptors that an epoll descriptor watches, of /proc/PID/fdinfo/N."""
    return [int(number) for number in re.findall(r"^tfd:\s*(\d+)", fdinfo, re.MULTILINE)]


def inode_of(fdinfo: str) -> int | None:
    """Return the inode of a descriptor's file, of /proc/PID/fdinfo/N; None before Linux 5.14."""
    match = re.search(r"^ino:\s*(\d+)", fdinfo, re.MULTILINE)
    return int(match[1]) if match else None


def parse_pollfds(data: bytes) -> list[int]:
    """Parse the descriptors of an array of struct pollfd."""
    return [
        number
        for number, _, _ in struct.iter_unpack("=ihh", data[: len(data) // 8 * 8])
        if number >= 0
    ]


def parse_fd_set(data: bytes) -> list[int]:
    """Parse the descriptors of an fd_set."""
    bits = int.from_bytes(data, "little")
    return [number for number in range(len(data) * 8) if bits >> number & 1]

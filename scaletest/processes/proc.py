"""The files of /proc about processes and their threads, and pure parsers of their content."""

import os
from collections.abc import Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

# Longer files are cut: of thousands of mappings or locks the first ones count.
MOST_BYTES = 262_144
# The kernel writes no number of more digits: those of 64 bits end at 18446744073709551615.
_MOST_DIGITS = 20
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Schedule(NamedTuple):
    """How long a thread ran on CPUs, and waited for one, since it began."""

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
    stack: int  # the stack pointer, 0 when the thread is dead


def read(path: str | Path, limit: int = 4096, offset: int = 0) -> bytes:
    """Read at most `limit` bytes of a file, from byte `offset` on.

    Raises OSError, also for an address in /proc/PID/mem that no process can have.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, limit, offset)
    except OverflowError as error:  # no process has memory at an address above 63 bits
        raise OSError(str(error)) from error
    finally:
        os.close(handle)


def read_text(path: str | Path) -> str:
    """Return the first 4096 bytes of a file as text; "" where it cannot be read."""
    try:
        return read(path).decode(errors="replace")
    except OSError:
        return ""


def read_long_text(path: str) -> str:
    """Return the first `MOST_BYTES` bytes of a file as text. Raises OSError."""
    with open(path, "rb") as file:  # noqa: PTH123 - a path of /proc
        return file.read(MOST_BYTES).decode(errors="replace")


class OpenFile:
    """A file of /proc or /sys that is read repeatedly: opening costs more than reading."""

    def __init__(self, path: Path) -> None:
        """Open the file, once: one that is absent, or denied, is so for good."""
        self._file: FileIO | None = None
        with suppress(OSError):
            self._file = FileIO(path)

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def text(self) -> str:
        """Return the whole text that the file holds now; "" when it cannot be read."""
        if self._file is None:
            return ""
        try:
            self._file.seek(0)
            return self._file.readall().decode(errors="replace")
        except OSError:
            return ""


def read_link(path: str) -> str:
    """Return where a symbolic link points; "" when it may not be read, or is no longer there."""
    try:
        return os.readlink(path)  # noqa: PTH115 - a path of /proc
    except (OSError, ValueError):
        return ""


def list_numbers(path: str) -> list[int]:
    """Return the names in a folder that are numbers, such as process ids, ascending.

    Raises OSError.
    """
    return sorted(int(name) for name in os.listdir(path) if name.isdigit())  # noqa: PTH208 - a path of /proc


def list_folder(folder: Path) -> list[Path]:
    """Return the paths of all that a folder holds; none where it cannot be listed."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def read_children(pid: int, tid: int) -> list[int]:
    """Return the ids of the processes that a thread started; none where it is gone, or hidden."""
    try:
        return [int(child) for child in read(f"/proc/{pid}/task/{tid}/children", 65_536).split()]
    except OSError:
        return []


def read_status(folder: str) -> Status | None:
    """Return the status of a process or thread by its folder; None when it is gone, or hidden."""
    return parse_status(read_text(f"{folder}/stat").encode())


def parse_schedule(data: bytes) -> Schedule | None:
    """Parse /proc/PID/task/TID/schedstat; None when it is cut short."""
    try:
        run_ns, wait_ns, slices = map(int, data.split()[:3])
    except ValueError:
        return None
    return Schedule(run_s=run_ns / 1e9, wait_s=wait_ns / 1e9, slices=slices)


def parse_status(data: bytes) -> Status | None:
    """Parse /proc/PID/stat or /proc/PID/task/TID/stat; None when it is cut short."""
    # the program's name, in parentheses, may hold anything
    fields = data.rpartition(b")")[2].split()
    try:
        return Status(
            letter=fields[0].decode("ascii"),
            parent=int(fields[1]),
            major_faults=int(fields[9]),
            cpu_s=sum(map(int, fields[11:15])) / TICKS_PER_S,
            began_s=int(fields[19]) / TICKS_PER_S,
        )
    except (IndexError, ValueError):
        return None


def parse_call(data: bytes) -> SystemCall | None:
    """Parse /proc/PID/task/TID/syscall; None while the thread runs, or could run."""
    try:
        values = [int(word, 0) for word in data.split()]
    except ValueError:
        return None
    if len(values) < 3:
        return None
    # outside of a call the line holds -1, the stack pointer and the program counter
    return SystemCall(
        number=values[0],
        arguments=tuple(values[1:7]) if values[0] >= 0 else (),
        stack=values[-2],
    )


def parse_first_number(text: str) -> int | None:
    """Return the number at the beginning of a text; None when another word is there, or none."""
    fields = text.split(None, 1)
    return _parse_digits(fields[0]) if fields else None


def parse_columns(columns: Iterable[str]) -> list[int]:
    """Parse words that are all numbers; [] where any word is something else."""
    words = list(columns)
    numbers = [number for number in map(_parse_digits, words) if number is not None]
    return numbers if len(numbers) == len(words) else []


def parse_table(text: str) -> dict[str, int]:
    """Parse lines of a name and a number, as in cpu.stat, /proc/meminfo and /proc/vmstat.

    Return the numbers by name, without its colon. Other lines are left out.
    """
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

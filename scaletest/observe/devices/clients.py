"""What the processes of one request did on graphics devices: busy time by engine, and memory.

The kernel's drivers say it of open device files, see `fdinfo`.

A client's counters begin when it opens the device, so that a look which finds it late misses
nothing; what it does between the last look and its end is not seen. Each client counts once,
whatever its descriptors and processes.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from scaletest.observe.devices.fdinfo import DrmClient, parse_fdinfo
from scaletest.processes import proc

PROCFS = "/proc"
FOLDERS = ("/dev/dri", "/dev/accel")
_PREFIXES = tuple(f"{folder}/" for folder in FOLDERS)
# Of one process: of more devices the first ones count.
_MOST_FILES = 16
_MOST_DESCRIPTORS = 512
# Looks at which descriptors are listed where the kernel does not count them.
UNCOUNTED_LOOKS = 8
# A shorter time says too little about how fast a device's clock runs.
_LEAST_CLOCK_S = 0.05

Key = tuple[str, str]


class CycleClocks:
    """Clocks of devices that count cycles; how fast each runs is learned from two looks."""

    def __init__(self) -> None:
        self.ticks_per_s: dict[str, float] = {}  # by device, where it is known
        self._began: dict[str, tuple[int, float]] = {}

    def begin(self) -> None:
        """Measure afresh: between two requests a device may sleep, and its clock with it."""
        self._began = {}

    def take(self, device: str, clock: int, at_s: float) -> None:
        """Take in what a clock shows at a time. One that goes back starts over."""
        first, began_s = self._began.setdefault(device, (clock, at_s))
        if clock < first:
            self._began[device] = (clock, at_s)
        elif clock > first and at_s - began_s >= _LEAST_CLOCK_S:
            self.ticks_per_s[device] = (clock - first) / (at_s - began_s)


@dataclass(slots=True)
class _Count:
    """The work of one kind of engine for one client."""

    in_cycles: bool  # or in nanoseconds
    capacity: int  # how many engines of the kind the device has
    highest: int = 0  # of its counter
    grown: int = 0  # in this request


@dataclass(slots=True)
class _Files:
    """Descriptors of one process."""

    numbers: list[int] = field(default_factory=list)  # those that are devices
    looks: int = 0
    open_files: int = 0  # of any kind


class Clients:
    """The clients of one request after the other. `denied` hears when a file may not be read."""

    def __init__(
        self, procfs: str = PROCFS, denied: Callable[[str], None] = lambda _: None
    ) -> None:
        self._procfs = procfs
        self._denied = denied
        self._clocks = CycleClocks()
        self._processes: dict[int, _Files] = {}
        self._counts: dict[Key, dict[str, _Count]] = {}
        self._seen: set[Key] = set()
        # most that its clients had at one look
        self.memory_bytes = 0

    def begin(self) -> None:
        """Begin a request.

        Clients that the request before had and that still live continue from where they were.
        """
        self._processes = {}
        self._counts = {key: self._counts[key] for key in self._seen}
        for counts in self._counts.values():
            for count in counts.values():
                count.grown = 0
        self._seen = set()
        self.memory_bytes = 0
        self._clocks.begin()

    def look(self, processes: Iterable[int]) -> None:
        """Read the devices of these processes. Of those that are gone the last values stay."""
        living = sorted(processes)
        gone = [self._processes.pop(pid) for pid in self._processes.keys() - set(living)]
        if any(files.numbers for files in gone):
            # another process may have to be read now for a client that they shared
            self._processes = {}
        memory: dict[Key, int] = {}  # of the clients that were read: each is read once
        for pid in living:
            files = self._processes.setdefault(pid, _Files())
            self._list_devices(pid, files)
            numbers = []
            for number in files.numbers[:_MOST_FILES]:
                client = self._read(pid, number)
                if client is not None and client.key not in memory:
                    numbers.append(number)
                    memory[client.key] = client.memory_bytes
                    self._count(client)
            files.numbers = numbers
        self.memory_bytes = max(self.memory_bytes, sum(memory.values()))

    def _read(self, pid: int, number: int) -> DrmClient | None:
        """Return the client of a descriptor; None when it has none, or may not be read."""
        try:
            content = proc.read(f"{self._procfs}/{pid}/fdinfo/{number}")
        except PermissionError:
            self._denied("fdinfo")
            return None
        except OSError:  # closed, or the process is gone
            return None
        return parse_fdinfo(content.decode(errors="replace"))

    def _count(self, client: DrmClient) -> None:
        """Add to the counts what a client's engines did since the last look."""
        self._seen.add(client.key)
        now_s = time.monotonic()
        counts = self._counts.setdefault(client.key, {})
        for name, engine in client.engines.items():
            in_cycles = engine.busy_ns is None
            count = counts.setdefault(name, _Count(in_cycles, engine.capacity))
            # it may fall for a while and recover: only growth above the highest counts
            value = (engine.cycles if in_cycles else engine.busy_ns) or 0
            count.grown += max(0, value - count.highest)
            count.highest = max(count.highest, value)
            if engine.clock is not None:
                self._clocks.take(client.device, engine.clock, now_s)

    def busy_s(self) -> dict[str, float]:
        """Return seconds by device and kind of engine, summed over engines.

        Without unknown ones.
        """
        sums: dict[str, float] = defaultdict(float)
        for device, client in self._seen:
            for name, count in self._counts[device, client].items():
                per_s = self._clocks.ticks_per_s.get(device) if count.in_cycles else 1e9
                if per_s:
                    sums[f"{device} {name}"] += count.grown / per_s / count.capacity
        return dict(sums)

    def _list_devices(self, pid: int, files: _Files) -> None:
        """List the descriptors again when there are more or fewer, and rarely otherwise."""
        folder = f"{self._procfs}/{pid}/fd"
        files.looks += 1
        try:
            open_files = os.stat(folder).st_size  # noqa: PTH116 - a path of /proc
            # one may be closed and another opened: at looks 1, 2, 4, 8 and so on all are listed
            is_power_of_two = files.looks & (files.looks - 1) == 0
            # kernels before 6.2 do not count them: there the first looks list them all
            is_uncounted = not open_files and files.looks <= UNCOUNTED_LOOKS
            if open_files == files.open_files and not is_power_of_two and not is_uncounted:
                return
            files.open_files = open_files
            numbers = proc.list_numbers(folder)[:_MOST_DESCRIPTORS]
            paths = {number: proc.read_link(f"{folder}/{number}") for number in numbers}
            files.numbers = [number for number, path in paths.items() if path.startswith(_PREFIXES)]
        except PermissionError:
            self._denied("fdinfo")
        except OSError:  # it is gone
            files.numbers = []


def devices_present() -> bool:
    """Return whether this machine shows such devices."""
    return any(os.path.isdir(folder) for folder in FOLDERS)  # noqa: PTH112 - asked before every program

"""What the processes of one request did on graphics devices: busy time by engine, and memory.

The kernel's drivers say it of open device files, in /proc/PID/fdinfo/N. The form is that of the
kernel's page "DRM client usage stats": i915, amdgpu and others count nanoseconds of each kind of
engine, xe counts cycles beside a clock of the device.

A client's counters begin when it opens the device, so that a look which finds it late misses
nothing; what it does between the last look and its end is not seen. Each client counts once,
whatever its descriptors and processes.
"""

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scaletest.processes import proc

_ROW = re.compile(r"^(drm-[^:\n]*):(.*)$", re.MULTILINE)
_UNITS = {"": 1, "B": 1, "KIB": 1024, "MIB": 1024**2, "GIB": 1024**3}
# Memory of the device itself, as against memory of the machine that it uses.
_OWN_MEMORY = re.compile(r"(?:stolen-)?(?:vram|local)\d*")
# The older name for resident memory.
_RESIDENT = ("drm-resident-", "drm-memory-")

PROCFS = "/proc"
FOLDERS = ("/dev/dri", "/dev/accel")
_PREFIXES = tuple(f"{folder}/" for folder in FOLDERS)
# Of /dev/dri and /dev/accel.
_MAJORS = (226, 261)
# Of one process: whoever opens more devices is described by the first of them.
_MOST_FILES = 16
_MOST_DESCRIPTORS = 512
# Kernels before 6.2 do not count a process's descriptors: there the first looks list them all.
_FIRST_LOOKS = 8
# A shorter time says too little about how fast a device's clock runs.
_LEAST_CLOCK_S = 0.05

Key = tuple[str, str]


class CycleClocks:
    """Clocks of devices that count cycles, in ticks a second; learned from two looks each."""

    def __init__(self) -> None:
        self._rates: dict[str, float] = {}
        self._began: dict[str, tuple[int, float]] = {}

    def begin(self) -> None:
        """Measure anew: between two requests a device may sleep, and its clock with it."""
        self._began = {}

    def take(self, device: str, clock: int, at_s: float) -> None:
        """Take in what a clock shows at a time. One that goes back begins anew."""
        first, began_s = self._began.setdefault(device, (clock, at_s))
        if clock < first:
            self._began[device] = (clock, at_s)
        elif clock > first and at_s - began_s >= _LEAST_CLOCK_S:
            self._rates[device] = (clock - first) / (at_s - began_s)

    def rate(self, device: str) -> float | None:
        """Return ticks a second, None when nothing is known of the clock."""
        return self._rates.get(device)


@dataclass(slots=True)
class _Count:
    """One engine kind of one client: its highest counter, and its growth in this request."""

    in_cycles: bool
    capacity: int
    highest: int = 0
    grown: int = 0


@dataclass(slots=True)
class _Files:
    """Descriptors of one process that are devices. open_files: how many of any kind."""

    numbers: list[int] = field(default_factory=list)
    looks: int = 0
    open_files: int = 0


class Clients:
    """The clients of one request after the other. `denied` hears when a file may not be read."""

    def __init__(
        self, procfs: str = PROCFS, denied: Callable[[str], None] = lambda _: None
    ) -> None:
        self._procfs = procfs
        self._denied = denied
        self._clocks = CycleClocks()
        self._device = ""
        self._processes: dict[int, _Files] = {}
        self._counts: dict[Key, dict[str, _Count]] = {}
        self._seen: set[Key] = set()
        # most that its clients had at one look
        self.memory_bytes = 0

    def begin(self, device: str = "") -> None:
        """Begin a request. device: a file to take for a device, whatever its name.

        Clients that the request before had and that live on go on from where they were.
        """
        self._device = device
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
            # somebody else may have to be read now for a client that they shared
            self._processes = {}
        memory: dict[Key, int] = {}
        for pid in living:
            files = self._processes.setdefault(pid, _Files())
            self._find(pid, files)
            # read each client once
            numbers = []
            for number in files.numbers[:_MOST_FILES]:
                try:
                    client = parse_fdinfo(
                        proc.read(f"{self._procfs}/{pid}/fdinfo/{number}").decode(errors="replace")
                    )
                except PermissionError:
                    self._denied("fdinfo")
                    continue
                except OSError:  # closed, or the process is gone
                    continue
                if client is not None and (client.device, client.id) not in memory:
                    numbers.append(number)
                    memory[client.device, client.id] = client.memory_bytes
                    self._seen.add((client.device, client.id))
                    now_s = time.monotonic()
                    counts = self._counts.setdefault((client.device, client.id), {})
                    for name, engine in client.engines.items():
                        in_cycles = engine.busy_ns is None
                        count = counts.setdefault(name, _Count(in_cycles, engine.capacity))
                        # it may fall for a while and recover: only growth above the highest counts
                        value = (engine.cycles if in_cycles else engine.busy_ns) or 0
                        count.grown += max(0, value - count.highest)
                        count.highest = max(count.highest, value)
                        if engine.clock is not None:
                            self._clocks.take(client.device, engine.clock, now_s)
            files.numbers = numbers
        self.memory_bytes = max(self.memory_bytes, sum(memory.values()))

    def busy_s(self) -> dict[str, float]:
        """Return seconds by device and kind of engine, summed over engines.

        Without unknown ones.
        """
        sums: dict[str, float] = defaultdict(float)
        for device, client in self._seen:
            for name, count in self._counts[device, client].items():
                per_s = self._clocks.rate(device) if count.in_cycles else 1e9
                if per_s:
                    sums[f"{device} {name}"] += count.grown / per_s / count.capacity
        return dict(sums)

    def _find(self, pid: int, files: _Files) -> None:
        """List the descriptors again when there are more or fewer, and rarely otherwise."""
        folder = f"{self._procfs}/{pid}/fd"
        files.looks += 1
        try:
            open_files = os.stat(folder).st_size  # noqa: PTH116 - a path of /proc
            often = files.looks <= _FIRST_LOOKS and not open_files
            if open_files == files.open_files and files.looks & (files.looks - 1) and not often:
                return
            files.open_files = open_files
            numbers = proc.numbers(folder)[:_MOST_DESCRIPTORS]
            paths = {number: proc.link(f"{folder}/{number}") for number in numbers}
            files.numbers = [
                number
                for number, path in paths.items()
                if path.startswith(_PREFIXES) or path == self._device != ""
            ]
        except PermissionError:
            self._denied("fdinfo")
        except OSError:  # it is gone
            files.numbers = []


def devices_present(device: str = "") -> bool:
    """Return whether this machine shows such devices, or this file is one."""
    if any(os.path.isdir(folder) for folder in FOLDERS):  # noqa: PTH112 - asked before every program
        return True
    try:
        return bool(device) and os.major(os.stat(device).st_rdev) in _MAJORS  # noqa: PTH116
    except OSError:
        return False


class Engine(NamedTuple):
    """Counters of one kind of engine since the client was opened."""

    busy_ns: int | None  # None where the driver counts cycles
    cycles: int | None  # busy ones, None where it does not count them
    clock: int | None  # cycles that passed
    capacity: int  # how many engines of the kind the device has


class DrmClient(NamedTuple):
    """One opening of one device, which several descriptors and processes may share."""

    device: str  # PCI address, or the driver's name for a device that is not on PCI
    id: str  # unique for the device
    engines: Mapping[str, Engine]
    memory_bytes: int  # of the device's own memory, of the machine's where the device has none


def parse_fdinfo(text: str) -> DrmClient | None:
    """Parse fdinfo; None when the file is no graphics driver's, or does not tell clients apart."""
    rows = {match[1].strip(): match[2].strip() for match in _ROW.finditer(text)}
    device = rows.get("drm-pdev") or rows.get("drm-driver", "")
    client = rows.get("drm-client-id", "")
    if not device or not client:
        return None
    names = _named(rows, "drm-engine-") | _named(rows, "drm-cycles-")
    engines = {
        name: Engine(
            _number(rows.get(f"drm-engine-{name}", ""), "ns"),
            _number(rows.get(f"drm-cycles-{name}", "")),
            _number(rows.get(f"drm-total-cycles-{name}", "")),
            _number(rows.get(f"drm-engine-capacity-{name}", "1")) or 1,
        )
        for name in sorted(names)
        if not name.startswith("capacity-")
    }
    resident: dict[str, int] = {}
    for prefix in _RESIDENT:
        for region in _named(rows, prefix):
            number, _, unit = rows[f"{prefix}{region}"].partition(" ")
            size = (_number(number) or 0) * _UNITS.get(unit.strip().upper(), 0)
            resident.setdefault(region, size)
    device_memory = {
        region: size for region, size in resident.items() if _OWN_MEMORY.fullmatch(region)
    }
    return DrmClient(
        device, client, engines, memory_bytes=sum((device_memory or resident).values())
    )


def _named(rows: Mapping[str, str], prefix: str) -> set[str]:
    return {key.removeprefix(prefix) for key in rows if key.startswith(prefix)}


def _number(text: str, unit: str = "") -> int | None:
    number, *units = text.split() or [""]
    is_number = number.isascii() and number.isdigit() and units in ([], [unit])
    return int(number) if is_number else None

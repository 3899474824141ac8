"""The resources of a node, and of the container of this process, as their files say.

Parsers are pure.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scaletest.observe import control_groups
from scaletest.processes import proc

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# The first columns of /proc/stat, in clock ticks.
_COLUMNS = {"user": (0, 1), "system": (2, 5, 6), "steal": (7,)}
# The clocks of so many CPUs are looked at, spread over all: each costs a file.
MOST_CPUS = 8
_CPU = re.compile(r"cpu(\d+)", re.ASCII)
_SWAPPED = re.compile(r"^pswp(in|out) (\d{1,20})$", re.MULTILINE | re.ASCII)
# The files of /proc/pressure.
_PRESSED = ("cpu", "memory", "io")
_STALLED = re.compile(r"^some .*\btotal=(\d{1,20})$", re.MULTILINE | re.ASCII)
_SECTOR_BYTES = 512
_NO_DISK = re.compile(r"(loop|ram|zram|fd|sr|dm-|md)\d+")
_BYTES_PER_MEGABIT = 125_000
# Stands for a control group that there is not: its files cannot be read.
_NOWHERE = Path("/nonexistent")


@dataclass(frozen=True, slots=True)
class ResourceReading:
    """What a resource's files said at one time, by figure."""

    # figures as they are
    levels: Mapping[str, float] = field(default_factory=dict)
    # what only grows, in the figure's unit times seconds; its growth in a second is the figure
    counters: Mapping[str, float] = field(default_factory=dict)
    # two counters, of which the first one's growth in units of the second one's is the figure
    quotients: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def interval_figures(
    before: ResourceReading | None, now: ResourceReading, interval_s: float
) -> dict[str, float]:
    """Return the figures of an interval; a new counter, or one that was reset, gives none."""
    resource_figures = dict(now.levels)
    if before is None or interval_s <= 0:
        return resource_figures
    for name, counter in now.counters.items():
        grown = counter - before.counters.get(name, float("inf"))
        if grown >= 0:
            resource_figures[name] = grown / interval_s
    for name, (counter, unit) in now.quotients.items():
        counter_before, unit_before = before.quotients.get(name, (0.0, float("inf")))
        if counter >= counter_before and unit > unit_before:
            resource_figures[name] = (counter - counter_before) / (unit - unit_before)
    return resource_figures


def parse_stat(text: str) -> ResourceReading:
    """Parse time by mode and the CPUs that are online, of /proc/stat."""
    words = text.partition("\n")[0].split()
    ticks = proc.parse_columns(words[1:9])
    if words[:1] != ["cpu"] or len(ticks) < 8:
        return ResourceReading()
    seconds = {
        name: sum(ticks[column] for column in columns) / proc.TICKS_PER_S
        for name, columns in _COLUMNS.items()
    }
    return ResourceReading({"cores": float(text.count("\ncpu"))}, seconds)


class CpuReader:
    """Reads the CPUs of the node below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._stat = proc.OpenFile(procfs / "stat")
        cpus = sysfs / "devices/system/cpu"
        matches = [_CPU.fullmatch(path.name) for path in proc.list_folder(cpus)]
        numbers = sorted(int(match[1]) for match in matches if match)
        # files of clocks, each with the highest one
        self._clocks: list[tuple[proc.OpenFile, int]] = []
        step = max(1.0, len(numbers) / MOST_CPUS)
        for index in range(min(MOST_CPUS, len(numbers))):
            folder = cpus / f"cpu{numbers[int(index * step)]}/cpufreq"
            highest = proc.parse_first_number(proc.read_text(folder / "cpuinfo_max_freq"))
            if highest:
                self._clocks.append((proc.OpenFile(folder / "scaling_cur_freq"), highest))

    def read(self) -> ResourceReading:
        """Return what can be read of them."""
        stat = parse_stat(self._stat.text())
        clocks = [(proc.parse_first_number(file.text()), highest) for file, highest in self._clocks]
        ratios = [clock / highest for clock, highest in clocks if clock]
        frequency = {"frequency": sum(ratios) / len(ratios)} if ratios else {}
        return ResourceReading({**stat.levels, **frequency}, stat.counters)


def parse_memory(text: str) -> dict[str, float]:
    """Parse the bytes of /proc/meminfo."""
    rows = proc.parse_table(text)
    names = {"total": "MemTotal", "available": "MemAvailable"}
    return {figure: rows[name] * 1024.0 for figure, name in names.items() if name in rows}


def parse_swap(text: str) -> dict[str, float]:
    """Parse the bytes that were ever swapped, of /proc/vmstat."""
    return {
        f"swap_{match[1]}": float(int(match[2]) * PAGE_BYTES) for match in _SWAPPED.finditer(text)
    }


def parse_pressure(text: str) -> float | None:
    """Parse the seconds in which some thread waited, of a file of /proc/pressure."""
    match = _STALLED.search(text)
    return int(match[1]) / 1e6 if match else None


class MemoryReader:
    """Reads the memory of the node below this root."""

    def __init__(self, procfs: Path) -> None:
        self._memory = proc.OpenFile(procfs / "meminfo")
        self._swap = proc.OpenFile(procfs / "vmstat")

    def read(self) -> ResourceReading:
        """Return what can be read of it."""
        return ResourceReading(parse_memory(self._memory.text()), parse_swap(self._swap.text()))


class PressureReader:
    """Reads the pressure on the node below this root."""

    def __init__(self, procfs: Path) -> None:
        self._files = {
            f"{resource}_some": proc.OpenFile(procfs / "pressure" / resource)
            for resource in _PRESSED
        }

    def read(self) -> ResourceReading:
        """Return what can be read of it; nothing where the kernel does not keep it."""
        stalled_s = {figure: parse_pressure(file.text()) for figure, file in self._files.items()}
        return ResourceReading(counters=_known(stalled_s))


def parse_disks(text: str) -> dict[str, ResourceReading]:
    """Parse every row of /proc/diskstats that was ever used, by its name; partitions as well.

    Its columns are reads, merged, sectors, milliseconds, the same of writes, in flight, busy
    milliseconds.
    """
    readings = {}
    for line in text.splitlines():
        columns = line.split()
        numbers = proc.parse_columns(columns[3:13])
        if len(numbers) == 10 and numbers[0] + numbers[4]:
            readings[columns[2]] = ResourceReading(
                counters={
                    "busy": numbers[9] / 1e3,
                    "read": float(numbers[2] * _SECTOR_BYTES),
                    "written": float(numbers[6] * _SECTOR_BYTES),
                }
            )
    return readings


class DiskReader:
    """Reads the disks of the node below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._statistics = proc.OpenFile(procfs / "diskstats")
        self._folder = sysfs / "block"

    def read(self) -> dict[str, ResourceReading]:
        """Return what can be read of each; nothing where it is unknown which of them are whole."""
        whole = {path.name for path in proc.list_folder(self._folder)}
        rows = parse_disks(self._statistics.text())
        return {
            name: reading
            for name, reading in rows.items()
            if name in whole and not _NO_DISK.fullmatch(name)
        }


def parse_networks(text: str) -> dict[str, ResourceReading]:
    """Parse every interface of /proc/net/dev that ever carried anything, but for the loopback.

    Its columns are bytes, packets, errors, dropped and four more: first received, then sent.
    """
    readings = {}
    for line in text.splitlines():
        name, colon, columns = line.rpartition(":")
        numbers = proc.parse_columns(columns.split())
        is_known = colon and name.strip() != "lo" and len(numbers) >= 16
        if is_known and numbers[0] + numbers[8]:
            readings[name.strip()] = ResourceReading(
                counters={
                    "received": float(numbers[0]),
                    "sent": float(numbers[8]),
                    "dropped": float(numbers[3] + numbers[11]),
                }
            )
    return readings


def parse_speed(text: str) -> dict[str, float]:
    """Parse bytes a second, of /sys/class/net/NAME/speed; -1 and 0 are no speed."""
    megabits = proc.parse_first_number(text)
    return {"speed": float(megabits * _BYTES_PER_MEGABIT)} if megabits else {}


class NetworkReader:
    """Reads the networks below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._statistics = proc.OpenFile(procfs / "net/dev")
        self._folder = sysfs / "class/net"
        self._speeds: dict[str, dict[str, float]] = {}

    def read(self) -> dict[str, ResourceReading]:
        """Return what can be read of each, but for its speed."""
        return parse_networks(self._statistics.text())

    def speed(self, name: str) -> dict[str, float]:
        """Return the figure of the first call with this interface; virtual ones have none.

        It is asked once, since a driver may have to ask its card for it.
        """
        if name not in self._speeds:
            self._speeds[name] = parse_speed(proc.read_text(self._folder / name / "speed"))
        return self._speeds[name]


def parse_periods(text: str) -> tuple[int, int] | None:
    """Parse how many periods of a CPU limit throttled and how many there were, of cpu.stat."""
    rows = proc.parse_table(text)
    if not {"nr_periods", "nr_throttled"} <= rows.keys():
        return None
    return rows["nr_throttled"], rows["nr_periods"]


def parse_reclaims(text: str) -> int | None:
    """Parse how often the limit reclaimed memory, of memory.events of version 2."""
    rows = proc.parse_table(text)
    # "high" is a limit, too: it slows down those who are above it
    return rows["max"] + rows.get("high", 0) if "max" in rows else None


def _has_memory_limit(folder: Path) -> bool:
    """Return whether a control group limits memory; version 1 writes a huge number for none."""
    text = proc.read_text(folder / "memory.max") or proc.read_text(folder / "memory.limit_in_bytes")
    limit = proc.parse_first_number(text)
    return limit is not None and limit < 2**60


class ContainerReader:
    """Reads the control groups and knows the limits that there are when it is made."""

    def __init__(self, root: Path, own_cgroup: Path) -> None:
        # the group with the lowest CPU limit, the innermost of equals
        folders = control_groups.group_folders(control_groups.CPU, root, own_cgroup)
        limits = [(control_groups.cpu_limit(folder), folder) for folder in folders]
        limited = [(limit, folder) for limit, folder in limits if limit is not None]
        lowest, folder = min(limited, key=lambda row: row[0], default=(None, _NOWHERE))
        self._levels = _known({"cpu_limit": lowest})
        self._cpu = proc.OpenFile(folder / "cpu.stat")
        own_groups = control_groups.group_folders(control_groups.MEMORY, root, own_cgroup)
        # a limit is counted in its own group and those around it, not in those within
        own_group = own_groups[0] if own_groups else _NOWHERE
        limited_group = next(filter(_has_memory_limit, own_groups), own_group)
        self._events = proc.OpenFile(limited_group / "memory.events")
        self._failures = proc.OpenFile(limited_group / "memory.failcnt")  # the same in version 1

    def read(self) -> ResourceReading:
        """Return what can be read of it."""
        reclaims = parse_reclaims(self._events.text())
        if reclaims is None:
            reclaims = proc.parse_first_number(self._failures.text())
        periods = parse_periods(self._cpu.text())
        quotients = {"throttled_periods": periods} if periods else {}
        return ResourceReading(self._levels, _known({"reclaims": reclaims}), quotients)


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}

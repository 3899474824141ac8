"""Memory of the node, and how long threads waited for CPU, memory and storage."""

import os
import re
from pathlib import Path

from scaletest.observe.node.reading import ResourceReading
from scaletest.processes import proc

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SWAPPED = re.compile(r"^pswp(in|out) (\d{1,20})$", re.MULTILINE | re.ASCII)
# Which lines of which files of /proc/pressure are figures.
_PRESSURE = {"cpu": ("some",), "memory": ("some", "full"), "io": ("some", "full")}
_STALLED = re.compile(r"^(some|full) .*\btotal=(\d{1,20})$", re.MULTILINE | re.ASCII)


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


def parse_pressure(text: str) -> dict[str, float]:
    """Parse the seconds in which some or all threads waited, of a file of /proc/pressure: some,
    full.
    """
    return {match[1]: int(match[2]) / 1e6 for match in _STALLED.finditer(text)}


class MemoryReader:
    """Reads the memory of the node below this root."""

    def __init__(self, procfs: Path) -> None:
        self._memory, self._swap = (
            proc.OpenFile(procfs / "meminfo"),
            proc.OpenFile(procfs / "vmstat"),
        )

    def read(self) -> ResourceReading:
        """Return what can be read of it."""
        return ResourceReading(parse_memory(self._memory.text()), parse_swap(self._swap.text()))


class PressureReader:
    """Reads the pressure on the node below this root."""

    def __init__(self, procfs: Path) -> None:
        self._files = {
            resource: proc.OpenFile(procfs / "pressure" / resource) for resource in _PRESSURE
        }

    def read(self) -> ResourceReading:
        """Return what can be read of it; nothing where the kernel does not keep it."""
        counters = {}
        for resource, file in self._files.items():
            for line, seconds in parse_pressure(file.text()).items():
                if line in _PRESSURE[resource]:
                    counters[f"{resource}_{line}"] = seconds
        return ResourceReading(counters=counters)

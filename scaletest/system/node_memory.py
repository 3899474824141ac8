"""The memory of a node, and the waits of threads for CPU, memory and storage; pure parsers."""

from __future__ import annotations

import os
import re
from pathlib import Path

from scaletest.system import proc
from scaletest.system.node_reading import ResourceReading
from scaletest.system.proc import OpenFile

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SWAPPED = {
    "swap_in": re.compile(r"^pswpin (.*)$", re.MULTILINE),
    "swap_out": re.compile(r"^pswpout (.*)$", re.MULTILINE),
}
# Which lines of which files of /proc/pressure are figures.
_PRESSURE = {"cpu": ("some",), "memory": ("some", "full"), "io": ("some", "full")}
_STALLED = re.compile(r"^(some|full) .*\btotal=(\d{1,20})$", re.MULTILINE | re.ASCII)


def parse_memory(text: str) -> dict[str, float]:
    """Bytes, of /proc/meminfo."""
    rows = proc.parse_table(text)
    names = {"total": "MemTotal", "available": "MemAvailable"}
    return {figure: rows[name] * 1024.0 for figure, name in names.items() if name in rows}


def parse_swap(text: str) -> dict[str, float]:
    """Bytes that were ever swapped, of /proc/vmstat."""
    matches = {figure: pattern.search(text) for figure, pattern in _SWAPPED.items()}
    pages = {figure: proc.parse_number(match[1]) for figure, match in matches.items() if match}
    return {
        figure: float(count * PAGE_BYTES) for figure, count in pages.items() if count is not None
    }


def parse_pressure(text: str) -> dict[str, float]:
    """Seconds in which some or all threads waited, of a file of /proc/pressure: some, full."""
    return {match[1]: int(match[2]) / 1e6 for match in _STALLED.finditer(text)}


class MemoryReader:
    """Reads the memory of the node below this root."""

    def __init__(self, procfs: Path) -> None:
        self._memory, self._swap = OpenFile(procfs / "meminfo"), OpenFile(procfs / "vmstat")

    def read(self) -> ResourceReading:
        """What can be read of it."""
        return ResourceReading(parse_memory(self._memory.text()), parse_swap(self._swap.text()))


class PressureReader:
    """Reads the pressure on the node below this root."""

    def __init__(self, procfs: Path) -> None:
        self._files = {resource: OpenFile(procfs / "pressure" / resource) for resource in _PRESSURE}

    def read(self) -> ResourceReading:
        """What can be read of it; nothing where the kernel does not keep it."""
        counters = {}
        for resource, lines in _PRESSURE.items():
            stalled = parse_pressure(self._files[resource].text())
            counters.update(
                {f"{resource}_{line}": stalled[line] for line in lines if line in stalled}
            )
        return ResourceReading(counters=counters)

"""The disks of a node: whole disks, without partitions, RAM disks, files and combined ones."""

from __future__ import annotations

import re
from pathlib import Path

from scaletest.system import proc
from scaletest.system.node_reading import ResourceReading
from scaletest.system.proc import OpenFile

_SECTOR_BYTES = 512
_NO_DISK = re.compile(r"(loop|ram|zram|fd|sr|dm-|md)\d+")


def parse_disks(text: str) -> dict[str, ResourceReading]:
    """Every row of /proc/diskstats that was ever used, by its name; partitions as well."""
    readings = {}
    for line in text.splitlines():
        columns = line.split()
        numbers = [proc.parse_number(word) for word in columns[3:13]]
        if len(numbers) == 10 and None not in numbers:
            readings[columns[2]] = _reading([number or 0 for number in numbers])
    return {name: reading for name, reading in readings.items() if reading.quotients["wait_s"][1]}


def _reading(columns: list[int]) -> ResourceReading:
    """reads, merged, sectors, milliseconds, the same of writes, in flight, busy milliseconds."""
    counters = {
        "busy": columns[9] / 1e3,
        "read": float(columns[2] * _SECTOR_BYTES),
        "written": float(columns[6] * _SECTOR_BYTES),
    }
    return ResourceReading(
        counters=counters,
        quotients={"wait_s": ((columns[3] + columns[7]) / 1e3, float(columns[0] + columns[4]))},
    )


class DiskReader:
    """Reads the disks of the node below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._statistics, self._folder = OpenFile(procfs / "diskstats"), sysfs / "block"
        self._names: set[str] = set()
        self._whole: set[str] = set()

    def read(self) -> dict[str, ResourceReading]:
        """What can be read of each; nothing where it is unknown which of them are whole."""
        rows = parse_disks(self._statistics.text())
        if rows.keys() != self._names:
            self._names, self._whole = set(rows), self._look()
        return {name: reading for name, reading in rows.items() if name in self._whole}

    def _look(self) -> set[str]:
        try:
            return {
                path.name for path in self._folder.iterdir() if not _NO_DISK.fullmatch(path.name)
            }
        except OSError:
            return set()

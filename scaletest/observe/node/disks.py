"""Disks of the node: whole ones, without partitions, RAM disks, files and combined disks."""

import re
from pathlib import Path

from scaletest.observe.node.reading import ResourceReading
from scaletest.processes import proc

_SECTOR_BYTES = 512
_NO_DISK = re.compile(r"(loop|ram|zram|fd|sr|dm-|md)\d+")


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
                },
                quotients={
                    "wait_s": ((numbers[3] + numbers[7]) / 1e3, float(numbers[0] + numbers[4]))
                },
            )
    return readings


class DiskReader:
    """Reads the disks of the node below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._statistics, self._folder = proc.OpenFile(procfs / "diskstats"), sysfs / "block"
        self._names: set[str] = set()
        self._whole: set[str] = set()

    def read(self) -> dict[str, ResourceReading]:
        """Return what can be read of each; nothing where it is unknown which of them are whole."""
        rows = parse_disks(self._statistics.text())
        if rows.keys() != self._names:
            folders = {path.name for path in proc.entries(self._folder)}
            self._names = set(rows)
            self._whole = {name for name in folders if not _NO_DISK.fullmatch(name)}
        return {name: reading for name, reading in rows.items() if name in self._whole}

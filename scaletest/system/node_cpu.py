"""The CPUs of a node: their work, their clocks, and throttling by heat; pure parsers."""

from __future__ import annotations

from pathlib import Path

from scaletest.system import proc
from scaletest.system.control_groups import text_of
from scaletest.system.node_reading import ResourceReading
from scaletest.system.proc import OpenFile

# Of so many CPUs clocks and heat are looked at, spread over all: each costs a file, and sockets
# heat up as a whole.
MOST_CPUS = 8
# The first columns of /proc/stat, in clock ticks.
_COLUMNS = {"user": (0, 1), "system": (2, 5, 6), "iowait": (4,), "steal": (7,)}


def parse_stat(text: str) -> ResourceReading:
    """Time by mode and the CPUs that are online, of /proc/stat."""
    columns = text.partition("\n")[0].split()
    ticks = [proc.parse_number(word) for word in columns[1:9]]
    if columns[:1] != ["cpu"] or len(ticks) < 8 or None in ticks:
        return ResourceReading()
    times = [tick or 0 for tick in ticks]
    seconds = {}
    for name, positions in _COLUMNS.items():
        ticks_of_mode = sum(times[at] for at in positions)
        seconds[name] = ticks_of_mode / proc.TICKS_PER_S
    return ResourceReading({"cores": float(text.count("\ncpu"))}, seconds)


def parse_load(text: str) -> dict[str, float]:
    """The mean of the last minute, of /proc/loadavg."""
    word = text.partition(" ")[0]
    whole, dot, part = word.partition(".")
    digits = whole + part
    if dot and digits.isascii() and digits.isdigit() and len(digits) < 20:
        return {"load": float(word)}
    return {}


def spread(numbers: list[int], most: int = MOST_CPUS) -> list[int]:
    """At most so many of them, evenly spread."""
    step = max(1.0, len(numbers) / most)
    return [numbers[int(index * step)] for index in range(min(most, len(numbers)))]


class CpuReader:
    """Reads the CPUs of the node below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._stat, self._load = OpenFile(procfs / "stat"), OpenFile(procfs / "loadavg")
        folders = _cpus(sysfs / "devices/system/cpu")
        highest = {
            folder: proc.parse_number(text_of(folder / "cpufreq/cpuinfo_max_freq"))
            for folder in folders
        }
        self._clocks = [
            (OpenFile(folder / "cpufreq/scaling_cur_freq"), most)
            for folder, most in highest.items()
            if most
        ]
        heat = (folder / "thermal_throttle/core_throttle_count" for folder in folders)
        self._heat = [OpenFile(path) for path in heat if text_of(path)]

    def read(self) -> ResourceReading:
        """What can be read of them."""
        stat = parse_stat(self._stat.text())
        levels = {**stat.levels, **parse_load(self._load.text()), **self._frequency()}
        return ResourceReading(levels, {**stat.counters, **self._throttled()})

    def _frequency(self) -> dict[str, float]:
        clocks = [(proc.parse_number(file.text()), most) for file, most in self._clocks]
        parts = [clock / most for clock, most in clocks if clock]
        return {"frequency": sum(parts) / len(parts)} if parts else {}

    def _throttled(self) -> dict[str, float]:
        """A sum without one part would look like a reset now and heat when it is back."""
        counts = [proc.parse_number(file.text()) for file in self._heat]
        known = [count for count in counts if count is not None]
        if known and len(known) == len(counts):
            return {"heat_throttled": float(sum(known))}
        return {}


def _cpus(folder: Path) -> list[Path]:
    try:
        names = [path.name for path in folder.glob("cpu[0-9]*")]
    except OSError:
        return []
    numbers = sorted(int(name[3:]) for name in names if name[3:].isdigit())
    return [folder / f"cpu{number}" for number in spread(numbers)]

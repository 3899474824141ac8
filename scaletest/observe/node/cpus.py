"""CPUs of the node: their work, their clocks, and how often heat lowered these."""

from __future__ import annotations

import re
from pathlib import Path

from scaletest.observe.node.reading import ResourceReading
from scaletest.processes import proc

# Of so many CPUs clocks and heat are looked at, spread over all: each costs a file, and sockets
# heat up as a whole.
MOST_CPUS = 8
# The first columns of /proc/stat, in clock ticks.
_COLUMNS = {"user": (0, 1), "system": (2, 5, 6), "iowait": (4,), "steal": (7,)}
_CPU = re.compile(r"cpu(\d+)", re.ASCII)
_LOAD = re.compile(r"\d{1,9}\.\d{1,9}(?![^ ])", re.ASCII)


def parse_stat(text: str) -> ResourceReading:
    """Time by mode and the CPUs that are online, of /proc/stat."""
    columns = text.partition("\n")[0].split()
    ticks = proc.parse_columns(columns[1:9])
    if columns[:1] != ["cpu"] or len(ticks) < 8:
        return ResourceReading()
    seconds = {}
    for name, positions in _COLUMNS.items():
        seconds[name] = sum(ticks[at] for at in positions) / proc.TICKS_PER_S
    return ResourceReading({"cores": float(text.count("\ncpu"))}, seconds)


def parse_load(text: str) -> dict[str, float]:
    """The mean of the last minute, of /proc/loadavg."""
    match = _LOAD.match(text)
    return {"load": float(match[0])} if match else {}


def _spread(numbers: list[int]) -> list[int]:
    """At most MOST_CPUS of them, evenly spread."""
    step = max(1.0, len(numbers) / MOST_CPUS)
    return [numbers[int(index * step)] for index in range(min(MOST_CPUS, len(numbers)))]


class CpuReader:
    """Reads the CPUs of the node below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._stat, self._load = proc.OpenFile(procfs / "stat"), proc.OpenFile(procfs / "loadavg")
        cpus = sysfs / "devices/system/cpu"
        matches = [_CPU.fullmatch(path.name) for path in proc.entries(cpus)]
        numbers = sorted(int(match[1]) for match in matches if match)
        folders = [cpus / f"cpu{number}" for number in _spread(numbers)]
        highest = {
            folder: proc.parse_number(proc.text_of(folder / "cpufreq/cpuinfo_max_freq"))
            for folder in folders
        }
        self._clocks = [
            (proc.OpenFile(folder / "cpufreq/scaling_cur_freq"), most)
            for folder, most in highest.items()
            if most
        ]
        heat = (folder / "thermal_throttle/core_throttle_count" for folder in folders)
        self._heat = [proc.OpenFile(path) for path in heat if proc.text_of(path)]

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
        counts = proc.parse_columns(file.text().strip() for file in self._heat)
        return {"heat_throttled": float(sum(counts))} if counts else {}

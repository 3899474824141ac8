"""CPUs of the node: their work, their clocks, and how often heat lowered these."""

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
    """Parse time by mode and the CPUs that are online, of /proc/stat."""
    words = text.partition("\n")[0].split()
    ticks = proc.parse_columns(words[1:9])
    if words[:1] != ["cpu"] or len(ticks) < 8:
        return ResourceReading()
    seconds = {}
    for name, columns in _COLUMNS.items():
        seconds[name] = sum(ticks[column] for column in columns) / proc.TICKS_PER_S
    return ResourceReading({"cores": float(text.count("\ncpu"))}, seconds)


def parse_load(text: str) -> dict[str, float]:
    """Parse the mean of the last minute, of /proc/loadavg."""
    match = _LOAD.match(text)
    return {"load": float(match[0])} if match else {}


class CpuReader:
    """Reads the CPUs of the node below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._stat, self._load = proc.OpenFile(procfs / "stat"), proc.OpenFile(procfs / "loadavg")
        cpus = sysfs / "devices/system/cpu"
        matches = [_CPU.fullmatch(path.name) for path in proc.entries(cpus)]
        numbers = sorted(int(match[1]) for match in matches if match)
        # files of clocks with the highest one, and files that count throttling by heat
        self._clocks: list[tuple[proc.OpenFile, int]] = []
        self._heat: list[proc.OpenFile] = []
        step = max(1.0, len(numbers) / MOST_CPUS)
        for index in range(min(MOST_CPUS, len(numbers))):
            folder = cpus / f"cpu{numbers[int(index * step)]}"
            highest = proc.parse_number(proc.text_of(folder / "cpufreq/cpuinfo_max_freq"))
            if highest:
                clock = proc.OpenFile(folder / "cpufreq/scaling_cur_freq")
                self._clocks.append((clock, highest))
            heat = folder / "thermal_throttle/core_throttle_count"
            if proc.text_of(heat):
                self._heat.append(proc.OpenFile(heat))

    def read(self) -> ResourceReading:
        """Return what can be read of them."""
        stat = parse_stat(self._stat.text())
        levels, counters = {**stat.levels, **parse_load(self._load.text())}, dict(stat.counters)
        clocks = [(proc.parse_number(file.text()), highest) for file, highest in self._clocks]
        parts = [clock / highest for clock, highest in clocks if clock]
        if parts:
            levels["frequency"] = sum(parts) / len(parts)
        # a sum without one part would look like a reset now and heat when it is back
        counts = proc.parse_columns(file.text().strip() for file in self._heat)
        if counts:
            counters["heat_throttled"] = float(sum(counts))
        return ResourceReading(levels, counters)

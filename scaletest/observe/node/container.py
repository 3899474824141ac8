"""The container that this process runs in: its use of CPU and memory, and their limits."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scaletest.observe import control_groups
from scaletest.observe.node.resources import ResourceReading
from scaletest.processes import proc

# Of both versions; those of the other one are absent.
_MEMORY_FILES = (
    *("memory.current", "memory.events"),
    *("memory.usage_in_bytes", "memory.failcnt", "memory.oom_control"),
)


def parse_cpu(text: str) -> ResourceReading:
    """Parse the CPU seconds of version 2, and the limit's periods of both, of cpu.stat."""
    rows = proc.parse_table(text)
    used = {"cpu_used": rows["usage_usec"] / 1e6} if "usage_usec" in rows else {}
    quotients = {}
    if {"nr_periods", "nr_throttled"} <= rows.keys():
        quotients["throttled_periods"] = (rows["nr_throttled"], rows["nr_periods"])
    return ResourceReading(counters=used, quotients=quotients)


def parse_memory_events(text: str) -> dict[str, float]:
    """Parse how often the limit reclaimed or killed, of memory.events of version 2."""
    rows = proc.parse_table(text)
    # "high" is a limit, too: it slows down those who are above it
    reclaims = rows["max"] + rows.get("high", 0) if "max" in rows else None
    return _known({"reclaims": reclaims, "oom_kills": rows.get("oom_kill")})


class ContainerReader:
    """Reads the control groups and knows the limits that there are when it is made."""

    def __init__(self, root: Path, own_cgroup: Path) -> None:
        cpu = control_groups.group_folders(control_groups.CPU, root, own_cgroup)
        cpu_time = control_groups.group_folders(control_groups.CPU_TIME, root, own_cgroup)
        memory = control_groups.group_folders(control_groups.MEMORY, root, own_cgroup)
        tight = _tightest(cpu, control_groups.cpu_limit)
        tight_memory = _tightest(memory, control_groups.memory_limit)
        self._limits = _known(
            {
                "cpu_limit": control_groups.cpu_limit(tight) if tight else None,
                "memory_limit": control_groups.memory_limit(tight_memory) if tight_memory else None,
            }
        )
        self._cpu = _opened(tight, "cpu.stat")
        # The same group in the other hierarchy of version 1; none where this process is in another
        # group there: what that used would be told beside the limit of this one.
        same = tight
        if tight is not None and tight not in cpu_time:
            below = tight.relative_to(root).parts[1:]
            groups = {folder.relative_to(root).parts[1:]: folder for folder in reversed(cpu_time)}
            same = groups.get(below)
        self._cpu_time = _opened(same, "cpuacct.usage")
        self._limited = [
            proc.OpenFile(path) for path in control_groups.limited_cpu_stats(root, own_cgroup)
        ]
        self._memory = {name: _opened(tight_memory, name) for name in _MEMORY_FILES}

    def read(self) -> ResourceReading:
        """Return what can be read of it."""
        cpu = parse_cpu(self._cpu.text())
        memory = {name: file.text() for name, file in self._memory.items()}
        used = memory["memory.current"] or memory["memory.usage_in_bytes"]
        levels = {**self._limits, **_known({"memory_used": proc.parse_number(used)})}
        memory_counters = parse_memory_events(memory["memory.events"])
        if not memory["memory.events"]:
            memory_counters = _known(
                {
                    "reclaims": proc.parse_number(memory["memory.failcnt"]),
                    "oom_kills": proc.parse_table(memory["memory.oom_control"]).get("oom_kill"),
                }
            )
        nanoseconds = proc.parse_number(self._cpu_time.text())  # of version 1
        counters = {
            **_known({"cpu_used": None if nanoseconds is None else nanoseconds / 1e9}),
            **cpu.counters,
            **memory_counters,
        }
        # a sum without one part would look like a reset now and a limit when it is back
        throttled = [proc.parse_throttled_s(file.text()) for file in self._limited]
        seconds = [throttled_s for throttled_s in throttled if throttled_s is not None]
        if seconds and len(seconds) == len(throttled):
            counters["throttled"] = sum(seconds)
        return ResourceReading(levels, counters, cpu.quotients if "cpu_limit" in levels else {})


def _opened(folder: Path | None, name: str) -> proc.OpenFile:
    return proc.OpenFile((folder or Path("/nonexistent")) / name)


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}


def _tightest(folders: Sequence[Path], limit: Callable[[Path], float | None]) -> Path | None:
    """Return the control group with the lowest limit, the innermost of equals; else the
    innermost.
    """
    limits = {folder: limit(folder) for folder in folders}
    limited = {folder: value for folder, value in limits.items() if value is not None}
    return min(limited, key=limited.__getitem__, default=next(iter(folders), None))

"""This process's container: limits, use, and how often a limit held it back; pure parsers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scaletest.system import control_groups, proc, throttling
from scaletest.system.node_reading import ResourceReading
from scaletest.system.proc import OpenFile

# Of both versions; those of the other one are absent.
_MEMORY_FILES = (
    *("memory.current", "memory.events"),
    *("memory.usage_in_bytes", "memory.failcnt", "memory.oom_control"),
)


def parse_cpu(text: str) -> ResourceReading:
    """CPU seconds of version 2, and the limit's periods of both, of cpu.stat."""
    rows = proc.parse_table(text)
    used = {"cpu_used": rows["usage_usec"] / 1e6} if "usage_usec" in rows else {}
    if "nr_periods" not in rows or "nr_throttled" not in rows:
        return ResourceReading(counters=used)
    return ResourceReading(
        counters=used, quotients={"throttled_periods": (rows["nr_throttled"], rows["nr_periods"])}
    )


def parse_memory_events(text: str) -> dict[str, float]:
    """How often the limit reclaimed or killed, of memory.events of version 2."""
    rows = proc.parse_table(text)
    counters = {"oom_kills": float(rows["oom_kill"])} if "oom_kill" in rows else {}
    # "high" is a limit, too: it slows down those who are above it
    if "max" in rows:
        return {"reclaims": float(rows["max"] + rows.get("high", 0)), **counters}
    return counters


class ContainerReader:
    """Reads the control groups and knows the limits that there are when it is made."""

    def __init__(self, root: Path, own: Path) -> None:
        cpu = _around(control_groups.CPU, root, own)
        cpu_time = _around(control_groups.CPU_TIME, root, own)
        memory = _around(control_groups.MEMORY, root, own)
        tight = _tightest(cpu, control_groups.cpu_limit)
        tight_memory = _tightest(memory, control_groups.memory_limit)
        self._limits = _known(
            {
                "cpu_limit": control_groups.cpu_limit(tight) if tight else None,
                "memory_limit": control_groups.memory_limit(tight_memory) if tight_memory else None,
            }
        )
        self._cpu = _opened(tight, "cpu.stat")
        self._cpu_time = _opened(_same_group(tight, cpu_time, root), "cpuacct.usage")
        self._limited = [OpenFile(Path(path)) for path in throttling.limited(root, own)]
        self._memory = {name: _opened(tight_memory, name) for name in _MEMORY_FILES}

    def read(self) -> ResourceReading:
        """What can be read of it."""
        cpu = parse_cpu(self._cpu.text())
        memory = {name: file.text() for name, file in self._memory.items()}
        used = proc.parse_number(memory["memory.current"] or memory["memory.usage_in_bytes"])
        levels = {**self._limits, **_known({"memory_used": used})}
        counters = {
            **self._cpu_used(),
            **cpu.counters,
            **self._throttled(),
            **_memory_counters(memory),
        }
        return ResourceReading(levels, counters, cpu.quotients if "cpu_limit" in levels else {})

    def _cpu_used(self) -> dict[str, float]:
        """CPU time that control groups of version 1 count."""
        nanoseconds = proc.parse_number(self._cpu_time.text())
        if nanoseconds is None:
            return {}
        return {"cpu_used": nanoseconds / 1e9}

    def _throttled(self) -> dict[str, float]:
        """A sum without one part would look like a reset now and a limit when it is back."""
        throttled = [proc.parse_limited(file.text()) for file in self._limited]
        seconds = [each[1] for each in throttled if each is not None]
        if seconds and len(seconds) == len(throttled):
            return {"throttled": sum(seconds)}
        return {}


def _memory_counters(texts: Mapping[str, str]) -> dict[str, float]:
    if texts["memory.events"]:
        return parse_memory_events(texts["memory.events"])
    kills = proc.parse_table(texts["memory.oom_control"]).get("oom_kill")
    return _known({"reclaims": proc.parse_number(texts["memory.failcnt"]), "oom_kills": kills})


def _opened(folder: Path | None, name: str) -> OpenFile:
    return OpenFile((folder or Path("/nonexistent")) / name)


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}


def _around(controller: str, root: Path, own: Path) -> list[Path]:
    try:
        return control_groups.folders(controller, root, own)
    except OSError:  # a folder that may not even be looked for
        return []


def _same_group(group: Path | None, folders: Sequence[Path], root: Path) -> Path | None:
    """The group in another hierarchy of version 1; None where this process is in another group
    there.

    What that used would be told beside the limit of this one.
    """
    if group is None or group in folders:
        return group
    below = group.relative_to(root).parts[1:]
    return next((folder for folder in folders if folder.relative_to(root).parts[1:] == below), None)


def _tightest(folders: Sequence[Path], limit: Callable[[Path], float | None]) -> Path | None:
    """The control group with the lowest limit, the innermost of equals; else the innermost."""
    limits = {folder: limit(folder) for folder in folders}
    limited = {folder: value for folder, value in limits.items() if value is not None}
    if limited:
        return min(limited, key=limited.__getitem__)
    return next(iter(folders), None)

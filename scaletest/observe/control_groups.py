"""The control groups around this process, and how long their limits held it back.

Both versions of control groups are understood; parsers are pure. Groups that this process cannot
see are left out.
"""

import os
import resource
from pathlib import Path, PurePosixPath

from scaletest.processes import proc

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
CPU, MEMORY = "cpu", "memory"
# Where a controller of version 1 may be mounted.
MOUNTS = {CPU: ("cpu", "cpu,cpuacct", "cpuacct,cpu"), MEMORY: ("memory",)}
# The kernel's own choice where nobody made another.
_PERIOD_US = 100_000


def group_folders(controller: str, root: Path = CGROUPS, own_cgroup: Path = OWN) -> list[Path]:
    """Return this process's control group of a controller and its parents, innermost first.

    root: where control groups are mounted. own_cgroup: the file that names this process's groups.
    """
    paths: list[Path] = []
    for line in proc.OpenFile(own_cgroup).text().splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        mounts = MOUNTS[controller] if controllers else ("", "unified")
        folders = (root / name for name in mounts)
        base = next((folder for folder in folders if _is_visible(folder / "cgroup.procs")), None)
        if base is not None:
            below = PurePosixPath(path.strip("/"))
            # what lies outside of a container's own view begins with ".." and cannot be seen
            parents = () if ".." in below.parts else (below, *below.parents)
            inside = [base / parent for parent in parents if str(parent) != "."]
            # a container sees itself as the root, whatever its name
            paths += filter(_is_visible, (*inside, base))
    return paths


def _is_visible(path: Path) -> bool:
    """Return whether a path exists, as far as this process may look."""
    return os.access(path, os.F_OK)


def cpu_limit(folder: Path) -> float | None:
    """Return the cores that a control group's processes may use; None without a readable limit."""
    texts = [
        proc.read_text(folder / name)
        for name in ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    ]
    fields = (texts[0] or f"{texts[1]} {texts[2] or _PERIOD_US}").split()
    try:
        quota, period = int(fields[0]), int(fields[1])
    except (IndexError, ValueError):  # "max" in version 2, nothing in version 1
        return None
    return quota / period if quota > 0 and period > 0 else None


class Throttling:
    """Counts from its creation, for the limits at that time; reads nothing without a limit."""

    def __init__(self, root: Path = CGROUPS, own_cgroup: Path = OWN) -> None:
        self._files = [
            folder / "cpu.stat"
            for folder in group_folders(CPU, root, own_cgroup)
            if cpu_limit(folder) is not None
        ]
        self._began_s = self._sum_s()
        self._periods = [_periods(path) for path in self._files]

    def seconds(self) -> float:
        """Return throttled seconds since creation, summed over CPUs; nested limits add up."""
        return max(0.0, self._sum_s() - self._began_s)

    def part(self) -> float:
        """Return the highest share of throttled periods since creation, of all limits."""
        shares = [0.0]
        for (held_back, count), path in zip(self._periods, self._files, strict=True):
            held_back_now, count_now = _periods(path)
            if held_back_now > held_back and count_now > count:
                shares.append(min(1.0, (held_back_now - held_back) / (count_now - count)))
        return max(shares)

    def _sum_s(self) -> float:
        return sum(parse_throttled_s(proc.read_text(path)) or 0.0 for path in self._files)


def parse_throttled_s(text: str) -> float | None:
    """Return the seconds for which a CPU limit held a control group back, from cpu.stat.

    None where cpu.stat does not count them.
    """
    table = proc.parse_table(text)
    if "throttled_usec" in table:  # version 2 of control groups
        return table["throttled_usec"] / 1e6
    return table["throttled_time"] / 1e9 if "throttled_time" in table else None


def _periods(path: Path) -> tuple[int, int]:
    """Return in how many periods a group was held back, and how many there were."""
    rows = proc.parse_table(proc.read_text(path))
    return rows.get("nr_throttled", 0), rows.get("nr_periods", 0)


def raise_open_files(wanted: int) -> int:
    """Allow this process so many open files, as far as the machine lets it; how many it are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft

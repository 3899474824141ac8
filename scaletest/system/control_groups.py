"""The control groups around this process that it can see, of both versions; pure parsers."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from scaletest.system import proc

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
CPU, MEMORY, CPU_TIME = "cpu", "memory", "cpuacct"
# Where a controller of version 1 may be mounted.
_MOUNTS = {
    CPU: ("cpu", "cpu,cpuacct", "cpuacct,cpu"),
    CPU_TIME: ("cpuacct", "cpu,cpuacct", "cpuacct,cpu"),
    MEMORY: ("memory",),
}
# Version 1 writes this without a limit of memory: the largest number of bytes, in whole pages.
_NO_MEMORY_LIMIT = 2**60
# The kernel's own choice where nobody made another.
_PERIOD_US = 100_000


def folders(controller: str, root: Path = CGROUPS, own: Path = OWN) -> list[Path]:
    """This process's control group of a controller and its parents, innermost first. Raises
    OSError.

    root: where control groups are mounted. own: the file that names this process's groups.
    """
    paths = []
    try:
        lines = own.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        mounts = [root, root / "unified"]
        if controllers:
            mounts = [root / name for name in _MOUNTS[controller]]
        base = next((mount for mount in mounts if (mount / "cgroup.procs").exists()), None)
        if base is not None:
            paths += _up(base, path)
    return paths


def _up(base: Path, path: str) -> list[Path]:
    """The folder and its parents; a container sees itself as the root, whatever its name."""
    below = PurePosixPath(path.strip("/"))
    # what lies outside of a container's own view begins with ".." and cannot be seen
    parents = () if ".." in below.parts else (below, *below.parents)
    inside = [base / parent for parent in parents if str(parent) != "."]
    return [folder for folder in (*inside, base) if folder.is_dir()]


def text_of(file: Path) -> str:
    """What a short file holds; "" where it cannot be read."""
    try:
        return proc.read(str(file)).decode(errors="replace")
    except OSError:
        return ""


def cpu_limit(folder: Path) -> float | None:
    """Cores that a control group's processes may use; None without a readable limit."""
    texts = [
        text_of(folder / name) for name in ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    ]
    return parse_cpu_limit(texts[0] or f"{texts[1]} {texts[2] or _PERIOD_US}")


def parse_cpu_limit(text: str) -> float | None:
    """Cores, of "QUOTA PERIOD" as in cpu.max; None without a limit."""
    fields = text.split()
    try:
        quota, period = int(fields[0]), int(fields[1])
    except (IndexError, ValueError):
        return None
    return quota / period if quota > 0 and period > 0 else None


def memory_limit(folder: Path) -> float | None:
    """Bytes that a control group's processes may use; None without a readable limit."""
    return parse_memory_limit(
        text_of(folder / "memory.max") or text_of(folder / "memory.limit_in_bytes")
    )


def parse_memory_limit(text: str) -> float | None:
    """Bytes, of memory.max or memory.limit_in_bytes; None without a limit."""
    size = proc.parse_number(text)
    if size is not None and size < _NO_MEMORY_LIMIT:
        return size
    return None

"""How long a control group's CPU limit held the processes of this container back, for both versions of cgroups."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from scaletest.system import proc

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
_CONTROLLERS = ("cpu", "cpu,cpuacct", "cpuacct,cpu")


class Throttling:
    """Counts from when it is made, for the limits that there were then. Without a limit it reads nothing."""

    def __init__(self, root: Path = CGROUPS, own: Path = OWN) -> None:
        try:
            self._files = [str(folder / "cpu.stat") for folder in _folders(root, own) if _is_limited(folder)]
        except OSError:  # a folder that may not even be looked for
            self._files = []
        self._began_s = self._sum_s()

    def seconds(self) -> float:
        """Since it was made. Several limits, one around the other, add up."""
        return max(0.0, self._sum_s() - self._began_s)

    def _sum_s(self) -> float:
        return sum(_throttled_s(path) for path in self._files)


def _folders(root: Path, own: Path) -> list[Path]:
    """Our control group and those around it, as far as they can be seen."""
    folders = []
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        bases = [root / name for name in _CONTROLLERS] if controllers else [root, root / "unified"]
        base = next((base for base in bases if (base / "cgroup.procs").exists()), None)
        if base is not None:
            folders += _up(base, path)
    return folders


def _up(base: Path, path: str) -> list[Path]:
    """The folder and its parents. A container sees itself as the root, whatever its name outside is."""
    below = PurePosixPath(path.strip("/"))
    # what lies outside of a container's own view begins with ".." and cannot be seen
    parents = () if ".." in below.parts else (below, *below.parents)
    folders = [base / parent for parent in parents if str(parent) != "."]
    return [folder for folder in (*folders, base) if folder.is_dir()]


def _is_limited(folder: Path) -> bool:
    for name, none in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        try:
            return (folder / name).read_text(encoding="utf-8").split()[:1] != [none]
        except OSError:
            continue
    return False


def _throttled_s(path: str) -> float:
    try:
        limited = proc.parse_limited(proc.read_all(path))
    except OSError:
        return 0.0
    return limited[1] if limited else 0.0

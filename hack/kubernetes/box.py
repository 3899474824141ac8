"""Namespaces and cgroups for a real node: processes of the node stay inside and end with it.

Nothing here knows Kubernetes. The state is in files of the folder, so `down` works after any
process was killed.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from hack.kubernetes.process import alive

CGROUPS = Path("/sys/fs/cgroup")
ADDRESS = "10.245.0.1"
PATIENCE_S = 30.0


class Box:
    """The namespaces and cgroups of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cgroups = folder / "cgroups.json"
        self._pid = folder / "pid"
        self._first: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Create them. Raises TimeoutError with the log of the first process."""
        self._folder.mkdir(parents=True, exist_ok=True)
        cgroups = _cgroups(f"scaletest-{os.getpid()}")
        self._cgroups.write_text(json.dumps([str(path) for path in cgroups]))  # first, for `down`
        for path in cgroups:
            _create_cgroup(path)
        with (self._folder / "log").open("ab") as log:
            first = self._first = subprocess.Popen(
                [Path(__file__).with_name("box.sh"), self._folder, ADDRESS, *cgroups],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._pid.write_text(str(first.pid))
        deadline = time.monotonic() + PATIENCE_S
        while not (self._folder / "ready").exists():
            if first.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(
                    "no namespaces for a real node:\n" + (self._folder / "log").read_text()[-2000:]
                )
            time.sleep(0.05)

    def running(self) -> bool:
        """Check whether the first process is alive."""
        return self._pid.exists() and alive(int(self._pid.read_text()))

    def network(self) -> list[str]:
        """Return the command prefix that enters the network inside, and nothing else."""
        return ["nsenter", f"--net={self.namespace()}"]

    def namespace(self) -> Path:
        """Return the path of the network namespace."""
        return self._space("net")

    def inside(self) -> list[str]:
        """Return the command prefix that enters all namespaces and cgroups."""
        spaces = {
            "mount": "mnt",
            "pid": "pid_for_children",
            "cgroup": "cgroup",
            "uts": "uts",
            "ipc": "ipc",
        }
        more = [f"--{option}={self._space(name)}" for option, name in spaces.items()]
        # a process starts in the cgroups of its parent, so the shell joins these first
        joined = ["bash", "-c", 'for each in $0; do echo $$ >"$each/cgroup.procs"; done; exec "$@"']
        return [*joined, " ".join(self._created()), *self.network(), *more]

    def down(self) -> None:
        """Kill the processes inside, and remove namespaces and cgroups."""
        cgroups = [Path(path) for path in self._created()]
        deadline = time.monotonic() + PATIENCE_S
        while any(_kill(path) for path in cgroups) and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._first:
            self._first.wait(PATIENCE_S)
        while left := [str(path) for path in cgroups if not _removed(path)]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"these cgroups cannot be removed: {', '.join(left)}")
            time.sleep(0.05)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _space(self, name: str) -> Path:
        return Path("/proc", self._pid.read_text(), "ns", name)

    def _created(self) -> list[str]:
        return list(json.loads(self._cgroups.read_text())) if self._cgroups.exists() else []


def _cgroups(name: str) -> list[Path]:
    """Name new cgroups: below this process's own in version 1, below the root in version 2."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS / name]
    paths = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers:
            paths.append(CGROUPS / controllers.removeprefix("name=") / path.lstrip("/") / name)
    return paths


def _create_cgroup(path: Path) -> None:
    path.mkdir()
    for setting in ("cpuset.cpus", "cpuset.mems"):  # empty in a new cgroup of version 1
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if not (path / setting).read_text().strip():
                (path / setting).write_text((path.parent / setting).read_text())


def _tree(path: Path) -> Iterator[Path]:
    """Walk a cgroup and all below it, children first."""
    for folder, _, _ in os.walk(path, topdown=False):
        yield Path(folder)


def _kill(path: Path) -> bool:
    """Kill every process of a cgroup and of those below; returns whether there was one."""
    killed = False
    for cgroup in _tree(path):
        with contextlib.suppress(OSError):
            for pid in (cgroup / "cgroup.procs").read_text().split():
                killed = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
    return killed


def _removed(path: Path) -> bool:
    for cgroup in _tree(path):
        with contextlib.suppress(OSError):
            cgroup.rmdir()
    return not path.exists()

"""Find out what this process can read of its children and of its node, with a sleeping child."""

import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

from scaletest.model.visibility import Visibility
from scaletest.observe.control_groups import CGROUPS, CPU, MEMORY, MOUNTS
from scaletest.processes import proc

PATIENCE_S = 2.0
LOOK_S = 0.005
# Of these drivers the kernel tells how busy a process keeps a device ("DRM client usage stats").
COUNTING_DRIVERS = ("i915", "xe", "amdgpu")


def read_visibility(
    devices: Path = Path("/dev"), drm: Path = Path("/sys/class/drm"), cgroups: Path = CGROUPS
) -> Visibility:
    """Return what this process can read now. It starts a child for the test, and ends it."""
    with subprocess.Popen(
        ["/bin/sh", "-c", "read line"],  # sleeps until its input is closed
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        # it tells its system call and kernel function only once it sleeps
        deadline = time.monotonic() + PATIENCE_S
        is_asleep = False
        while not is_asleep and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            status = proc.read_status(f"/proc/{child.pid}")
            is_asleep = status is not None and status.letter == "S"
        call = proc.read_text(f"/proc/{child.pid}/syscall").strip()
        function = proc.read_text(f"/proc/{child.pid}/wchan")
        schedule = proc.parse_schedule(proc.read_text(f"/proc/{child.pid}/schedstat").encode())
    # the render nodes and NVIDIA devices here, each with its driver, "" when hidden
    drivers = {}
    for path in sorted((devices / "dri").glob("renderD*")):
        driver = drm / path.name / "device" / "driver"
        drivers[str(path)] = driver.resolve().name if driver.exists() else ""
    drivers |= {str(path): "nvidia" for path in sorted(devices.glob("nvidia[0-9]*"))}
    counting = {*COUNTING_DRIVERS, *(["nvidia"] if find_spec("pynvml") else [])}
    is_version_1 = any((cgroups / name).is_dir() for name in (*MOUNTS[CPU], *MOUNTS[MEMORY]))
    return Visibility(
        times=bool(schedule and schedule.slices),
        calls=call not in ("", "running"),
        functions=function not in ("", "0"),
        locks=_is_readable("/proc/locks"),
        pressure=_is_readable("/proc/pressure/cpu"),
        cgroup=2 if (cgroups / "cgroup.controllers").exists() else int(is_version_1),
        devices=drivers,
        counters=tuple(sorted(counting.intersection(drivers.values()))),
    )


def _is_readable(path: str) -> bool:
    """Return whether a file has content.

    A kernel without pressure has the file but refuses reads.
    """
    try:
        proc.read(path)
    except OSError:
        return False
    return True

"""Visibility: what a worker can read of its programs and node, which limits named causes."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Visibility:
    """The information about waits and devices that a worker can read on its node."""

    times: bool  # CPU times of its programs' threads
    calls: bool  # their system calls
    functions: bool  # the kernel functions in which they wait
    locks: bool  # file locks
    pressure: bool  # whether the kernel counts pressure (PSI)
    cgroup: int  # the version of control groups, 0 without them
    devices: Mapping[str, str]  # drivers by the path of the device
    counters: tuple[str, ...] = ()  # drivers of these devices that report how busy a device is


def visibility_gaps(visibility: Visibility) -> list[dict[str, str]]:
    """Return the information that cannot be read, the effect of each gap, and its remedy."""
    # system calls may be hidden although kernel functions are not, and these tell half of it
    calls = (
        "system calls and kernel functions",
        "waits count as not observed",
        "set kernel.yama.ptrace_scope to 0 or 1 on the node, and mount /proc without hidepid",
    )
    if visibility.functions:
        effect = "waits have a state, and lock files and addresses may have no name"
        calls = ("system calls", effect, calls[2])
    cgroup = (
        "control groups",
        "limits of containers are unknown",
        "mount /sys/fs/cgroup into the container",
    )
    if visibility.cgroup == 1:
        cgroup = (
            "control groups of version 2",
            "a container's pressure and the reclaim of its memory are unknown; its CPU limit is"
            " known",
            "boot the node with version 2 (systemd.unified_cgroup_hierarchy=1)",
        )
    # whether it can be read, what it is, the effect where it cannot, and the remedy
    rows = [
        (
            visibility.times,
            "times of threads",
            "no cause is named",
            "use a kernel with CONFIG_SCHED_INFO",
        ),
        (visibility.calls, *calls),
        (
            visibility.locks,
            "/proc/locks",
            "the holder of a lock file is unknown",
            "make it readable",
        ),
        (
            visibility.pressure,
            "pressure",
            "nothing confirms that the node's CPU, memory or disk is scarce",
            "boot the node with psi=1, or use a kernel with CONFIG_PSI",
        ),
        (visibility.cgroup == 2, *cgroup),
    ]
    for path, driver in visibility.devices.items():
        remedy = "use a driver that counts its clients' time in /proc/PID/fdinfo"
        if driver == "nvidia":
            remedy = "install scaletest[nvidia] in the image"
        counters = f"counters of {path} ({driver or 'unknown driver'})"
        effect = "how busy the device is stays unknown"
        rows.append((driver in visibility.counters, counters, effect, remedy))
    return [
        {"missing": missing, "effect": effect, "remedy": remedy}
        for is_known, missing, effect, remedy in rows
        if not is_known
    ]

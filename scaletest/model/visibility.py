"""Visibility: what a worker can read of its programs and node, which limits named causes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice

from scaletest.model import checks, wire
from scaletest.model.document import read_document
from scaletest.model.errors import InvalidValue

# Beginning of the line in a worker's log that contains its visibility as JSON.
MARK = "causes can be read from: "
MOST_DEVICES = 32


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

    def to_line(self) -> str:
        """Return one line for a log."""
        return MARK + wire.dump(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> "Visibility | None":
        """Read what `to_line` wrote; None for any other line."""
        if not line.startswith(MARK):
            return None
        try:
            stored = read_document(cls, wire.load(line.removeprefix(MARK), "the view"), "the view")
        except InvalidValue:
            return None
        devices = islice(stored.devices.items(), MOST_DEVICES)
        return replace(
            stored,
            devices={
                checks.cut_text(path, 100): checks.cut_text(driver, 40) for path, driver in devices
            },
        )


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

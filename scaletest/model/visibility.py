"""What a worker can see of its programs and its node: by that it is known how well causes will be named there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue

# How a line of a worker's log begins that holds its view as JSON.
MARK = "causes can be read from: "
MOST_DEVICES = 32


@dataclass(frozen=True, slots=True)
class Visibility:
    """Of its programs' threads, whether their times, system calls and kernel functions, and file locks can be read.

    pressure: whether the kernel counts it. cgroup: the version of control groups, 0 when there are none.
    devices: path -> driver. counters: the drivers of these that tell how busy a device is.
    """

    times: bool
    calls: bool
    functions: bool
    locks: bool
    pressure: bool
    cgroup: int
    devices: Mapping[str, str]
    counters: tuple[str, ...] = ()

    def to_line(self) -> str:
        """One line for a log."""
        return MARK + wire.dump(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Visibility | None:
        """Read what `to_line` wrote; None for any other line, which a program may have written."""
        if not line.startswith(MARK):
            return None
        try:
            row = wire.take(wire.load(line.removeprefix(MARK), "the view"), "the view", _TYPES)
            row["devices"] = {checks.cut(str(path), 100): checks.cut(str(row["devices"][path]), 40) for path in
                              list(row["devices"])[:MOST_DEVICES]}  # fmt: skip
            row["counters"] = tuple(map(str, row["counters"]))
            return cls(**row)
        except (InvalidValue, KeyError, TypeError):
            return None


_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("times", "calls", "functions", "locks", "pressure"), bool),
    "cgroup": int,
    "devices": dict,
    "counters": list,
}


def visibility_gaps(view: Visibility) -> list[dict[str, str]]:
    """What cannot be read, what is not known for that, and what to do about it."""
    return [
        {"missing": missing, "effect": effect, "remedy": remedy} for missing, effect, remedy in _gaps(view) if missing
    ]


def _gaps(view: Visibility) -> list[tuple[str, str, str]]:
    return [
        ("" if view.times else "times of threads", "no cause is named", "use a kernel with CONFIG_SCHED_INFO"),
        _calls_gap(view),
        ("" if view.locks else "/proc/locks", "the holder of a lock file is unknown", "let the kernel show it"),
        (
            "" if view.pressure else "pressure",
            "nothing confirms that the node's CPU, memory or disk is scarce",
            "boot the node with psi=1, or use a kernel with CONFIG_PSI",
        ),
        _cgroup_gap(view),
        *(_device_gap(path, driver) for path, driver in view.devices.items() if driver not in view.counters),
    ]


def _calls_gap(view: Visibility) -> tuple[str, str, str]:
    remedy = "set kernel.yama.ptrace_scope to 0 or 1 on the node, and mount /proc without hidepid"
    if view.calls:
        return "", "", ""
    if view.functions:
        return "system calls", "waits have a state, and lock files and addresses may have no name", remedy
    return "system calls and kernel functions", "waits count as not observed", remedy


def _cgroup_gap(view: Visibility) -> tuple[str, str, str]:
    if view.cgroup == 2:
        return "", "", ""
    effect = "a container's pressure and the reclaim of its memory are unknown; its CPU limit is known"
    if view.cgroup == 1:
        return (
            "control groups of version 2",
            effect,
            "boot the node with version 2 (systemd.unified_cgroup_hierarchy=1)",
        )
    return "control groups", "limits of containers are unknown", "mount /sys/fs/cgroup into the container"


def _device_gap(path: str, driver: str) -> tuple[str, str, str]:
    remedy = "give the workers --device-metrics-url, the address of the vendor's exporter"
    if driver == "nvidia":
        remedy = "install scaletest[nvidia] in the image, or give the workers --device-metrics-url"
    return f"counters of {path} ({driver or 'unknown driver'})", "how busy the device is stays unknown", remedy

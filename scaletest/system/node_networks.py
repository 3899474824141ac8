"""The networks of a node, or of the pod whose network this process sees. Parsers are pure."""

from __future__ import annotations

from pathlib import Path

from scaletest.system import proc
from scaletest.system.control_groups import text_of
from scaletest.system.node_reading import ResourceReading
from scaletest.system.proc import OpenFile

_LOOPBACK = "lo"
_BYTES_PER_MEGABIT = 125_000


def parse_networks(text: str) -> dict[str, ResourceReading]:
    """Every interface of /proc/net/dev that ever carried anything, but for the loopback."""
    readings = {}
    for line in text.splitlines():
        name, colon, rest = line.rpartition(":")
        numbers = [proc.parse_number(word) for word in rest.split()]
        if colon and name.strip() != _LOOPBACK and len(numbers) >= 16 and None not in numbers:
            readings[name.strip()] = _reading([number or 0 for number in numbers])
    return {
        name: reading
        for name, reading in readings.items()
        if reading.counters["received"] + reading.counters["sent"]
    }


def _reading(columns: list[int]) -> ResourceReading:
    """Bytes, packets, errors, dropped and four more: first received, then sent."""
    return ResourceReading(
        counters={
            "received": float(columns[0]),
            "sent": float(columns[8]),
            "dropped": float(columns[3] + columns[11]),
        }
    )


def parse_speed(text: str) -> dict[str, float]:
    """Bytes a second, of /sys/class/net/NAME/speed; -1 and 0 are no speed."""
    megabits = proc.parse_number(text)
    if megabits:
        return {"speed": float(megabits * _BYTES_PER_MEGABIT)}
    return {}


class NetworkReader:
    """Reads the networks below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._statistics, self._folder = OpenFile(procfs / "net/dev"), sysfs / "class/net"
        self._speeds: dict[str, dict[str, float]] = {}

    def read(self) -> dict[str, ResourceReading]:
        """What can be read of each, but for its speed."""
        networks = parse_networks(self._statistics.text())
        # nodes make and remove an interface with every pod
        for name in self._speeds.keys() - networks.keys():
            del self._speeds[name]
        return networks

    def speed(self, name: str) -> dict[str, float]:
        """The figure at the first call with this interface; virtual ones have none."""
        if name not in self._speeds:
            self._speeds[name] = parse_speed(text_of(self._folder / name / "speed"))
        return self._speeds[name]

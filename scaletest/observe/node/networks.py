"""Networks of the node, or of the pod whose network this process sees."""

from pathlib import Path

from scaletest.observe.node.reading import ResourceReading
from scaletest.processes import proc

_LOOPBACK = "lo"
_BYTES_PER_MEGABIT = 125_000


def parse_networks(text: str) -> dict[str, ResourceReading]:
    """Parse every interface of /proc/net/dev that ever carried anything, but for the loopback.

    Its columns are bytes, packets, errors, dropped and four more: first received, then sent.
    """
    readings = {}
    for line in text.splitlines():
        name, colon, columns = line.rpartition(":")
        numbers = proc.parse_columns(columns.split())
        is_known = colon and name.strip() != _LOOPBACK and len(numbers) >= 16
        if is_known and numbers[0] + numbers[8]:
            readings[name.strip()] = ResourceReading(
                counters={
                    "received": float(numbers[0]),
                    "sent": float(numbers[8]),
                    "dropped": float(numbers[3] + numbers[11]),
                }
            )
    return readings


def parse_speed(text: str) -> dict[str, float]:
    """Parse bytes a second, of /sys/class/net/NAME/speed; -1 and 0 are no speed."""
    megabits = proc.parse_number(text)
    return {"speed": float(megabits * _BYTES_PER_MEGABIT)} if megabits else {}


class NetworkReader:
    """Reads the networks below these roots."""

    def __init__(self, procfs: Path, sysfs: Path) -> None:
        self._statistics, self._folder = proc.OpenFile(procfs / "net/dev"), sysfs / "class/net"
        self._speeds: dict[str, dict[str, float]] = {}

    def read(self) -> dict[str, ResourceReading]:
        """Read what can be read of each, but for its speed."""
        networks = parse_networks(self._statistics.text())
        # nodes make and remove an interface with every pod
        for name in self._speeds.keys() - networks.keys():
            del self._speeds[name]
        return networks

    def speed(self, name: str) -> dict[str, float]:
        """Return the figure at the first call with this interface; virtual ones have none."""
        if name not in self._speeds:
            self._speeds[name] = parse_speed(proc.text_of(self._folder / name / "speed"))
        return self._speeds[name]

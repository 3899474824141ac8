"""What the sources of device figures have in common: figures, and the names of devices."""

import re
from collections.abc import Callable, Mapping

# How often to look for devices that were not there before.
LOOK_EVERY_S = 60.0
# Of one device, as `model.node_sample.FIGURES` names them.
Figures = dict[str, float]
# Hears of what is wrong, a key and a text; the same key may come again.
Tell = Callable[[str, str], None]
_PCI = re.compile(r"([0-9a-f]{4,}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")


class DeviceNames:
    """Devices by PCI address, under the path by which workers know them."""

    def __init__(self, paths: Callable[[], Mapping[str, str]] = dict) -> None:
        """paths: PCI address -> path, as this worker's replies say it."""
        self._paths = paths
        self._nodes: dict[str, str] = {}

    def learn(self, nodes: Mapping[str, str]) -> None:
        """Take in paths of which the machine tells; those of workers come first."""
        self._nodes.update({pci: path for pci, path in nodes.items() if path})
        self._nodes.update(self._paths())

    def name_of(self, address: str, otherwise: str = "") -> str:
        """Return the path of a device, else another name for it, else its address."""
        pci = pci_address(address)
        return self._nodes.get(pci) or otherwise or pci


def pci_address(text: str) -> str:
    """Return an address as sysfs writes it: small letters, a short domain where that is enough."""
    match = _PCI.fullmatch(text.strip().lower())
    return f"{int(match[1], 16):04x}:{match[2]}" if match else text

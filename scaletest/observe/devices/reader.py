"""The devices of this node: figures from all drivers, under the names that replies use."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scaletest.model.node_sample import DEVICE
from scaletest.observe.devices.cards import Card, find_cards
from scaletest.observe.devices.nvml import NvmlDevice, find_nvml_devices


class DeviceReader:
    """Reads all devices of this node: those that are there when it reads for the first time."""

    def __init__(
        self,
        warn: Callable[[str], None] = lambda _: None,
        paths: Callable[[], Mapping[str, str]] = dict,
        root: Path = Path("/"),
    ) -> None:
        """warn: hears of devices that cannot be read.

        paths: PCI address -> path, as this worker's replies say it. root: of sys and dev.
        """
        self._warn = warn
        self._paths = paths
        self._root = root
        self._devices: Sequence[Card | NvmlDevice] | None = None

    def read(self) -> dict[str, dict[str, float]]:
        """Return figures by "device:NAME"; what cannot be read is absent."""
        if self._devices is None:  # looked for late, since most workers never read their node
            names = self._paths()
            cards = find_cards(self._root / "sys", names)
            self._devices = [*cards, *find_nvml_devices(self._root / "dev", names, self._warn)]
        resources = {f"{DEVICE}:{device.name}": device.read() for device in self._devices}
        return {name: figures for name, figures in resources.items() if figures}

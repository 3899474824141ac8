"""The devices of this node: figures from all sources, under the names that replies use."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from scaletest.observe.devices.cards import CardSource
from scaletest.observe.devices.nvml import NvmlSource
from scaletest.observe.devices.readings import DeviceNames, Figures, Tell

# A node's sample holds 64 resources in all.
MOST_DEVICES = 32


class DeviceReader:
    """Reads all devices of this node on each call. Never fails: it leaves out failing sources."""

    def __init__(
        self,
        tell: Tell = lambda _key, _text: None,
        paths: Callable[[], Mapping[str, str]] = dict,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """tell: hears of what is wrong, of each matter once: a key and a text.

        paths: PCI address -> path, as this worker's replies say it. root: of sys and dev.
        """
        self._tell = tell
        self._told: set[str] = set()
        names = DeviceNames(paths)
        self._sources: list[CardSource | NvmlSource] = [
            CardSource(names, root, clock),
            NvmlSource(names, self._tell_once, root / "dev", clock),
        ]
        self._energy_j: dict[str, float] = {}

    def read(self) -> dict[str, Figures]:
        """Return figures by "device:NAME"; what cannot be read is absent."""
        figures: dict[str, Figures] = {}
        for source in list(self._sources):
            try:
                figures.update(source.read())
            except Exception as error:
                self._sources.remove(source)
                kind = type(source).__name__
                self._tell_once(
                    kind, f"devices are not read any more ({kind}): {type(error).__name__}: {error}"
                )
        names = [name for name in sorted(figures) if figures[name]][:MOST_DEVICES]
        for name in names:
            # energy that is less than before says nothing: its counter was reset
            before_j = self._energy_j.get(name, 0.0)
            self._energy_j[name] = figures[name].get("energy_j", before_j)
            if self._energy_j[name] < before_j:
                del figures[name]["energy_j"]
        return {f"device:{name}": figures[name] for name in names}

    def _tell_once(self, key: str, text: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._tell(key, text)

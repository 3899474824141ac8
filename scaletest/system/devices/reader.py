"""The devices of this node: their figures from all sources that there are, under the names that replies use."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from scaletest.system.devices.cards import Cards, Figures

# How often to look for devices that were not there before.
AGAIN_S = 60.0
# A node's sample holds 64 resources in all.
MOST_DEVICES = 32
Tell = Callable[[str, str], None]


class Names:
    """Devices by PCI address, under the path by which workers know them."""

    def __init__(self, paths: Callable[[], Mapping[str, str]] = dict) -> None:
        """paths: PCI address -> path, as this worker's replies say it."""
        self._paths = paths
        self._nodes: dict[str, str] = {}

    def learn(self, nodes: Mapping[str, str]) -> None:
        """Take in paths of which the machine tells; those of workers come first."""
        self._nodes.update({pci: path for pci, path in nodes.items() if path})
        self._nodes.update(self._paths())

    def of(self, pci: str) -> str:
        """The path of a device, else its address."""
        return self._nodes.get(pci, pci)


class Source(Protocol):
    """Something that knows devices."""

    def read(self) -> Mapping[str, tuple[Figures, list[str]]]:
        """Figures by the device's name, and where they come from; nothing when there is nothing to read."""


class CardSource:
    """Graphics cards of which the kernel tells."""

    def __init__(self, names: Names, root: Path, clock: Callable[[], float]) -> None:
        self._names = names
        self._cards = Cards(root, clock)
        self._clock = clock
        self._next_s = float("-inf")

    def read(self) -> Mapping[str, tuple[Figures, list[str]]]:
        """Looks for cards now and then."""
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + AGAIN_S
            self._cards.find()
            self._names.learn({card.pci: card.node for card in self._cards.cards})
        return {self._names.of(card.pci): self._cards.read(card) for card in self._cards.cards}


class DeviceReader:
    """Reads all devices of this node, whenever it is asked. It never fails: a source that does is left out."""

    def __init__(
        self,
        tell: Tell = lambda _key, _text: None,
        paths: Callable[[], Mapping[str, str]] = dict,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """tell: hears of what is wrong, a key and a text; the same key may come again.

        paths: PCI address -> path, as this worker's replies say it. root: of sys and dev.
        """
        self._tell = tell
        names = Names(paths)
        self._sources: list[Source] = [CardSource(names, root, clock)]
        self._energy_j: dict[str, float] = {}

    def read(self) -> tuple[dict[str, Figures], dict[str, str]]:
        """Figures, and where they come from, by "device:NAME"; what cannot be read is absent.

        Of what several sources know the first one counts.
        """
        figures: dict[str, Figures] = {}
        sources: dict[str, list[str]] = {}
        for source in list(self._sources):
            try:
                devices = source.read()
            except Exception as error:
                self._sources.remove(source)
                kind = type(source).__name__
                self._tell(kind, f"devices are not read any more ({kind}): {type(error).__name__}: {error}")
                continue
            for name, (values, origins) in devices.items():
                _merge(figures.setdefault(name, {}), values, sources.setdefault(name, []), origins)
        names = [name for name in sorted(figures) if figures[name]][:MOST_DEVICES]
        for name in names:
            self._drop_reset(name, figures[name])
        return (
            {f"device:{name}": figures[name] for name in names},
            {f"device:{name}": ", ".join(sources[name]) for name in names},
        )

    def _drop_reset(self, name: str, figures: Figures) -> None:
        """Energy that is less than before says nothing: its counter was reset."""
        energy_j = figures.get("energy_j")
        if energy_j is None:
            return
        if energy_j < self._energy_j.get(name, 0.0):
            del figures["energy_j"]
        self._energy_j[name] = energy_j


def _merge(figures: Figures, values: Figures, sources: list[str], origins: list[str]) -> None:
    new = {name: value for name, value in values.items() if name not in figures}
    figures.update(new)
    sources += [origin for origin in origins if new and origin not in sources]

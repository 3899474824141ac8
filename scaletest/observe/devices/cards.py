"""Figures of this machine's graphics cards by sysfs and hwmon: i915, xe, amdgpu.

A card that sleeps is not woken: it has no figures then. Files that are absent, or may not be read,
are left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from scaletest.processes import proc


class ClockFiles(NamedTuple):
    """The files of one part of a card that has a clock of its own."""

    present: str  # its clock, in MHz
    highest: str  # the highest clock, in MHz
    limited: str  # 1 while heat, power or another limit lowers the clock, else 0


# By driver: the folders of a card's parts, and the files in each of them.
_CLOCKS = {
    "i915": (
        "drm/card*/gt/gt*",
        ClockFiles("rps_act_freq_mhz", "rps_RP0_freq_mhz", "throttle_reason_status"),
    ),
    "xe": (
        "tile*/gt*",
        ClockFiles("freq0/act_freq", "freq0/rp0_freq", "freq0/throttle/status"),
    ),
}
_DRIVERS = (*_CLOCKS, "amdgpu")
# Figure, file in the card's folder, and by what to multiply its number; only amdgpu has these.
_NUMBERS = (
    ("busy", "gpu_busy_percent", 0.01),
    ("memory_busy", "mem_busy_percent", 0.01),
    ("memory_used", "mem_info_vram_used", 1.0),
    ("memory_total", "mem_info_vram_total", 1.0),
)
# The same in its folder of hwmon: microjoules, microwatts, thousandths of a degree. xe calls the
# whole card 1 and its chip 2; some cards lack one. The first file that is there counts.
_SENSORS = (
    ("energy_j", "energy1_input", 1e-6),
    ("energy_j", "energy2_input", 1e-6),
    ("power", "power1_average", 1e-6),
    ("power", "power1_input", 1e-6),
    ("temperature", "temp1_input", 1e-3),
    ("temperature", "temp2_input", 1e-3),
)
_CARD = re.compile(r"card\d+")
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_LEVEL = re.compile(r"^\S+:\s*(\d+)\s*mhz\s*(\*?)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Card:
    """One card, and the files that it may have."""

    name: str  # as replies call it, else the path of its render node, else its PCI address
    power_status: Path  # whether it sleeps
    levels: Path  # the clocks of an amdgpu
    clocks: list[ClockFiles]  # with their whole paths
    # by figure: a file, and by what to multiply its number
    numbers: dict[str, tuple[Path, float]]

    def read(self) -> dict[str, float]:
        """Return its figures now."""
        if proc.read_text(self.power_status).strip() == "suspended":
            return {}
        figures: dict[str, float] = {}
        for figure, (path, scale) in self.numbers.items():
            number = _number(path)
            if number is not None:
                figures[figure] = number * scale
        # of several parts the one with the highest clock, and any that is held back
        ratios = [parse_levels(proc.read_text(self.levels))]
        limits = []
        for clock in self.clocks:
            present, highest = _number(clock.present), _number(clock.highest)
            if present is not None and highest:
                ratios.append(present / highest)
            limits.append(_number(clock.limited))
        known_ratios = [ratio for ratio in ratios if ratio is not None]
        if known_ratios:
            figures["frequency"] = max(known_ratios)
        known_limits = [limit for limit in limits if limit is not None]
        if known_limits:
            figures["throttled"] = float(any(known_limits))
        return figures


def find_cards(sysfs: Path, names: Mapping[str, str]) -> list[Card]:
    """Return the cards of which the kernel tells. names: as replies call them, by PCI address."""
    cards = []
    for link in sorted(proc.list_folder(sysfs / "class/drm")):
        folder = (link / "device").resolve()
        driver = (folder / "driver").resolve().name
        is_card = _CARD.fullmatch(link.name) and _PCI.fullmatch(folder.name)
        if not is_card or driver not in _DRIVERS:
            continue
        nodes = [path.name for path in proc.list_folder(folder / "drm")]
        render_nodes = sorted(f"/dev/dri/{name}" for name in nodes if name.startswith("renderD"))
        clocks = []
        if driver in _CLOCKS:
            parts, clock_files = _CLOCKS[driver]
            clocks = [
                ClockFiles(*(str(part / name) for name in clock_files))
                for part in sorted(folder.glob(parts))
            ]
        files = [(figure, folder / name, scale) for figure, name, scale in _NUMBERS]
        for sensors in sorted(proc.list_folder(folder / "hwmon")):
            # i915 has further sensors of its parts, under other names
            if proc.read_text(sensors / "name").strip() == driver:
                files += [(figure, sensors / name, scale) for figure, name, scale in _SENSORS]
        numbers: dict[str, tuple[Path, float]] = {}
        for figure, path, scale in files:
            if path.exists():
                numbers.setdefault(figure, (path, scale))
        cards.append(
            Card(
                name=names.get(folder.name) or next(iter(render_nodes), folder.name),
                power_status=folder / "power/runtime_status",
                levels=folder / "pp_dpm_sclk",
                clocks=clocks,
                numbers=numbers,
            )
        )
    return cards


def parse_levels(text: str) -> float | None:
    """Return the present clock over the highest, in amdgpu's pp_dpm_sclk; None without one.

    A star marks the present.
    """
    levels = [(int(match[1]), bool(match[2])) for match in _LEVEL.finditer(text)]
    highest = max((clock for clock, _ in levels), default=0)
    present = next((clock for clock, is_present in levels if is_present), None)
    return None if present is None or not highest else present / highest


def _number(path: str | Path) -> int | None:
    return proc.parse_first_number(proc.read_text(path))

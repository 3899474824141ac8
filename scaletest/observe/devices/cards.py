"""Figures of this machine's graphics cards by sysfs and hwmon: i915, xe, amdgpu.

A card that sleeps is not woken; then its figures say only that. Files that are absent, or may not
be read, are left out.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from scaletest.observe.devices.readings import LOOK_EVERY_S, DeviceNames, Figures
from scaletest.processes import proc

_I915 = (
    "rps_act_freq_mhz",
    "rps_RP0_freq_mhz",
    "throttle_reason_status",
    "throttle_reason_*",
    "rc6_residency_ms",
)
# Kernels before 5.18 have one clock, in the card's own folder.
_OLD_I915 = (
    "gt_act_freq_mhz",
    "gt_RP0_freq_mhz",
    "throttle_reason_status",
    "throttle_reason_*",
    "power/rc6_residency_ms",
)
_XE = (
    "freq0/act_freq",
    "freq0/rp0_freq",
    "freq0/throttle/status",
    "freq0/throttle/reason_*",
    "gtidle/idle_residency_ms",
)
_AMD_NUMBERS = (
    ("busy", "gpu_busy_percent", 0.01),
    ("memory_busy", "mem_busy_percent", 0.01),
    ("memory_used", "mem_info_vram_used", 1.0),
    ("memory_total", "mem_info_vram_total", 1.0),
)
# Microjoules, microwatts, thousandths of a degree. xe calls the whole card 1 and its chip 2; some
# cards lack one.
_SENSORS = (
    ("energy_j", "energy1_input", 1e-6),
    ("energy_j", "energy2_input", 1e-6),
    ("power", "power1_average", 1e-6),
    ("power", "power1_input", 1e-6),
    ("temperature", "temp1_input", 1e-3),
    ("temperature", "temp2_input", 1e-3),
)

_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_LEVEL = re.compile(r"^\S+:\s*(\d+)\s*mhz\s*(\*?)", re.IGNORECASE | re.MULTILINE)


def parse_levels(text: str) -> float | None:
    """Return the present clock over the highest, in amdgpu's pp_dpm_sclk.

    A star marks the present.
    """
    levels = [(int(match[1]), bool(match[2])) for match in _LEVEL.finditer(text)]
    highest = max((clock for clock, _ in levels), default=0)
    present = next((clock for clock, now in levels if now), None)
    return None if present is None or not highest else present / highest


class CardClock(NamedTuple):
    """Files of one part of a card."""

    actual: str  # its clock
    highest: str  # the highest clock
    throttled: tuple[str, ...]  # what lowers the clock
    sleep: str  # milliseconds of sleep


@dataclass(frozen=True, slots=True)
class Card:
    """One card, and the files that it has."""

    link: Path  # in /sys/class/drm
    folder: Path  # of its PCI device, named after its address
    node: str = ""  # the path of its render node; "" when it has none
    clocks: tuple[CardClock, ...] = ()
    # figure, file, and by what to multiply its number
    numbers: tuple[tuple[str, str, float], ...] = ()
    levels: str = ""  # a file of clocks
    sensors: tuple[tuple[str, str, float], ...] = ()  # as `numbers`
    status: str = ""  # of its sleep
    # what files of sleep held when they were last read
    slept: dict[str, tuple[float, float]] = field(default_factory=dict)

    def awake(self, path: str, now_s: float) -> float | None:
        """Return the part of the time since the last reading of a file of sleep that it was awake.

        None at first.
        """
        slept_ms, last = _number(path), self.slept.pop(path, None)
        if slept_ms is None:
            return None
        self.slept[path] = (slept_ms, now_s)
        if last is None or slept_ms < last[0] or now_s <= last[1]:
            return None
        return min(1.0, max(0.0, 1.0 - (slept_ms - last[0]) / 1000.0 / (now_s - last[1])))


class CardSource:
    """Graphics cards of which the kernel tells."""

    def __init__(self, names: DeviceNames, root: Path, clock: Callable[[], float]) -> None:
        """root: of sys."""
        self._names = names
        self._root = root
        self._clock = clock
        self._next_s = float("-inf")
        self._cards: list[Card] = []

    def read(self) -> Mapping[str, Figures]:
        """Look for cards now and then."""
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + LOOK_EVERY_S
            self.find()
            self._names.learn({card.folder.name: card.node for card in self._cards})
        return {self._names.name_of(card.folder.name): self._read(card) for card in self._cards}

    def find(self) -> None:
        """Look which cards there are. Raises nothing."""
        known = {(card.link, card.folder): card for card in self._cards}
        self._cards = []
        for link in sorted(proc.list_folder(self._root / "sys/class/drm")):
            if not re.fullmatch(r"card\d+", link.name):
                continue
            with suppress(OSError):  # it has no device
                folder = (link / "device").resolve(strict=True)
                driver = (folder / "driver").resolve().name
                if _PCI.fullmatch(folder.name) and driver in ("i915", "xe", "amdgpu"):
                    self._cards.append(known.get((link, folder)) or _card(link, folder, driver))

    def _read(self, card: Card) -> Figures:
        if proc.read_text(card.status).strip() == "suspended":
            card.slept.clear()  # the next reading is the first one
            return {"awake": 0.0}
        now_s = self._clock()
        figures = {**dict(_numbers(card.sensors)), **dict(_numbers(card.numbers))}
        for share in figures.keys() & {"busy", "memory_busy"}:
            figures[share] = min(1.0, figures[share])
        clocks = [parse_levels(proc.read_text(card.levels))]
        for clock in card.clocks:
            actual, highest = _number(clock.actual), _number(clock.highest)
            if actual is not None and actual >= 0 and highest:
                clocks.append(actual / highest)
        _highest(figures, "frequency", clocks)
        reasons = map(_number, chain.from_iterable(clock.throttled for clock in card.clocks))
        _highest(
            figures, "throttled", (float(reason > 0) for reason in reasons if reason is not None)
        )
        _highest(figures, "awake", (card.awake(clock.sleep, now_s) for clock in card.clocks))
        return figures


def _card(link: Path, folder: Path, driver: str) -> Card:
    """Return a card with the files that it has."""
    nodes = sorted(
        path.name for path in proc.list_folder(folder / "drm") if path.name.startswith("renderD")
    )
    is_amd = driver == "amdgpu"
    # the sensors of the whole card; i915 has further sensors of its parts, under other names
    folders = [
        path
        for path in sorted(proc.list_folder(folder / "hwmon"))
        if proc.read_text(path / "name").strip() == driver
    ]
    sensors = [sensor for path in folders[:1] for sensor in _readable(path, _SENSORS)]
    # the second one of a figure stands in where the first one cannot be read at all
    by_figure = {
        sensor[0]: sensor for sensor in reversed(sensors) if _number(sensor[1]) is not None
    }
    return Card(
        link,
        folder,
        node=f"/dev/dri/{nodes[0]}" if nodes else "",
        clocks=tuple(_clocks(driver, link, folder)),
        numbers=_readable(folder, _AMD_NUMBERS) if is_amd else (),
        levels=str(folder / "pp_dpm_sclk") if is_amd else "",
        sensors=tuple(by_figure.values()),
        status=str(folder / "power/runtime_status"),
    )


def _clock(part: Path, files: tuple[str, str, str, str, str]) -> CardClock:
    """Return the clock of one part of a card, by where its files lie below its folder.

    files: the present clock, the highest, the status of all reasons for a lower clock, a pattern of
    these reasons where there is no such file, and the time asleep.
    """
    actual, highest, status, reasons, sleep = files
    throttled = [part / status] if _is_readable(part / status) else sorted(part.glob(reasons))
    return CardClock(
        str(part / actual), str(part / highest), tuple(map(str, throttled)), str(part / sleep)
    )


def _clocks(driver: str, link: Path, folder: Path) -> list[CardClock]:
    """Return the clocks of all parts of the card; those of amdgpu are levels, in one file."""
    if driver == "xe":
        return [_clock(part, _XE) for part in sorted(folder.glob("tile*/gt*"))]
    if driver == "i915" and (link / "gt").is_dir():
        return [_clock(part, _I915) for part in sorted((link / "gt").glob("gt*"))]
    return [_clock(link, _OLD_I915)] if driver == "i915" else []


def _readable(
    folder: Path, files: Sequence[tuple[str, str, float]]
) -> tuple[tuple[str, str, float], ...]:
    return tuple(
        (figure, str(folder / name), scale)
        for figure, name, scale in files
        if _is_readable(folder / name)
    )


def _is_readable(path: Path) -> bool:
    return os.access(path, os.R_OK)


def _numbers(files: Iterable[tuple[str, str, float]]) -> Iterable[tuple[str, float]]:
    for figure, path, scale in files:
        value = _number(path)
        if value is not None and value >= 0:
            yield figure, value * scale


def _highest(figures: Figures, figure: str, values: Iterable[float | None]) -> None:
    known = [value for value in values if value is not None]
    if known:
        figures[figure] = max(known)


def _number(path: str) -> float | None:
    text = proc.read_text(path).strip()
    return float(text) if re.fullmatch(r"-?[0-9]{1,20}", text) else None

"""Parse what the kernel says of an open device file, in /proc/PID/fdinfo/N.

The format is that of the kernel's page "DRM client usage stats": i915, amdgpu and others count
nanoseconds of each kind of engine, xe counts cycles beside a clock of the device.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

_ROW = re.compile(r"^(drm-[^:\n]*):(.*)$", re.MULTILINE)
# drm-engine-capacity-NAME is not an engine.
_ENGINE = re.compile(r"drm-(?:engine|cycles)-(?!capacity-)(.+)")
# Resident memory, by its present name and the older one, which some drivers write beside it.
_RESIDENT = re.compile(r"drm-(?:resident|memory)-(.+)")
_UNITS = {"": 1, "B": 1, "KIB": 1024, "MIB": 1024**2, "GIB": 1024**3}
# Memory of the device itself, as against memory of the machine that it uses.
_OWN_MEMORY = re.compile(r"(?:stolen-)?(?:vram|local)\d*")


class Engine(NamedTuple):
    """Counters of one kind of engine since the client was opened."""

    busy_ns: int | None  # None where the driver counts cycles
    cycles: int | None  # busy ones, None where it does not count them
    clock: int | None  # cycles that passed
    capacity: int  # how many engines of the kind the device has


class DrmClient(NamedTuple):
    """One opening of one device, which several descriptors and processes may share."""

    device: str  # PCI address, or the driver's name for a device that is not on PCI
    id: str  # unique for the device
    engines: Mapping[str, Engine]
    memory_bytes: int  # of the device's own memory, of the machine's where the device has none

    @property
    def key(self) -> tuple[str, str]:
        """The device and the id, which no other client has."""
        return self.device, self.id


def parse_fdinfo(text: str) -> DrmClient | None:
    """Parse fdinfo; None when no graphics driver wrote it, or it does not tell clients apart."""
    rows = {match[1].strip(): match[2].strip() for match in _ROW.finditer(text)}
    device = rows.get("drm-pdev") or rows.get("drm-driver", "")
    client = rows.get("drm-client-id", "")
    if not device or not client:
        return None
    names = {match[1] for match in map(_ENGINE.fullmatch, rows) if match}
    engines = {
        name: Engine(
            busy_ns=_number(rows.get(f"drm-engine-{name}", ""), "ns"),
            cycles=_number(rows.get(f"drm-cycles-{name}", "")),
            clock=_number(rows.get(f"drm-total-cycles-{name}", "")),
            capacity=_number(rows.get(f"drm-engine-capacity-{name}", "1")) or 1,
        )
        for name in sorted(names)
    }
    resident: dict[str, int] = {}  # bytes by region of memory
    for label, row in rows.items():
        if match := _RESIDENT.fullmatch(label):
            number, _, unit = row.partition(" ")
            resident[match[1]] = (_number(number) or 0) * _UNITS.get(unit.strip().upper(), 0)
    device_memory = {
        region: size for region, size in resident.items() if _OWN_MEMORY.fullmatch(region)
    }
    return DrmClient(
        device, client, engines, memory_bytes=sum((device_memory or resident).values())
    )


def _number(text: str, unit: str = "") -> int | None:
    """Return the number of a value, which may have this unit; None for anything else."""
    number, *units = text.split() or [""]
    is_number = number.isascii() and number.isdigit() and units in ([], [unit])
    return int(number) if is_number else None

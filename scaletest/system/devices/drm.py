"""What the kernel's graphics drivers say of one open device file, in /proc/PID/fdinfo/N. Pure.

The form is that of the kernel's page "DRM client usage stats": i915, amdgpu and others count
nanoseconds of each kind of engine, xe counts cycles beside a clock of the device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_PREFIX = "drm-"
_UNITS = {"": 1, "B": 1, "KIB": 1024, "MIB": 1024**2, "GIB": 1024**3}
# Memory of the device itself, as against memory of the machine that it uses.
_OWN_MEMORY = re.compile(r"(?:stolen-)?(?:vram|local)\d*")
# The older name for resident memory.
_RESIDENT = ("drm-resident-", "drm-memory-")


class Engine(NamedTuple):
    """Counters of one kind of engine since the client was opened.

    busy_ns: None where the driver counts cycles. cycles: busy ones, clock: those that passed; None
    where it does not count them. capacity: how many engines of the kind the device has.
    """

    busy_ns: int | None
    cycles: int | None
    clock: int | None
    capacity: int


class DrmClient(NamedTuple):
    """One opening of one device, which several descriptors and processes may share.

    device: PCI address, or the driver's name for a device that is not on PCI. id: unique for the
    device.
    memory_bytes: of the device's own memory, of the machine's where the device has none.
    """

    device: str
    id: str
    engines: Mapping[str, Engine]
    memory_bytes: int


def parse_fdinfo(text: str) -> DrmClient | None:
    """None when the file is no graphics driver's, or does not tell clients apart."""
    rows = _rows(text)
    device, client = (
        rows.get("drm-pdev") or rows.get("drm-driver", ""),
        rows.get("drm-client-id", ""),
    )
    if not device or not client:
        return None
    names = _named(rows, "drm-engine-") | _named(rows, "drm-cycles-")
    names = {name for name in names if not name.startswith("capacity-")}
    engines = {name: _engine(rows, name) for name in sorted(names)}
    return DrmClient(device, client, engines, _memory_bytes(rows))


def _rows(text: str) -> dict[str, str]:
    rows = {}
    for line in text.splitlines():
        key, colon, text = line.partition(":")
        if colon and key.startswith(_PREFIX):
            rows[key.strip()] = text.strip()
    return rows


def _named(rows: Mapping[str, str], prefix: str) -> set[str]:
    return {key.removeprefix(prefix) for key in rows if key.startswith(prefix)}


def _engine(rows: Mapping[str, str], name: str) -> Engine:
    capacity = _number(rows.get(f"drm-engine-capacity-{name}", "1"))
    return Engine(
        _number(rows.get(f"drm-engine-{name}", ""), "ns"),
        _number(rows.get(f"drm-cycles-{name}", "")),
        _number(rows.get(f"drm-total-cycles-{name}", "")),
        capacity or 1,
    )


def _number(text: str, unit: str = "") -> int | None:
    fields = text.split()
    if (
        fields[1:] not in ([], [unit])
        or not fields
        or not (fields[0].isascii() and fields[0].isdigit())
    ):
        return None
    return int(fields[0])


def _memory_bytes(rows: Mapping[str, str]) -> int:
    resident: dict[str, int] = {}
    for prefix in _RESIDENT:
        for region in _named(rows, prefix):
            resident.setdefault(region, _bytes(rows[f"{prefix}{region}"]))
    own = {region: size for region, size in resident.items() if _OWN_MEMORY.fullmatch(region)}
    return sum((own or resident).values())


def _bytes(text: str) -> int:
    number, _, unit = text.partition(" ")
    size = _number(number)
    return (size or 0) * _UNITS.get(unit.strip().upper(), 0)

"""Identify a device: from the path of its node to PCI address, vendor and model, as far as the
system knows.

Reads sysfs and, for NVIDIA's driver, which shows nothing there, procfs; their roots are parameters.
Opens no device.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path("/sys")
PROCFS = Path("/proc")
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_VENDORS = {
    "0x8086": "Intel",
    "0x10de": "NVIDIA",
    "0x1002": "AMD",
    "0x144d": "Samsung",
    "0x15b3": "Mellanox",
}
# Where drivers write a name for people, below the device's or the PCI function's folder.
_MODEL_FILES = ("device/model", "product_name", "label")
_ATTRIBUTE_BYTES = 200


@dataclass(frozen=True, slots=True)
class Device:
    """One device. Text is empty where the system does not know.

    id: PCI address, else device number as major:minor, else the path of an ordinary file.
    vendor_id: as sysfs writes it, 0x8086. unique: the name by which the vendor's own libraries know
    this one device.
    """

    path: str
    id: str
    pci: str = ""
    vendor_id: str = ""
    vendor: str = ""
    model: str = ""
    unique: str = ""

    def info(self) -> dict[str, str]:
        """Fields of a reply that describe the device, besides its path."""
        row = {"id": self.id, "pci": self.pci, "vendor": self.vendor, "model": self.model}
        return {name: value for name, value in row.items() if value}


def identify(path: str, sysfs: Path = SYSFS, procfs: Path = PROCFS) -> Device:
    """The device behind a node. Raises OSError when there is no such file."""
    state = os.stat(path)  # noqa: PTH116
    if not stat.S_ISCHR(state.st_mode) and not stat.S_ISBLK(state.st_mode):
        return Device(path, os.path.realpath(path))
    number = f"{os.major(state.st_rdev)}:{os.minor(state.st_rdev)}"
    return by_number(
        path, number, sysfs, procfs, "block" if stat.S_ISBLK(state.st_mode) else "char"
    )


def by_number(
    path: str, number: str, sysfs: Path = SYSFS, procfs: Path = PROCFS, kind: str = "char"
) -> Device:
    """The device with this number, as major:minor."""
    folder = (sysfs / "dev" / kind / number).resolve()
    function = next(
        (parent for parent in (folder, *folder.parents) if _PCI.fullmatch(parent.name)), None
    )
    if function is None:
        return _of_nvidia(path, number, sysfs, procfs)
    vendor_id = _read(function / "vendor")
    model = _first_text([*_model_files(folder), *_model_files(function)]) or _numbers(
        vendor_id, _read(function / "device")
    )
    unique = _read(function / "unique_id")
    return Device(
        path,
        function.name,
        function.name,
        vendor_id,
        _VENDORS.get(vendor_id, ""),
        model,
        f"GPU-{unique}" if unique else "",
    )


def _of_nvidia(path: str, number: str, sysfs: Path, procfs: Path) -> Device:
    """Identify by the minor number in NVIDIA's driver; an unlisted device keeps its number."""
    major, minor = number.split(":")
    if major == "195":
        for file in sorted((procfs / "driver/nvidia/gpus").glob("*/information")):
            rows = dict(
                line.split(":", 1) for line in _read(file, 4096).splitlines() if ":" in line
            )
            row = {name.strip(): value.strip() for name, value in rows.items()}
            if row.get("Device Minor") == minor:
                pci, uuid = file.parent.name.lower(), row.get("GPU UUID", "")
                vendor_id = _read(sysfs / "bus/pci/devices" / pci / "vendor") or "0x10de"
                # a GPU that was never used shows question marks
                return Device(
                    path,
                    pci,
                    pci,
                    vendor_id,
                    "NVIDIA",
                    row.get("Model", ""),
                    "" if "?" in uuid else uuid,
                )
    return Device(path, number)


def _model_files(folder: Path) -> list[Path]:
    return [folder / name for name in _MODEL_FILES]


def _first_text(files: Sequence[Path]) -> str:
    """The first content that is not empty."""
    return next(filter(None, map(_read, files)), "")


def _numbers(vendor_id: str, device_id: str) -> str:
    """The PCI numbers, where no file has a name: 8086:56c0."""
    return f"{vendor_id}:{device_id}".replace("0x", "") if vendor_id and device_id else ""


def _read(file: Path, limit: int = _ATTRIBUTE_BYTES) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(limit).decode(errors="replace").strip()
    except OSError:
        return ""

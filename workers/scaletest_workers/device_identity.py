"""Tell what device is behind a file."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from scaletest.model.workload import Device
from scaletest.processes import proc

if TYPE_CHECKING:
    pass


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
_ROW = re.compile(r"^\s*([^:\n]*?)\s*:[^\S\n]*(.*?)\s*$", re.MULTILINE)
# Where drivers write a name for people, below the device's or the PCI function's folder.
_MODEL_FILES = ("device/model", "product_name", "label")
_ATTRIBUTE_CHARACTERS = 200


def identify(path: str, sysfs: Path = SYSFS, procfs: Path = PROCFS) -> Device:
    """The device behind a node. Raises OSError when there is no such file."""
    state = os.stat(path)  # noqa: PTH116
    if not stat.S_ISCHR(state.st_mode) and not stat.S_ISBLK(state.st_mode):
        return Device(path, os.path.realpath(path))
    return by_number(
        path,
        f"{os.major(state.st_rdev)}:{os.minor(state.st_rdev)}",
        sysfs,
        procfs,
        "block" if stat.S_ISBLK(state.st_mode) else "char",
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
        # the minor number in NVIDIA's driver; an unlisted device keeps its number
        major, minor = number.split(":")
        if major == "195":
            for file in sorted((procfs / "driver/nvidia/gpus").glob("*/information")):
                row = dict(_ROW.findall(proc.text_of(file)))
                if row.get("Device Minor") == minor:
                    pci, uuid = file.parent.name.lower(), row.get("GPU UUID", "")
                    # a GPU that was never used shows question marks
                    return Device(
                        path,
                        pci,
                        pci,
                        _read(sysfs / "bus/pci/devices" / pci / "vendor") or "0x10de",
                        "NVIDIA",
                        row.get("Model", ""),
                        "" if "?" in uuid else uuid,
                    )
        return Device(path, number)
    vendor_id = _read(function / "vendor")
    unique = _read(function / "unique_id")
    files = [folder / name for name in _MODEL_FILES] + [function / name for name in _MODEL_FILES]
    numbers = f"{vendor_id}:{_read(function / 'device')}".replace("0x", "")
    model = next(filter(None, map(_read, files)), numbers if vendor_id else "")
    return Device(
        path,
        function.name,
        function.name,
        vendor_id,
        _VENDORS.get(vendor_id, ""),
        model,
        f"GPU-{unique}" if unique else "",
    )


def _read(file: Path) -> str:
    return proc.text_of(file)[:_ATTRIBUTE_CHARACTERS].strip()

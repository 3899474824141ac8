"""Identify the device behind a device node by PCI address, vendor and model.

The kernel tells them in sysfs; for NVIDIA's driver, which shows nothing there, in procfs. The roots
of both are parameters. No device is opened for it.
"""

import os
import re
import stat
from pathlib import Path

from scaletest.model.workload import Device
from scaletest.processes import proc

SYSFS = Path("/sys")
PROCFS = Path("/proc")
# The name of a PCI function's folder.
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_VENDORS = {
    "0x8086": "Intel",
    "0x10de": "NVIDIA",
    "0x1002": "AMD",
    "0x144d": "Samsung",
    "0x15b3": "Mellanox",
}
# The major number of NVIDIA's device nodes.
_NVIDIA_MAJOR = "195"
# A row of NVIDIA's /proc/driver/nvidia/gpus/*/information.
_ROW = re.compile(r"^\s*([^:\n]*?)\s*:[^\S\n]*(.*?)\s*$", re.MULTILINE)
# Where drivers write a name for people, below the device's or the PCI function's folder.
_MODEL_FILES = ("device/model", "product_name", "label")


def identify(path: str, sysfs: Path = SYSFS, procfs: Path = PROCFS) -> Device:
    """Identify the device behind a node. Raises OSError when there is no such file."""
    state = os.stat(path)  # noqa: PTH116
    if not stat.S_ISCHR(state.st_mode) and not stat.S_ISBLK(state.st_mode):
        return Device(path, os.path.realpath(path))
    node_type = "block" if stat.S_ISBLK(state.st_mode) else "char"
    number = f"{os.major(state.st_rdev)}:{os.minor(state.st_rdev)}"
    return identify_number(path, number, sysfs, procfs, node_type=node_type)


def identify_number(
    path: str, number: str, sysfs: Path, procfs: Path, *, node_type: str = "char"
) -> Device:
    """Identify the device with this number, as major:minor. node_type: char or block."""
    folder = (sysfs / "dev" / node_type / number).resolve()
    for function in (folder, *folder.parents):
        if not _PCI.fullmatch(function.name):
            continue
        vendor_id = _read(function / "vendor")
        unique = _read(function / "unique_id")
        files = [parent / name for parent in (folder, function) for name in _MODEL_FILES]
        numbers = f"{vendor_id}:{_read(function / 'device')}".replace("0x", "")
        return Device(
            path,
            id=function.name,
            pci=function.name,
            vendor_id=vendor_id,
            vendor=_VENDORS.get(vendor_id, ""),
            model=next(filter(None, map(_read, files)), numbers if vendor_id else ""),
            unique=f"GPU-{unique}" if unique else "",
        )

    # sysfs knows no PCI function of it: NVIDIA's driver lists its devices by their minor numbers
    major, minor = number.split(":")
    if major == _NVIDIA_MAJOR:
        for file in sorted((procfs / "driver/nvidia/gpus").glob("*/information")):
            row = dict(_ROW.findall(proc.read_text(file)))
            if row.get("Device Minor") == minor:
                pci = file.parent.name.lower()
                uuid = row.get("GPU UUID", "")
                return Device(
                    path,
                    id=pci,
                    pci=pci,
                    vendor_id=_read(sysfs / "bus/pci/devices" / pci / "vendor") or "0x10de",
                    vendor="NVIDIA",
                    model=row.get("Model", ""),
                    # a GPU that was never used shows question marks
                    unique="" if "?" in uuid else uuid,
                )
    return Device(path, number)


def _read(file: Path) -> str:
    """Return the text of an attribute; "" where there is none."""
    return proc.read_text(file).strip()

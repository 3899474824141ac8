"""Choose this worker's device among those that match a pattern.

The pattern is matched for every request, since devices come and go. With leases a worker holds one
slot of one device, so that workers of a node spread over its devices, across pods that know
nothing of each other. Without leases (one run by hand, a stock RQ worker, an index)
the index decides.

A device is identified by PCI address, vendor and model, as far as the system knows. The kernel
tells them in sysfs; for NVIDIA's driver, which shows nothing there, in procfs. The roots of both
are parameters. No device is opened for it.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scaletest.model.errors import InvalidValue, NoDevice
from scaletest.model.presets import Preset, preset_of
from scaletest.model.workload import Device
from scaletest.processes import proc

if TYPE_CHECKING:
    from scaletest.broker.devices import DeviceLeases, Slot

# The environment variable that tells a program its device's path.
DEVICE_VARIABLE = "SCALETEST_DEVICE"
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
# A row of NVIDIA's /proc/driver/nvidia/gpus/*/information.
_ROW = re.compile(r"^\s*([^:\n]*?)\s*:[^\S\n]*(.*?)\s*$", re.MULTILINE)
# Where drivers write a name for people, below the device's or the PCI function's folder.
_MODEL_FILES = ("device/model", "product_name", "label")
_ATTRIBUTE_CHARACTERS = 200


class NoneFree(NoDevice):
    """All slots are leased."""

    def __init__(self, devices: int, per_device: int) -> None:
        slots = devices * per_device
        super().__init__(
            f"no device is free: {slots} of {slots} slots of {devices}"
            f" device{'s' if devices > 1 else ''} are leased",
            hint=(
                f"share a device among more workers with <per_device> {per_device + 1}, or start"
                " fewer workers"
            ),
        )


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Which devices, and how they are shared."""

    device_glob: str = ""  # "" for the preset's; without a preset there is no device at all
    # the number of the match to use, counting round, without a lease; None to lease one where there
    # is a broker
    device_index: int | None = None
    preset: str = ""
    per_device: int = 1  # workers that may share one device

    def __post_init__(self) -> None:
        if self.device_index is not None and self.device_index < 0:
            raise InvalidValue(f"device index is {self.device_index}", hint="give a number from 0")
        if self.per_device < 1:
            raise InvalidValue(
                f"workers per device are {self.per_device}", hint="give a number from 1"
            )
        if self.preset:
            preset_of(self.preset)

    @property
    def kind(self) -> Preset | None:
        """The preset, if any."""
        return preset_of(self.preset) if self.preset else None

    @property
    def glob(self) -> str:
        """The pattern in effect; "" for no device."""
        return self.device_glob or (self.kind.device_glob if self.kind else "")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device for one run."""

    device: Device
    index: int = 0  # among all matches
    slot: int | None = None  # the leased one; None without leases

    def info(self) -> dict[str, str]:
        """Return fields of a reply that describe the device, besides its path."""
        device, slot = self.device, "" if self.slot is None else str(self.slot)
        row = {"id": device.id, "pci": device.pci, "vendor": device.vendor, "model": device.model}
        return {name: value for name, value in (row | {"slot": slot}).items() if value}


class DeviceChooser:
    """Chooses this worker's device."""

    def __init__(self, options: DeviceOptions, sysfs: Path = SYSFS, procfs: Path = PROCFS) -> None:
        """sysfs, procfs: where the machine tells of its devices."""
        self._options = options
        self._roots = (sysfs, procfs)
        # whether this worker uses a device at all; read once for every request
        self.wanted = bool(options.glob)
        self._known: dict[tuple[str, int, int], Device] = {}
        self._leases: DeviceLeases | None = None
        self._leased: tuple[Chosen, Slot] | None = None
        self._latest: Device | None = None

    @property
    def leasing(self) -> bool:
        """Whether it wants a slot of its own."""
        return self.wanted and self._options.device_index is None

    @property
    def current(self) -> str:
        """Path of the device chosen last; "" before that, and while it holds no slot of it."""
        if self._latest is None or (self._leases is not None and self._leases.slot is None):
            return ""
        return self._latest.path

    def attach(self, leases: DeviceLeases, wait: Callable[[], bool] = bool) -> Chosen:
        """Lease slots from now on, and return the device of the first one. Raises NoDevice.

        wait: called while no slot is free; whether to go on waiting.
        """
        self._leases = leases
        chosen = self.wait_for_slot(wait)
        check_open(chosen.device.path, self._options.kind)
        return chosen

    def wait_for_slot(self, wait: Callable[[], bool]) -> Chosen:
        """Return the device of a slot, as soon as one is free. Raises NoDevice."""
        while True:
            try:
                return self.choose()
            except NoneFree:
                if not wait():
                    raise

    def devices(self) -> list[Device]:
        """Return all devices that match now, each once, by path. NoDevice when there is none."""
        devices: dict[str, Device] = {}
        kind = self._options.kind
        others: dict[str, str] = {}
        for path in sorted(glob.glob(self._options.glob), key=_by_number):  # noqa: PTH207 - patterns are absolute
            try:
                state = os.stat(path)  # noqa: PTH116
                known = (path, state.st_rdev, state.st_ino)
                if known not in self._known:
                    self._known[known] = identify(path, *self._roots)
            except OSError:  # it disappeared between glob and stat
                continue
            device = self._known[known]
            if kind and device.vendor_id and device.vendor_id != kind.vendor:
                others[device.path] = device.vendor or device.vendor_id
            else:
                devices.setdefault(device.id, device)
        if devices:
            return list(devices.values())
        text = f"no device matches {self._options.glob!r} on this machine"
        if others and kind:
            found = ", ".join(f"{path} of {vendor}" for path, vendor in others.items())
            text += f" for the preset {kind.name} (there are: {found})"
        resource = kind.resources[0] if kind else "the device plugin's resource"
        raise NoDevice(
            text,
            hint="check the driver; a container needs it as --device, and a pod must request"
            f" {resource}",
        )

    def check(self, most: int | None = None) -> None:
        """Raise NoDevice when there is none, or one of the first `most` may not be used."""
        for device in self.devices()[:most]:
            check_open(device.path, self._options.kind)
            self._usable(Chosen(device))

    def paths(self) -> dict[str, str]:
        """Return paths of the devices that match now, by PCI address."""
        if not self.wanted:
            return {}
        try:
            return {device.pci: device.path for device in self.devices() if device.pci}
        except NoDevice:
            return {}

    def choose(self) -> Chosen:
        """Return the device for one run, where one is wanted. Raises NoDevice."""
        if self._leases is not None and self._leased is not None:
            chosen, slot = self._leased
            # the lease is the one that came with this device, and the device still exists
            if self._leases.slot == slot and Path(chosen.device.path).exists():
                return self._usable(chosen)
        devices = self.devices()
        if self._leases is None:
            index = (self._options.device_index or 0) % len(devices)
            return self._usable(Chosen(devices[index], index))
        identities = [device.id for device in devices]
        claimed = self._leases.claim(identities, self._options.per_device)
        if claimed is None:
            raise NoneFree(len(devices), self._options.per_device)
        index = identities.index(claimed.device)
        chosen = Chosen(devices[index], index, claimed.number)
        self._leased = (chosen, claimed)
        return self._usable(chosen)

    def environment(self, chosen: Chosen) -> dict[str, str]:
        """Return the workload's environment: the device, and what restricts the libraries to it."""
        device = chosen.device
        kind = self._options.kind
        variables = {DEVICE_VARIABLE: device.path, "SCALETEST_DEVICE_ID": device.id}
        if chosen.slot is not None:
            variables["SCALETEST_DEVICE_SLOT"] = str(chosen.slot)
        if kind is not None:
            variables |= {**dict(kind.order), kind.visible: device.unique or str(chosen.index)}
        return variables

    def _usable(self, chosen: Chosen) -> Chosen:
        if not os.access(chosen.device.path, os.R_OK | os.W_OK):
            raise permission_denied(chosen.device.path, self._options.kind)
        self._latest = chosen.device
        return chosen


def _by_number(path: str) -> tuple[str, int, str]:
    """Sort key that puts renderD9 before renderD10."""
    digits = path[len(path.rstrip("0123456789")) :]
    return path[: len(path) - len(digits)], int(digits or 0), path


def check_open(path: str, kind: Preset | None = None) -> None:
    """Raise NoDevice when a device cannot be opened, as in containers; skips ordinary files."""
    try:
        if not stat.S_ISCHR(os.stat(path).st_mode):  # noqa: PTH116
            return
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EPERM:
            raise NoDevice(
                f"this container may not open {path}: its device rules forbid it",
                hint=(
                    "let the runtime add it: request the device plugin's resource, or docker run"
                    " --device"
                ),
            ) from error
        if error.errno == errno.EACCES:
            raise permission_denied(path, kind) from error
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise NoDevice(
                f"there is no device behind {path}", hint="check that its driver is loaded"
            ) from error


def permission_denied(path: str, kind: Preset | None = None) -> NoDevice:
    """Return the error when a file's mode denies access. kind: preset with names of its group."""
    usual = f"usually {' or '.join(kind.groups)}" if kind else "that of its driver"
    number = os.stat(path).st_gid  # noqa: PTH116
    if number == 0:
        # nobody should join root's group for this; on nodes without udev devices belong to it
        hint = f"its group is root: let udev on the node give it to a group, {usual}"
    else:
        hint = (
            f"add this user to the group that owns it, {number} ({usual}); in a pod:"
            f" securityContext.supplementalGroups: [{number}]"
        )
    return NoDevice(
        f"permission denied on {path}",
        hint=f"{hint}; or let the container runtime set the owner"
        " (device_ownership_from_security_context)",
    )


def identify(path: str, sysfs: Path = SYSFS, procfs: Path = PROCFS) -> Device:
    """Identify the device behind a node. Raises OSError when there is no such file."""
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
    """Identify the device with this number, as major:minor."""
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
                        id=pci,
                        pci=pci,
                        vendor_id=_read(sysfs / "bus/pci/devices" / pci / "vendor") or "0x10de",
                        vendor="NVIDIA",
                        model=row.get("Model", ""),
                        unique="" if "?" in uuid else uuid,
                    )
        return Device(path, number)
    vendor_id = _read(function / "vendor")
    unique = _read(function / "unique_id")
    files = [folder / name for name in _MODEL_FILES] + [function / name for name in _MODEL_FILES]
    numbers = f"{vendor_id}:{_read(function / 'device')}".replace("0x", "")
    model = next(filter(None, map(_read, files)), numbers if vendor_id else "")
    return Device(
        path,
        id=function.name,
        pci=function.name,
        vendor_id=vendor_id,
        vendor=_VENDORS.get(vendor_id, ""),
        model=model,
        unique=f"GPU-{unique}" if unique else "",
    )


def _read(file: Path) -> str:
    return proc.text_of(file)[:_ATTRIBUTE_CHARACTERS].strip()

"""Choose this worker's device among those that match a pattern.

The pattern is matched for every request, since devices come and go. With leases a worker holds one
slot of one device, so that workers of a node spread over its devices, across pods that know
nothing of each other. Without leases (one run by hand, a stock RQ worker, an index)
the index decides.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scaletest.model import checks
from scaletest.model.errors import NoDevice
from scaletest.model.presets import Preset, preset_of
from scaletest.model.workload import Device
from scaletest_workers.device_identity import SYSFS, identify

if TYPE_CHECKING:
    from scaletest.broker.devices import DeviceLeases, Slot

# The environment variable that tells a program its device's path.
DEVICE_VARIABLE = "SCALETEST_DEVICE"


class NoneFree(NoDevice):
    """All slots are leased."""

    def __init__(self, devices: int, per_device: int) -> None:
        slots = devices * per_device
        super().__init__(
            f"no device is free: {slots} of {slots} slots are leased",
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
        checks.count(self.device_index or 0, "device index")
        checks.count(self.per_device, "workers per device", minimum=1)
        if self.preset:
            preset_of(self.preset)

    @property
    def glob(self) -> str:
        """The pattern in effect; "" for no device."""
        return self.device_glob or (preset_of(self.preset).device_glob if self.preset else "")


@dataclass(frozen=True, slots=True)
class ChosenDevice:
    """A device for one run."""

    device: Device
    index: int = 0  # among all matches
    slot: int | None = None  # the leased one; None without leases

    def info(self) -> dict[str, str]:
        """Return fields of a reply that describe the device, besides its path."""
        fields = {
            "id": self.device.id,
            "pci": self.device.pci,
            "vendor": self.device.vendor,
            "model": self.device.model,
            "slot": "" if self.slot is None else str(self.slot),
        }
        return {name: text for name, text in fields.items() if text}


class DeviceChooser:
    """Chooses this worker's device."""

    def __init__(self, options: DeviceOptions, sysfs: Path = SYSFS) -> None:
        """Prepare to choose by these options, among the devices that sysfs describes."""
        self._options = options
        self._sysfs = sysfs
        self.preset = preset_of(options.preset) if options.preset else None
        # whether this worker uses a device at all; read once for every request
        self.wanted = bool(options.glob)
        # devices that were identified already, by path, device number and inode
        self._identified: dict[tuple[str, int, int], Device] = {}
        self._leases: DeviceLeases | None = None
        self._leased: tuple[ChosenDevice, Slot] | None = None
        self._latest: Device | None = None

    @property
    def wants_slot(self) -> bool:
        """Whether it wants a slot of its own."""
        return self.wanted and self._options.device_index is None

    @property
    def current(self) -> str:
        """Path of the device chosen last; "" before that, and while it holds no slot of it."""
        if self._latest is None or (self._leases is not None and self._leases.slot is None):
            return ""
        return self._latest.path

    def attach(self, leases: DeviceLeases) -> None:
        """Lease a slot whenever a device is chosen from now on."""
        self._leases = leases

    def devices(self) -> list[Device]:
        """Return all devices that match now, each once, by path. NoDevice when there is none."""
        devices: dict[str, Device] = {}
        preset = self.preset
        for path in sorted(glob.glob(self._options.glob), key=_by_number):  # noqa: PTH207 - patterns are absolute
            try:
                state = os.stat(path)  # noqa: PTH116
                key = (path, state.st_rdev, state.st_ino)
                if key not in self._identified:
                    self._identified[key] = identify(path, self._sysfs)
            except OSError:  # it disappeared between glob and stat
                continue
            device = self._identified[key]
            is_of_others = preset and device.vendor_id and device.vendor_id != preset.vendor
            if not is_of_others:
                devices.setdefault(device.id, device)
        if devices:
            return list(devices.values())
        wanted = f" of the preset {preset.name}" if preset else ""
        resource = preset.resources[0] if preset else "the device plugin's resource"
        raise NoDevice(
            f"no device{wanted} matches {self._options.glob!r} on this machine",
            hint="check the driver; a container needs it as --device, and a pod must request"
            f" {resource}",
        )

    def check(self, most: int | None) -> None:
        """Raise NoDevice when there is none, or one of the first `most` (None: all) is unusable."""
        for device in self.devices()[:most]:
            check_open(device.path, self.preset)

    def paths(self) -> dict[str, str]:
        """Return paths of the devices that match now, by PCI address."""
        if not self.wanted:
            return {}
        try:
            return {device.pci: device.path for device in self.devices() if device.pci}
        except NoDevice:
            return {}

    def choose(self) -> ChosenDevice:
        """Return the device for one run, where one is wanted. Raises NoDevice."""
        if self._leases is not None and self._leased is not None:
            chosen, slot = self._leased
            # the lease is the one that came with this device, and the device still exists
            if self._leases.slot == slot and Path(chosen.device.path).exists():
                return chosen
        devices = self.devices()
        if self._leases is None:
            index = (self._options.device_index or 0) % len(devices)
            chosen = ChosenDevice(devices[index], index)
        else:
            identities = [device.id for device in devices]
            claimed = self._leases.claim(identities, self._options.per_device)
            if claimed is None:
                raise NoneFree(len(devices), self._options.per_device)
            index = identities.index(claimed.device)
            chosen = ChosenDevice(devices[index], index, claimed.number)
            self._leased = (chosen, claimed)
        self._latest = chosen.device
        return chosen

    def environment(self, chosen: ChosenDevice) -> dict[str, str]:
        """Return the workload's environment: the device, and what restricts the libraries to it."""
        variables = {
            DEVICE_VARIABLE: chosen.device.path,
            "SCALETEST_DEVICE_ID": chosen.device.id,
        }
        if chosen.slot is not None:
            variables["SCALETEST_DEVICE_SLOT"] = str(chosen.slot)
        if self.preset is not None:
            variables |= dict(self.preset.order)
            variables[self.preset.visible] = chosen.device.unique or str(chosen.index)
        return variables


def _by_number(path: str) -> tuple[str, int, str]:
    """Return the key that sorts renderD9 before renderD10."""
    digits = path[len(path.rstrip("0123456789")) :]
    return path[: len(path) - len(digits)], int(digits or 0), path


def check_open(path: str, preset: Preset | None = None) -> None:
    """Raise NoDevice when a device's mode denies access, or a container's rules do."""
    if not os.access(path, os.R_OK | os.W_OK):
        raise permission_denied(path, preset)
    if not Path(path).is_char_device():  # to open and close a block device has effects
        return
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except PermissionError as error:
        raise NoDevice(
            f"this container may not open {path}: its device rules forbid it",
            hint=(
                "let the runtime add it: request the device plugin's resource, or docker run"
                " --device"
            ),
        ) from error
    except OSError:  # as while another program has it for itself
        return


def permission_denied(path: str, preset: Preset | None) -> NoDevice:
    """Return the error when a file's mode denies access, with the groups that the preset names."""
    usual = f"usually {' or '.join(preset.groups)}" if preset else "that of its driver"
    number = os.stat(path).st_gid  # noqa: PTH116
    if number == 0:
        # no user should join root's group for this; on nodes without udev devices belong to it
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

"""From a pattern to one device for this worker. The pattern is matched for every request, since
devices come and go.

With leases a worker holds one slot of one device, so that workers of a node spread over its devices
as the policy says, across pods that know nothing of each other. Without leases (one run by hand, a
stock RQ worker, an index) the index decides.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from scaletest.model import checks
from scaletest.model.errors import InvalidValue, NoDevice
from scaletest.model.presets import Preset, preset
from workers import device_faults as faults
from workers.identity import PROCFS, SYSFS, Device, identify

# The environment variable that tells a program its device's path.
DEVICE_VARIABLE = "SCALETEST_DEVICE"


class Policy(StrEnum):
    """Which device a worker gets a slot of."""

    FIRST = "first"
    BALANCED = "balanced"
    PACKED = "packed"

    @property
    def preference(self) -> int:
        """The broker's number of the policy: first free 0, least used -1, most used 1."""
        return {Policy.FIRST: 0, Policy.BALANCED: -1, Policy.PACKED: 1}[self]


class LeasedSlot(Protocol):
    """A leased slot."""

    @property
    def device(self) -> str:
        """The device's id."""

    @property
    def number(self) -> int:
        """The slot's number, from 0."""


class Leases(Protocol):
    """The broker's leases of device slots."""

    @property
    def slot(self) -> LeasedSlot | None:
        """The slot that this worker surely holds now."""

    def claim(self, devices: list[str], per_device: int, preference: int) -> LeasedSlot | None:
        """Lease a free slot, or keep the one held."""


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Which devices, and how they are shared.

    pattern: a glob; empty with a preset means the preset's, empty without one means no device at
    all.
    index: use the N-th match, counting round, and lease nothing; None to lease.
    per_device: workers that may share one device.
    """

    pattern: str = ""
    index: int | None = None
    preset: str = ""
    policy: str = Policy.BALANCED.value
    per_device: int = 1
    sysfs: Path = SYSFS
    procfs: Path = PROCFS

    def __post_init__(self) -> None:
        if self.index is not None and self.index < 0:
            raise InvalidValue(f"device index is {self.index}", hint="give a number from 0")
        if self.per_device < 1:
            raise InvalidValue(
                f"workers per device are {self.per_device}", hint="give a number from 1"
            )
        checks.one_of(self.policy, Policy, "device policy")
        if self.preset:
            preset(self.preset)

    @property
    def kind(self) -> Preset | None:
        """The preset, if any."""
        return preset(self.preset) if self.preset else None

    @property
    def glob(self) -> str:
        """The pattern in effect; "" for no device."""
        return self.pattern or (self.kind.device_glob if self.kind else "")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device for one run. index: among all matches; slot: the leased one, None without leases."""

    device: Device
    index: int = 0
    slot: int | None = None

    def info(self) -> dict[str, str]:
        """Fields of a reply that describe the device, besides its path."""
        return self.device.info() | ({} if self.slot is None else {"slot": str(self.slot)})


class DeviceChooser:
    """Chooses this worker's device."""

    def __init__(self, options: DeviceOptions) -> None:
        self._options = options
        # whether this worker uses a device at all; read once for every request
        self.wanted = bool(options.glob)
        self._known: dict[tuple[str, int, int], Device] = {}
        self._leases: Leases | None = None
        self._leased: tuple[Chosen, LeasedSlot] | None = None

    @property
    def leasing(self) -> bool:
        """Whether it wants a slot of its own."""
        return self.wanted and self._options.index is None

    def attach(self, leases: Leases, wait: Callable[[], bool] = bool) -> Chosen:
        """Lease slots from now on, the first one at once. wait: called while none is free; whether
        to go on waiting.

        Raises NoDevice.
        """
        self._leases = leases
        chosen = self.wait_for_slot(wait)
        faults.check_open(chosen.device.path, self._options.kind)
        return chosen

    def wait_for_slot(self, wait: Callable[[], bool]) -> Chosen:
        """The device of a slot, as soon as one is free. Raises NoDevice."""
        while True:
            try:
                chosen = self.choose()
            except faults.NoneFree:
                if not wait():
                    raise
                continue
            assert chosen is not None
            return chosen

    def devices(self) -> list[Device]:
        """All devices that match now, each once, by path. Raises NoDevice when there is none."""
        devices: dict[str, Device] = {}
        kind = self._options.kind
        others: dict[str, str] = {}
        for path in sorted(glob.glob(self._options.glob), key=_by_number):  # noqa: PTH207 - patterns are absolute
            device = self._identify(path)
            if device is None:
                continue
            if kind and device.vendor_id and device.vendor_id != kind.vendor:
                others[device.path] = device.vendor or device.vendor_id
            else:
                devices.setdefault(device.id, device)
        if not devices:
            raise faults.nothing(self._options.glob, self._options.kind, others)
        return list(devices.values())

    def paths(self) -> dict[str, str]:
        """Paths of the devices that match now, by PCI address."""
        if not self.wanted:
            return {}
        try:
            return {device.pci: device.path for device in self.devices() if device.pci}
        except NoDevice:
            return {}

    def choose(self) -> Chosen | None:
        """The device for one run, None when none is wanted. Raises NoDevice."""
        if not self.wanted:
            return None
        if self._leases is not None and self._leased is not None:
            chosen, slot = self._leased
            # the lease is the one that came with this device, and the device still exists
            if self._leases.slot == slot and Path(chosen.device.path).exists():
                return self._usable(chosen)
        devices = self.devices()
        if self._leases is None:
            index = (self._options.index or 0) % len(devices)
            return self._usable(Chosen(devices[index], index))
        claimed = self._leases.claim(
            [device.id for device in devices],
            self._options.per_device,
            Policy(self._options.policy).preference,
        )
        if claimed is None:
            raise faults.none_free(len(devices), self._options.per_device)
        index = next(at for at, device in enumerate(devices) if device.id == claimed.device)
        chosen = Chosen(devices[index], index, claimed.number)
        self._leased = (chosen, claimed)
        return self._usable(chosen)

    def environment(self, chosen: Chosen) -> dict[str, str]:
        """Environment of the workload: the device, and what restricts the libraries to it."""
        device = chosen.device
        variables = {DEVICE_VARIABLE: device.path, "SCALETEST_DEVICE_ID": device.id}
        if chosen.slot is not None:
            variables["SCALETEST_DEVICE_SLOT"] = str(chosen.slot)
        kind = self._options.kind
        if kind is not None:
            variables |= dict(kind.order)
            variables[kind.visible] = device.unique or str(chosen.index)
        return variables

    def _usable(self, chosen: Chosen) -> Chosen:
        if not os.access(chosen.device.path, os.R_OK | os.W_OK):
            raise faults.denied(chosen.device.path, self._options.kind)
        return chosen

    def _identify(self, path: str) -> Device | None:
        try:
            state = os.stat(path)  # noqa: PTH116
            key = (path, state.st_rdev, state.st_ino)
            if key not in self._known:
                self._known[key] = identify(path, self._options.sysfs, self._options.procfs)
            return self._known[key]
        except OSError:  # it disappeared between glob and stat
            return None


def _by_number(path: str) -> tuple[str, int, str]:
    """Sort key that puts renderD9 before renderD10."""
    digits = path[len(path.rstrip("0123456789")) :]
    return path[: len(path) - len(digits)], int(digits or 0), path

"""NVIDIA's devices, by their driver's library (NVML) and the module nvidia-ml-py.

It is imported only where there are some.

What a device does not support, as utilisation while it is partitioned (MIG), is left out of its
figures.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from scaletest.observe.devices.readings import (
    LOOK_EVERY_S,
    DeviceNames,
    Figures,
    Tell,
)

# Not supported, no permission, function not found, deprecated: it will not be otherwise next time.
_ABSENT = frozenset((3, 4, 13, 26))
# Invalid argument, not found, timeout, in use, no data, not ready, invalid state, unknown.
_PASSING = frozenset((2, 6, 10, 19, 21, 27, 29, 999))

# Without one of these there is no driver: of Linux, and of Windows' subsystem for Linux.
_NODES = ("nvidiactl", "dxg")
_MILLI, _PERCENT = 1e-3, 1e-2
# Reasons for a lower clock that are none of a limit: idle, a clock that a user chose, a display.
_NO_LIMIT = 0x1 | 0x2 | 0x100

Read = Callable[[ModuleType, Any], Figures]


@dataclass(slots=True)
class _Device:
    """One device. readers: what is asked of it; what it does not support is dropped."""

    name: str
    handle: Any
    readers: list[Read] = field(default_factory=lambda: list(_READERS))


class NvmlSource:
    """All devices of NVIDIA's driver."""

    def __init__(
        self,
        names: DeviceNames,
        tell: Tell,
        dev: Path = Path("/dev"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names = names
        self._tell = tell
        self._dev = dev
        self._clock = clock
        self._next_s = float("-inf")
        self._devices: list[_Device] = []
        self._complete = False
        self._module: ModuleType | None = None

    def read(self) -> Mapping[str, Figures]:
        """Look for devices now and then, unless all are there, and read those that are."""
        now_s = self._clock()
        if not self._complete and now_s >= self._next_s:
            self._next_s = now_s + LOOK_EVERY_S
            self._find()
        return {device.name: self._ask(device) for device in list(self._devices)}

    def _find(self) -> None:
        if not any((self._dev / name).exists() for name in _NODES):
            return
        try:
            import pynvml
        except ImportError:
            self._tell(
                "nvidia-ml-py",
                "there are NVIDIA devices, but nothing to read them with: pip install"
                " 'scaletest[nvidia]'",
            )
            return
        try:
            if self._module is not None:
                # handles of a device that was lost do not come back
                self._module, self._devices = None, []
                pynvml.nvmlShutdown()
            pynvml.nvmlInit()
            self._module = pynvml
            count: int = pynvml.nvmlDeviceGetCount()
            for index in range(count):
                try:
                    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                    self._devices.append(_Device(self._name(pynvml, handle, index), handle))
                except pynvml.NVMLError as error:
                    self._tell(f"nvml {index}", f"NVIDIA's device {index} cannot be read: {error}")
            self._complete = len(self._devices) == count > 0
        except pynvml.NVMLError as error:
            self._tell("nvml", f"NVIDIA's devices cannot be read: {error}")

    def _name(self, pynvml: ModuleType, handle: Any, index: int) -> str:
        """Return the path of its node, when it is there, and otherwise that node's name."""
        try:
            number = pynvml.nvmlDeviceGetMinorNumber(handle)
        except pynvml.NVMLError:
            number = index
        path = self._dev / f"nvidia{number}"
        node = f"/dev/{path.name}" if path.exists() else path.name
        try:
            address = pynvml.nvmlDeviceGetPciInfo(handle).busId
        except pynvml.NVMLError:
            return node
        return self._names.name_of(
            address if isinstance(address, str) else address.decode(errors="replace"), node
        )

    def _ask(self, device: _Device) -> Figures:
        """Return its figures; none when it is lost, and it is looked for again some time later."""
        assert self._module is not None
        figures: Figures = {}
        for read in list(device.readers):
            try:
                figures.update(read(self._module, device.handle))
            except self._module.NVMLError as error:
                if error.value in _ABSENT:
                    device.readers.remove(read)
                elif error.value not in _PASSING:
                    self._tell(
                        f"nvml lost {device.name}", f"{device.name} is not read any more: {error}"
                    )
                    self._devices.remove(device)
                    self._complete = False
                    self._next_s = self._clock() + LOOK_EVERY_S
                    return {}
        if "busy" in figures:
            figures["busy"] = max(
                value for name, value in figures.items() if name.partition(".")[0] == "busy"
            )
        return figures


def _utilisation(pynvml: ModuleType, handle: Any) -> Figures:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"busy": rates.gpu * _PERCENT, "memory_busy": rates.memory * _PERCENT}


def _memory(pynvml: ModuleType, handle: Any) -> Figures:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {"memory_used": float(memory.used), "memory_total": float(memory.total)}


def _clock(pynvml: ModuleType, handle: Any) -> Figures:
    highest = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)
    actual = pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
    return {"frequency": actual / highest} if highest else {}


def _throttled(pynvml: ModuleType, handle: Any) -> Figures:
    """Read whether a limit lowers the clock. Drivers before 535 know the older name only."""
    try:
        reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except pynvml.NVMLError_FunctionNotFound:
        reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return {"throttled": float(bool(reasons & ~_NO_LIMIT))}


def _figure(name: str, unit: float, ask: Callable[[ModuleType, Any], float]) -> Read:
    """Return a function that reads one figure; what the driver answers is in this unit."""
    return lambda pynvml, handle: {name: ask(pynvml, handle) * unit}


_READERS: tuple[Read, ...] = (
    _utilisation,
    _figure(
        "busy.encoder", _PERCENT, lambda nvml, gpu: nvml.nvmlDeviceGetEncoderUtilization(gpu)[0]
    ),
    _figure(
        "busy.decoder", _PERCENT, lambda nvml, gpu: nvml.nvmlDeviceGetDecoderUtilization(gpu)[0]
    ),
    _memory,
    _figure("energy_j", _MILLI, lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu)),
    _figure("power", _MILLI, lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu)),
    _clock,
    _throttled,
    _figure(
        "temperature",
        1.0,
        lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    ),
)

"""NVIDIA's devices, by their driver's library (NVML) and the module nvidia-ml-py.

The module is imported only where there are such devices. What a device does not support, as
utilisation while it is partitioned (MIG), is left out of its figures.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

# Not supported, no permission, function not found, deprecated: it will not be otherwise next time.
_ABSENT = frozenset((3, 4, 13, 26))
# Without one of these there is no driver: of Linux, and of Windows' subsystem for Linux.
_DRIVER_NODES = ("nvidiactl", "dxg")
_MILLI, _PERCENT = 1e-3, 1e-2
# Reasons for a lower clock that are none of a limit: idle, a clock that a user chose, a display.
_NO_LIMIT = 0x1 | 0x2 | 0x100
_PCI = re.compile(r"([0-9a-f]{4,}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")

# Reads some figures of a device, by the module and the device's handle.
Read = Callable[[ModuleType, Any], dict[str, float]]


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """One device."""

    name: str  # as replies call it, else the path of its node, else that node's name
    pynvml: ModuleType
    handle: Any
    # how its figures are read; what it does not support is dropped
    readers: list[Read] = field(default_factory=lambda: list(_READERS))

    def read(self) -> dict[str, float]:
        """Return its figures now; those that it has no answer for are left out."""
        figures: dict[str, float] = {}
        for read in list(self.readers):
            try:
                figures.update(read(self.pynvml, self.handle))
            except self.pynvml.NVMLError as error:
                if error.value in _ABSENT:
                    self.readers.remove(read)
        if "busy" in figures:
            # the busiest engine, or what the driver calls utilisation
            figures["busy"] = max(
                share for name, share in figures.items() if name.startswith("busy")
            )
        return figures


def find_nvml_devices(
    dev: Path, names: Mapping[str, str], warn: Callable[[str], None]
) -> list[NvmlDevice]:
    """Return all devices of NVIDIA's driver; none without one.

    dev: the folder of device nodes. names: as replies call devices, by PCI address. warn: hears of
    each device that cannot be read.
    """
    if not any((dev / name).exists() for name in _DRIVER_NODES):
        return []
    try:
        import pynvml
    except ImportError:
        warn(
            "there are NVIDIA devices, but nothing to read them with: pip install"
            " 'scaletest[nvidia]'"
        )
        return []
    devices = []
    try:
        pynvml.nvmlInit()
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                devices.append(NvmlDevice(_name(pynvml, handle, index, dev, names), pynvml, handle))
            except pynvml.NVMLError as error:
                warn(f"NVIDIA's device {index} cannot be read: {error}")
    except pynvml.NVMLError as error:
        warn(f"NVIDIA's devices cannot be read: {error}")
    return devices


def pci_address(text: str) -> str:
    """Return an address as sysfs writes it: small letters, a short domain where that is enough."""
    match = _PCI.fullmatch(text.strip().lower())
    return f"{int(match[1], 16):04x}:{match[2]}" if match else text


def _name(pynvml: ModuleType, handle: Any, index: int, dev: Path, names: Mapping[str, str]) -> str:
    try:
        number = pynvml.nvmlDeviceGetMinorNumber(handle)
        address = pci_address(pynvml.nvmlDeviceGetPciInfo(handle).busId)
    except pynvml.NVMLError:
        number, address = index, ""
    path = dev / f"nvidia{number}"
    node_name = f"/dev/{path.name}" if path.exists() else path.name
    return names.get(address, node_name)


def _utilisation(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"busy": rates.gpu * _PERCENT, "memory_busy": rates.memory * _PERCENT}


def _memory(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {"memory_used": float(memory.used), "memory_total": float(memory.total)}


def _clock(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    highest = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)
    present = pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
    return {"frequency": present / highest} if highest else {}


def _throttled(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
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

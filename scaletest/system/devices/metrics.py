"""From the metrics of exporters to the figures of devices. Pure.

DCGM_FI_* are those of NVIDIA's DCGM exporter; hw_* are those that OpenTelemetry's hardware
conventions, and with them XPU Manager 2, become in Prometheus. Rows of a MIG instance are left out:
they say nothing of the whole device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from scaletest.model import checks
from scaletest.model.node_sample import MAX_NAME_CHARACTERS
from scaletest.system.devices.source import Figures

# Reasons for a lower clock that are none of a limit: idle, a clock that somebody chose, a display.
NO_LIMIT = 0x1 | 0x2 | 0x100
_MIB = 1024.0**2
_MOST_NAME = MAX_NAME_CHARACTERS - len("device:")
_MOST_ENGINES = 16
# Sensors of the whole card come before those of its parts; others, as of its memory, do not count.
_LOCATIONS = ("card", "", "package", "gpu")
_ENGINE = re.compile(r"[a-z0-9_-]{1,30}")
_NVIDIA = re.compile(r"nvidia\d+")


class MetricSample(NamedTuple):
    """One line of an exporter: a metric's name, its labels and its value."""

    name: str
    labels: Mapping[str, str]
    value: float


class _FigurePart(NamedTuple):
    """A figure, or a part of a figure. The lowest rank counts, and of equal ranks the highest
    value.

    adds: values of the same rank belong to different parts, and are summed.
    """

    figure: str
    value: float
    rank: int = 0
    adds: bool = False


def wanted(line: str) -> bool:
    """Whether a line of Prometheus's text is a sample that is known."""
    return _KNOWN.match(line) is not None


def figures_of(
    samples: Iterable[MetricSample], name_of: Callable[[str, str], str]
) -> dict[str, Figures]:
    """Figures by the device's name.

    name_of: returns it for a PCI address, with a second name for unknown addresses.
    """
    known = list(samples)
    addresses = {
        sample.labels["hw_id"]: sample.labels["pci_bdf"]
        for sample in known
        if {"hw_id", "pci_bdf"} <= set(sample.labels)
    }
    devices: dict[str, dict[str, _FigurePart]] = {}
    for sample in known:
        part = _figure_part(sample)
        name = checks.cut(_name(sample.labels, addresses, name_of), _MOST_NAME)
        if part is not None and name:
            figures = devices.setdefault(name, {})
            figures[part.figure] = _combined(figures.get(part.figure), part)
    finished = {name: _finished(values) for name, values in devices.items()}
    return {name: figures for name, figures in finished.items() if figures}


def _figure_part(sample: MetricSample) -> _FigurePart | None:
    is_part = (
        sample.labels.get("GPU_I_ID", "") != "" or sample.labels.get("hw_type", "gpu") != "gpu"
    )
    if is_part or not math.isfinite(sample.value) or sample.value < 0:
        return None
    rule = _RULES.get(sample.name)  # a damaged line may have another name than it began with
    return rule(sample) if rule else None


def _combined(before: _FigurePart | None, new: _FigurePart) -> _FigurePart:
    if before is None or new.rank < before.rank:
        return new
    if new.rank > before.rank:
        return before
    return new._replace(
        value=before.value + new.value if new.adds else max(before.value, new.value)
    )


def _finished(parts: Mapping[str, _FigurePart]) -> Figures:
    known = {name: part.value for name, part in parts.items()}
    figures = {name: number for name, number in known.items() if not name.startswith("_")}
    if "memory_used" in known and "_memory_free" in known:
        figures["memory_total"] = (
            known["memory_used"] + known["_memory_free"] + known.get("_memory_reserved", 0.0)
        )
    if "_clock" in known and known.get("_highest_clock"):
        figures["frequency"] = known["_clock"] / known["_highest_clock"]
    engines = sorted(name for name in figures if name.partition(".")[0] == "busy")
    for name in engines:
        figures[name] = min(1.0, figures[name])
    for name in engines[_MOST_ENGINES:]:
        del figures[name]
    engines = engines[:_MOST_ENGINES]
    # encoder and decoder alone do not describe the whole device
    if set(engines) - {"busy.encoder", "busy.decoder"}:
        figures["busy"] = max(figures[name] for name in engines)
    return figures


def _name(
    labels: Mapping[str, str], addresses: Mapping[str, str], name_of: Callable[[str, str], str]
) -> str:
    """The device's name; "" when no label tells."""
    node = labels.get("device", "")
    own = f"/dev/{node}" if _NVIDIA.fullmatch(node) else ""
    ids = (labels.get("hw_id", ""), labels.get("hw_parent", ""))
    address = labels.get("pci_bdf") or labels.get("pci_bus_id") or labels.get("gpu_pci_address")
    address = address or next((addresses[name] for name in ids if name in addresses), "")
    if address:
        return name_of(address, own)
    return own or labels.get("UUID") or ids[0]


def _plain(figure: str, scale: float = 1.0, rank: int = 0) -> Callable[[MetricSample], _FigurePart]:
    return lambda sample: _FigurePart(figure, sample.value * scale, rank)


def _sensor(figure: str, *, adds: bool = True) -> Callable[[MetricSample], _FigurePart | None]:
    """A rule that ranks sensors by their location; sensors of tiles come last."""

    def read(sample: MetricSample) -> _FigurePart | None:
        location = sample.labels.get("hw_sensor_location", "")
        if location not in _LOCATIONS:
            return None
        is_tile = sample.labels.get("com_intel_subdevice_id", "") != ""
        return _FigurePart(
            figure, sample.value, _LOCATIONS.index(location) + is_tile * len(_LOCATIONS), adds
        )

    return read


def _memory(figure: str) -> Callable[[MetricSample], _FigurePart | None]:
    """A rule that sums the memory of the device's parts."""

    def read(sample: MetricSample) -> _FigurePart | None:
        own = sample.labels.get("hw_memory_location", "device") == "device"
        if own:
            return _FigurePart(figure, sample.value, rank=1, adds=True)
        return None

    return read


def _utilization(sample: MetricSample) -> _FigurePart | None:
    """Utilisation of the device or a kind of engine; "compute-all": all compute engines."""
    task = sample.labels.get("hw_gpu_task", "").lower()
    if task in ("", "all", "general"):
        return _FigurePart("busy", sample.value)
    engine = task.removesuffix("-all").removesuffix("-single")
    if _ENGINE.fullmatch(engine):
        return _FigurePart(f"busy.{engine}", sample.value)
    return None


def _frequency(figure: str) -> Callable[[MetricSample], _FigurePart | None]:
    def read(sample: MetricSample) -> _FigurePart | None:
        is_mean = sample.labels.get("aggregation", "avg") == "avg"
        is_gpu = sample.labels.get("hw_frequency_domain", "gpu") == "gpu"
        if is_mean and is_gpu:
            return _FigurePart(figure, sample.value)
        return None

    return read


def _reasons(sample: MetricSample) -> _FigurePart:
    return _FigurePart("throttled", float(bool(int(sample.value) & ~NO_LIMIT)))


def _throttle_status(sample: MetricSample) -> _FigurePart:
    return _FigurePart("throttled", float(sample.value > 0))


_RULES: Mapping[str, Callable[[MetricSample], _FigurePart | None]] = {
    "DCGM_FI_DEV_GPU_UTIL": _plain("busy", 0.01),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _plain("busy", rank=1),
    "DCGM_FI_DEV_ENC_UTIL": _plain("busy.encoder", 0.01),
    "DCGM_FI_DEV_DEC_UTIL": _plain("busy.decoder", 0.01),
    "DCGM_FI_DEV_MEM_COPY_UTIL": _plain("memory_busy", 0.01),
    "DCGM_FI_PROF_DRAM_ACTIVE": _plain("memory_busy", rank=1),
    "DCGM_FI_DEV_FB_USED": _plain("memory_used", _MIB),
    "DCGM_FI_DEV_FB_FREE": _plain("_memory_free", _MIB),
    "DCGM_FI_DEV_FB_RESERVED": _plain("_memory_reserved", _MIB),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": _plain("energy_j", 0.001),
    "DCGM_FI_DEV_POWER_USAGE": _plain("power"),
    "DCGM_FI_DEV_GPU_TEMP": _plain("temperature"),
    "DCGM_FI_DEV_SM_CLOCK": _plain("_clock"),
    "DCGM_FI_DEV_MAX_SM_CLOCK": _plain("_highest_clock"),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": _reasons,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": _reasons,
    **dict.fromkeys(("hw_gpu_utilization_ratio", "hw_gpu_utilization"), _utilization),
    **dict.fromkeys(("hw_gpu_memory_usage_bytes", "hw_gpu_memory_usage"), _plain("memory_used")),
    **dict.fromkeys(("hw_gpu_memory_limit_bytes", "hw_gpu_memory_limit"), _plain("memory_total")),
    "hw_memory_usage_bytes": _memory("memory_used"),
    "hw_memory_size_bytes": _memory("memory_total"),
    "hw_memory_bandwidth_utilization_ratio": _plain("memory_busy"),
    **dict.fromkeys(("hw_energy_joules_total", "hw_energy_joules"), _sensor("energy_j")),
    **dict.fromkeys(("hw_power_watts", "hw_power"), _sensor("power")),
    "hw_temperature_celsius": _sensor("temperature", adds=False),
    "hw_frequency_hertz": _frequency("_clock"),
    "hw_frequency_limit_hertz": _frequency("_highest_clock"),
    **dict.fromkeys(
        ("hw_frequency_throttle_status_ratio", "hw_frequency_throttle_status"), _throttle_status
    ),
}
_KNOWN = re.compile(rf"(?:{'|'.join(_RULES)})[ {{]")

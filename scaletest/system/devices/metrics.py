"""Figures of devices: what each source has in common, and exporters' Prometheus text.

DCGM_FI_* are those of NVIDIA's DCGM exporter; hw_* are those that OpenTelemetry's hardware
conventions, and with them XPU Manager 2, become in Prometheus. Rows of a MIG instance are left out:
they say nothing of the whole device.
"""

from __future__ import annotations

import math
import re
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http.client import HTTPException, HTTPResponse
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from scaletest.model import checks
from scaletest.model.measurement import MAX_NAME_CHARACTERS

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

# How often to look for devices that were not there before.
AGAIN_S = 60.0
Figures = dict[str, float]
# Hears of what is wrong, a key and a text; the same key may come again.
Tell = Callable[[str, str], None]
_PCI = re.compile(r"([0-9a-f]{4,}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")


class DeviceReading(NamedTuple):
    """A device's figures, as `model.measurement.FIGURES` names them, and where they come from."""

    figures: Figures
    sources: list[str]


class DeviceNames:
    """Devices by PCI address, under the path by which workers know them."""

    def __init__(self, paths: Callable[[], Mapping[str, str]] = dict) -> None:
        """paths: PCI address -> path, as this worker's replies say it."""
        self._paths = paths
        self._nodes: dict[str, str] = {}

    def learn(self, nodes: Mapping[str, str]) -> None:
        """Take in paths of which the machine tells; those of workers come first."""
        self._nodes.update({pci: path for pci, path in nodes.items() if path})
        self._nodes.update(self._paths())

    def of(self, address: str, otherwise: str = "") -> str:
        """The path of a device, else another name for it, else its address."""
        pci = pci_address(address)
        return self._nodes.get(pci) or otherwise or pci


def pci_address(text: str) -> str:
    """As sysfs writes it: small letters, a domain of four digits where that is enough."""
    match = _PCI.fullmatch(text.strip().lower())
    return f"{int(match[1], 16):04x}:{match[2]}" if match else text


# Reasons for a lower clock that are none of a limit: idle, a clock that somebody chose, a display.
NO_LIMIT = 0x1 | 0x2 | 0x100
_MIB = 1024.0**2
_MOST_NAME = MAX_NAME_CHARACTERS - len("device:")
_MOST_ENGINES = 16
# Sensors of the whole card come before those of its parts; others, as of its memory, do not count.
_LOCATIONS = ("card", "", "package", "gpu")
_ENGINE = re.compile(r"[a-z0-9_-]{1,30}")
_NVIDIA = re.compile(r"nvidia\d+")


class _FigurePart(NamedTuple):
    """A figure, or a part of a figure. The lowest rank counts, and of equal ranks the highest
    value.

    adds: values of the same rank belong to different parts, and are summed.
    """

    figure: str
    value: float
    rank: int = 0
    adds: bool = False


def figures_of(samples: Iterable[Sample], name_of: Callable[[str, str], str]) -> dict[str, Figures]:
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


def _figure_part(sample: Sample) -> _FigurePart | None:
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
    busy = {name: figures.pop(name) for name in sorted(figures) if name.startswith("busy")}
    engines = list(busy)[:_MOST_ENGINES]
    figures.update({name: min(1.0, busy[name]) for name in engines})
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
    return (address and name_of(address, own)) or own or labels.get("UUID") or ids[0]


def _plain(
    figure: str,
    scale: float = 1.0,
    rank: int = 0,
    *,
    adds: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Sample], _FigurePart | None]:
    """A rule for samples that have these labels, as far as they have such labels at all."""

    def read(sample: Sample) -> _FigurePart | None:
        is_meant = all(sample.labels.get(name, text) == text for name, text in labels.items())
        return _FigurePart(figure, sample.value * scale, rank, adds) if is_meant else None

    return read


# The parts of a device's memory are summed.
_memory = partial(_plain, rank=1, adds=True, labels={"hw_memory_location": "device"})
_frequency = partial(_plain, labels={"aggregation": "avg", "hw_frequency_domain": "gpu"})


def _sensor(figure: str, *, adds: bool = True) -> Callable[[Sample], _FigurePart | None]:
    """A rule that ranks sensors by their location; sensors of tiles come last."""

    def read(sample: Sample) -> _FigurePart | None:
        location = sample.labels.get("hw_sensor_location", "")
        if location not in _LOCATIONS:
            return None
        is_tile = sample.labels.get("com_intel_subdevice_id", "") != ""
        return _FigurePart(
            figure, sample.value, _LOCATIONS.index(location) + is_tile * len(_LOCATIONS), adds
        )

    return read


def _utilization(sample: Sample) -> _FigurePart | None:
    """Utilisation of the device or a kind of engine; "compute-all": all compute engines."""
    task = sample.labels.get("hw_gpu_task", "").lower()
    if task in ("", "all", "general"):
        return _FigurePart("busy", sample.value)
    engine = task.removesuffix("-all").removesuffix("-single")
    return _FigurePart(f"busy.{engine}", sample.value) if _ENGINE.fullmatch(engine) else None


def _reasons(sample: Sample) -> _FigurePart:
    return _FigurePart("throttled", float(bool(int(sample.value) & ~NO_LIMIT)))


def _throttle_status(sample: Sample) -> _FigurePart:
    return _FigurePart("throttled", float(sample.value > 0))


_RULES: Mapping[str, Callable[[Sample], _FigurePart | None]] = {
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


# Exporters look at their devices every few seconds, or less often. The more devices, the more an
# answer costs to read.
SHORTEST_S, LONGEST_S = 2.0, 5.0
# Part of a core that may take.
SHARE = 0.001
TIMEOUT_S = 1.0
# Of the whole answer, however it trickles.
_DEADLINE_S = 3.0
MOST_BYTES = 4 * 1024**2


class ExporterSource:
    """All devices of which one URL tells."""

    def __init__(
        self, url: str, names: DeviceNames, tell: Tell, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._host = urlsplit(url).netloc
        self._names = names
        self._tell = tell
        self._clock = clock
        self._next_s = float("-inf")

    def read(self) -> Mapping[str, DeviceReading]:
        """Asks every few seconds, and less often while nothing useful comes."""
        now_s = self._clock()
        if now_s < self._next_s:
            return {}
        self._next_s = now_s + AGAIN_S
        cpu_s = time.thread_time()
        try:
            devices = figures_of(_rows(_get(self._url)), self._names.of)
        except (OSError, ValueError) as error:
            self._tell(
                "device metrics",
                f"the device metrics at {self._url} cannot be read: {_reason(error)}",
            )
            return {}
        if not devices:
            self._tell(
                "device metrics",
                f"{self._url} has no known metrics of devices: it needs those of DCGM, XPU Manager"
                " 2 or OpenTelemetry (hw.gpu)",
            )
            return {}
        self._next_s = now_s + min(LONGEST_S, max(SHORTEST_S, (time.thread_time() - cpu_s) / SHARE))
        return {name: DeviceReading(figures, [self._host]) for name, figures in devices.items()}


def device_warnings(url: str) -> list[str]:
    """A warning when the exporter names no device; none without a URL. One quick request.

    It is for those who start a run: workers write such errors to their log only.
    """
    reasons: list[str] = []
    if url:
        ExporterSource(url, DeviceNames(dict), lambda _key, text: reasons.append(text)).read()
    remedy = "start an exporter of this node's devices, or correct --device-metrics-url"
    return [f"{reason}; {remedy}" for reason in reasons[:1]]


def _get(url: str) -> str:
    """The metrics at a URL. Raises OSError; ValueError for a malformed, long or cut response."""
    request = urllib.request.Request(url, headers={"Accept": "text/plain; version=0.0.4"})
    # an exporter of the node is asked directly, whatever proxy the environment names for others
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=TIMEOUT_S) as answer:
            data = _read(answer)
    except HTTPException as error:
        raise ValueError(_reason(error)) from error
    # the last line is whole when it ends
    return data.rpartition(b"\n")[0].decode(errors="replace")


def _read(answer: HTTPResponse) -> bytes:
    deadline = time.monotonic() + _DEADLINE_S
    parts: list[bytes] = []
    while part := answer.read1(65536):
        parts.append(part)
        if sum(map(len, parts)) > MOST_BYTES:
            raise ValueError(f"the answer has more than {MOST_BYTES // 1024**2} MiB")
        if time.monotonic() > deadline:
            raise TimeoutError(f"the answer takes longer than {_DEADLINE_S:g} s")
    if answer.length:
        raise ValueError("the answer was cut short")
    return b"".join(parts)


def _rows(text: str) -> Iterable[Sample]:
    """The samples that are known. Raises ValueError on text that is none of Prometheus."""
    from prometheus_client.parser import text_string_to_metric_families

    lines = [f"{line}\n" for line in text.splitlines() if _KNOWN.match(line)]
    for family in text_string_to_metric_families("".join(lines)):
        yield from family.samples


def _reason(error: Exception) -> str:
    text = str(getattr(error, "reason", None) or error)
    return " ".join(text.split())[:200] or type(error).__name__

"""Devices from an exporter's Prometheus text: names of DCGM, XPU Manager 2, OpenTelemetry."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scaletest.system.devices.metrics import MetricSample, figures_of, wanted
from scaletest.system.devices.source import AGAIN_S, DeviceNames, DeviceReading, Tell

if TYPE_CHECKING:
    from http.client import HTTPResponse

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
            text = (
                "has no known metrics of devices: it needs those of DCGM, XPU Manager 2 or"
                " OpenTelemetry (hw.gpu)"
            )
            self._tell("device metrics", f"{self._url} {text}")
            return {}
        self._next_s = now_s + min(LONGEST_S, max(SHORTEST_S, (time.thread_time() - cpu_s) / SHARE))
        return {name: DeviceReading(figures, [self._host]) for name, figures in devices.items()}


def problem(url: str) -> str:
    """Why this URL has no metrics of devices now; "" when it has."""
    reasons: list[str] = []
    ExporterSource(url, DeviceNames(dict), lambda _key, text: reasons.append(text)).read()
    return reasons[0] if reasons else ""


def _get(url: str) -> str:
    """The metrics at a URL. Raises OSError; ValueError for a malformed, long or cut response."""
    import urllib.request
    from http.client import HTTPException

    request = urllib.request.Request(url, headers={"Accept": "text/plain; version=0.0.4"})
    try:
        # an exporter of the node is asked directly, whatever proxy the environment names for others
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
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


def _rows(text: str) -> Iterable[MetricSample]:
    """The samples that are known. Raises ValueError on text that is none of Prometheus."""
    from prometheus_client.parser import text_string_to_metric_families

    lines = "\n".join(line for line in text.splitlines() if wanted(line))
    families: Any = text_string_to_metric_families(f"{lines}\n")
    for family in families:
        for sample in family.samples:
            yield MetricSample(sample.name, sample.labels, sample.value)


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return re.sub(r"\s+", " ", str(reason)).strip()[:200] or type(error).__name__

"""What pods use by the kubelets' own cAdvisor figures, for clusters without a metrics API.

CPU is a counter there, so the use is the difference of two looks; the first look tells memory only. kubelets renew
their figures every ten seconds or so, and say when they did: that time counts, not that of the look.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import quote

from scaletest.cluster.connection import Cluster
from scaletest.cluster.raw import Raw
from scaletest.model.errors import ScaletestError

CPU, MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
_LINE = re.compile(rf"({CPU}|{MEMORY})\{{(.*)\}} (\S+)(?: (\d+))?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Figures(NamedTuple):
    """Of a pod: CPU seconds since it began, bytes, and when that was so, None when the page does not say."""

    cpu_s: float
    memory: float
    at_s: float | None = None


def parsed(text: str, namespace: str) -> dict[str, Figures]:
    """The pods of a namespace in a page of cAdvisor, without rows of a whole pod and of its pause container."""
    cpu: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    at: dict[str, float] = {}
    for line in text.splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        labels = dict(_LABEL.findall(found[2]))
        if labels.get("namespace") != namespace or labels.get("container", "") in ("", "POD"):
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        pod = labels.get("pod", "")
        (cpu if found[1] == CPU else memory)[pod] += value
        if found[1] == CPU and found[4]:
            at[pod] = max(at.get(pod, 0.0), int(found[4]) / 1000)
    return {pod: Figures(cpu[pod], memory[pod], at.get(pod)) for pod in sorted({*cpu, *memory}) if pod}


class Cadvisor:
    """Looks at the nodes' figures through the API server. Needs the right to get nodes/proxy."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._raw, self._namespace, self._clock = Raw(cluster), cluster.namespace, clock
        self._before: dict[str, tuple[float, float]] = {}

    def look(self, nodes: Iterable[str]) -> dict[str, tuple[float | None, float]]:
        """Cores (None at the first look at a pod) and bytes of each pod on these nodes, of those that answer."""
        found: dict[str, tuple[float | None, float]] = {}
        for node in nodes:
            try:
                status, body, _ = self._raw.fetch(
                    f"/api/v1/nodes/{quote(node)}/proxy/metrics/cadvisor", f"read the figures of node {node}", {}
                )
            except ScaletestError:
                continue
            now = self._clock()
            for pod, one in (parsed(body.decode("utf-8", "replace"), self._namespace) if status == 200 else {}).items():
                found[pod] = (self._rate(pod, now if one.at_s is None else one.at_s, one.cpu_s), one.memory)
        return found

    def _rate(self, pod: str, now: float, cpu_s: float) -> float | None:
        """Cores since the last look; None for figures that are the same again."""
        at, before = self._before.get(pod, (now, cpu_s))
        if pod in self._before and cpu_s == before:
            return None
        self._before[pod] = (now, cpu_s)
        return (cpu_s - before) / (now - at) if now > at and cpu_s > before else None

"""Read what pods use from cAdvisor, for clusters without a metrics API, and their throttling.

Kubelets serve its metrics and renew them every ten seconds or so. They write when, and that time
counts, not ours. CPU is a counter, so its use is the difference of two samples, and the first
sample has memory only.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import quote

from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.model.errors import ScaletestError

FIELDS = {
    "container_cpu_usage_seconds_total": "cpu_s",
    "container_memory_working_set_bytes": "memory",
    "container_cpu_cfs_periods_total": "periods",
    "container_cpu_cfs_throttled_periods_total": "throttled",
}
_LINE = re.compile(rf"({'|'.join(FIELDS)})\{{(.*)\}} (\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: (\d+))?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class PodCounters(NamedTuple):
    """The counters of a pod: the sums of its containers."""

    cpu_s: float = 0.0  # CPU seconds since its start
    memory: float = 0.0  # bytes
    read_s: float | None = None  # when the kubelet read the CPU, in epoch seconds
    periods: float = 0.0  # of a CPU limit, since the start
    throttled: float = 0.0  # of these, those in which the limit was reached


def parse_usage(text: str, namespace: str) -> dict[str, PodCounters]:
    """Parse the counters of each pod of a namespace in a page of cAdvisor."""
    usage: dict[str, PodCounters] = defaultdict(PodCounters)
    for line in text.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        labels = dict(_LABEL.findall(match[2]))
        # lines of a whole pod and of its pause container would count twice
        is_container = labels.get("container", "") not in ("", "POD")
        pod = labels.get("pod")
        if labels.get("namespace") != namespace or not is_container or not pod:
            continue
        total, field = usage[pod], FIELDS[match[1]]
        total = total._replace(**{field: getattr(total, field) + float(match[3])})
        if field == "cpu_s" and match[4]:
            total = total._replace(read_s=max(total.read_s or 0.0, int(match[4]) / 1000))
        usage[pod] = total
    return dict(sorted(usage.items()))


class Cadvisor:
    """Reads the metrics of nodes through the API server. Needs the right to get nodes/proxy."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._namespace, self._clock = ApiCalls(cluster), cluster.namespace, clock
        # by pod: when its CPU counter last grew, and to what
        self._last_growth: dict[str, tuple[float, float]] = {}

    def sample(self, nodes: Iterable[str]) -> dict[str, tuple[float | None, float]]:
        """Sample the cores and bytes of each pod on these nodes.

        The cores are None in the first sample of a pod, and where the kubelet has not renewed its
        metrics since the last one. Nodes that do not answer are left out.
        """
        usage: dict[str, tuple[float | None, float]] = {}
        for pod, counters in self.read(nodes).items():
            read_s = self._clock() if counters.read_s is None else counters.read_s
            last_s, last_cpu_s = self._last_growth.get(pod, (read_s, counters.cpu_s))
            if pod not in self._last_growth or counters.cpu_s != last_cpu_s:
                self._last_growth[pod] = (read_s, counters.cpu_s)
            cores = None
            if read_s > last_s and counters.cpu_s > last_cpu_s:
                cores = (counters.cpu_s - last_cpu_s) / (read_s - last_s)
            usage[pod] = (cores, counters.memory)
        return usage

    def read(self, nodes: Iterable[str]) -> dict[str, PodCounters]:
        """Return the counters of each pod on these nodes; nodes that do not answer are left out."""
        found: dict[str, PodCounters] = {}
        for node in nodes:
            try:
                status, body, _ = self._api.fetch(
                    f"/api/v1/nodes/{quote(node)}/proxy/metrics/cadvisor",
                    f"read the metrics of node {node}",
                    {},
                )
            except ScaletestError:
                continue
            text = body.decode("utf-8", "replace") if status == 200 else ""
            found |= parse_usage(text, self._namespace)
        return found

"""CPU and memory of pods by the kubelets' cAdvisor metrics, for clusters without a metrics API.

CPU is a counter there, so its use is the difference of two samples; the first sample has memory
only. kubelets renew their metrics every ten seconds or so and write when: that time counts, not
ours.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import quote

from scaletest.cluster.connection import ApiCalls, Cluster
from scaletest.model.errors import ScaletestError

CPU, MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
_LINE = re.compile(rf"({CPU}|{MEMORY})\{{(.*)\}} (\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: (\d+))?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Figures(NamedTuple):
    """Usage of a pod at a time."""

    cpu_s: float  # CPU seconds since its start
    memory: float  # bytes
    at_s: float | None = None  # None if unknown


def parse_usage(text: str, namespace: str) -> dict[str, Figures]:
    """Parse the usage of each pod of a namespace in a page of cAdvisor: the sum of its containers.

    Lines of a whole pod and of its pause container are left out, as they would count twice.
    """
    cpu: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    at: dict[str, float] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        labels = dict(_LABEL.findall(match[2]))
        if labels.get("namespace") != namespace or labels.get("container", "") in ("", "POD"):
            continue
        pod = labels.get("pod", "")
        if match[1] == MEMORY:
            memory[pod] += float(match[3])
            continue
        cpu[pod] += float(match[3])
        if match[4]:
            at[pod] = max(at.get(pod, 0.0), int(match[4]) / 1000)
    return {
        pod: Figures(cpu[pod], memory[pod], at.get(pod)) for pod in sorted({*cpu, *memory}) if pod
    }


class Cadvisor:
    """Reads the metrics of nodes through the API server. Needs the right to get nodes/proxy."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._raw, self._namespace, self._clock = ApiCalls(cluster), cluster.namespace, clock
        self._before: dict[str, tuple[float, float]] = {}

    def sample(self, nodes: Iterable[str]) -> dict[str, tuple[float | None, float]]:
        """Sample the cores (None for the first sample of a pod) and bytes of each pod on these
        nodes.

        Nodes that do not answer are left out.
        """
        usage: dict[str, tuple[float | None, float]] = {}
        for node in nodes:
            try:
                status, body, _ = self._raw.fetch(
                    f"/api/v1/nodes/{quote(node)}/proxy/metrics/cadvisor",
                    f"read the metrics of node {node}",
                    {},
                )
            except ScaletestError:
                continue
            text = body.decode("utf-8", "replace") if status == 200 else ""
            now = self._clock()
            for pod, (cpu_s, memory, written_s) in parse_usage(text, self._namespace).items():
                at_s = now if written_s is None else written_s
                before_s, before = self._before.get(pod, (at_s, cpu_s))
                # where the metrics were not renewed since the last sample, the next one counts
                if pod not in self._before or cpu_s != before:
                    self._before[pod] = (at_s, cpu_s)
                renewed = at_s > before_s and cpu_s > before
                usage[pod] = ((cpu_s - before) / (at_s - before_s) if renewed else None, memory)
        return usage

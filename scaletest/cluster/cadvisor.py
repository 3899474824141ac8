"""Read how often the CPU limits of pods held them back, from cAdvisor.

Kubelets serve its metrics and renew them every ten seconds or so.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from scaletest.cluster.api_calls import ApiCalls
from scaletest.model.errors import ScaletestError

_LINE = re.compile(
    r"container_cpu_cfs_(throttled_)?periods_total\{(.*)\} (\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: \d+)?$"
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(slots=True)
class LimitPeriods:
    """The periods of a pod's CPU limit since its start: the sums of its containers."""

    periods: float = 0.0
    throttled: float = 0.0  # of these, those in which the limit was reached


def parse_limit_periods(text: str, namespace: str) -> dict[str, LimitPeriods]:
    """Parse the periods of each pod of a namespace in a page of cAdvisor."""
    periods: dict[str, LimitPeriods] = defaultdict(LimitPeriods)
    for line in text.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        is_throttled, label_text, number = match.groups()
        labels = dict(_LABEL.findall(label_text))
        # lines of a whole pod and of its pause container would count twice
        is_container = labels.get("container", "") not in ("", "POD")
        if labels.get("namespace") != namespace or not is_container or not labels.get("pod"):
            continue
        pod = periods[labels["pod"]]
        if is_throttled:
            pod.throttled += float(number)
        else:
            pod.periods += float(number)
    return dict(periods)


def read_limit_periods(
    api: ApiCalls, namespace: str, nodes: Iterable[str]
) -> dict[str, LimitPeriods]:
    """Return the periods of each pod of a namespace on these nodes.

    Nodes that do not answer are left out. Needs the right to get nodes/proxy.
    """
    periods: dict[str, LimitPeriods] = {}
    for node in nodes:
        try:
            status, body, _ = api.fetch(
                f"/api/v1/nodes/{quote(node)}/proxy/metrics/cadvisor",
                f"read the metrics of node {node}",
                {},
            )
        except ScaletestError:
            continue
        if status == 200:
            periods |= parse_limit_periods(body.decode("utf-8", "replace"), namespace)
    return periods

"""Times that pods report, beside those of the client: the difference is queues and networks."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.attempt import Attempt
from scaletest.model.declared import named_in_documents
from scaletest.model.writing import Written


@dataclass(frozen=True, slots=True)
class PodTimes(Written):
    """Times of one pod in s."""

    pod: str
    count: int
    mean_s: float
    fastest_s: float
    slowest_s: float
    queueing: Annotated[
        float | None,
        named_in_documents("queueing_share"),
        "part of the client's mean latency that is not the pod's, None if unknown.",
    ]

    def __str__(self) -> str:
        share = f", queueing {self.queueing:.0%}" if self.queueing is not None else ""
        times = (
            f"mean {1e3 * self.mean_s:.4g} ms, {1e3 * self.fastest_s:.4g} to"
            f" {1e3 * self.slowest_s:.4g} ms"
        )
        return f"pod {self.pod or 'unknown'}: {self.count} requests, {times}{share}"


def times_of_pods(samples: Sequence[Attempt]) -> list[PodTimes]:
    """Return the times that the service measured, of each pod; [] when it measured none."""
    times_by_pod: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for attempt in samples:
        if attempt.ok and attempt.server_s is not None:
            times_by_pod[attempt.pod].append((attempt.server_s, attempt.latency_s))
    pods = []
    for pod, times in sorted(times_by_pod.items()):
        server_times_s = [server_s for server_s, _ in times]
        mean_s = sum(server_times_s) / len(times)
        latency_s = sum(latency_s for _, latency_s in times) / len(times)
        queueing = max(0.0, 1.0 - mean_s / latency_s) if latency_s else None
        pods.append(
            PodTimes(pod, len(times), mean_s, min(server_times_s), max(server_times_s), queueing)
        )
    return pods

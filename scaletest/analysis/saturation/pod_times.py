"""Times that pods report, beside those of the client: the difference is queues and networks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Written, called
from scaletest.model.errors import InvalidValue
from scaletest.model.saturation import Attempt

LONGEST_LINE = 10_000


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
        called("queueing_share"),
        "part of the client's mean latency that is not the pod's, None if unknown.",
    ]

    def __str__(self) -> str:
        share = f", queueing {self.queueing:.0%}" if self.queueing is not None else ""
        times = (
            f"mean {1e3 * self.mean_s:.4g} ms, {1e3 * self.fastest_s:.4g} to"
            f" {1e3 * self.slowest_s:.4g} ms"
        )
        return f"pod {self.pod or 'unknown'}: {self.count} requests, {times}{share}"


def from_headers(samples: Sequence[Attempt]) -> list[PodTimes]:
    """The times of the pods that answers name; [] when no answer has a time."""
    own: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for attempt in samples:
        if attempt.ok and attempt.final and attempt.server_s is not None:
            own[attempt.pod].append((attempt.server_s, attempt.latency_s))
    times_of_pods = []
    for pod, rows in sorted(own.items()):
        latency_s = sum(latency for _, latency in rows) / len(rows)
        times_of_pods.append(_times(pod, [server for server, _ in rows], latency_s))
    return times_of_pods


def from_logs(
    logs: Mapping[str, Iterable[str]], pattern: str, latency_s: float | None
) -> list[PodTimes]:
    """The times of pods by their logs.

    pattern: its group 1 is the time in ms. latency_s: the client's mean over all pods.
    """
    expression = compiled(pattern)
    times_of_pods = []
    for pod, lines in sorted(logs.items()):
        times = []
        for line in lines:
            match = expression.search(line[:LONGEST_LINE])
            try:
                if match:
                    times.append(float(match[1]) / 1e3)
            except (TypeError, ValueError):
                continue
        if times:
            times_of_pods.append(_times(pod, times, latency_s))
    return times_of_pods


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as an expression; InvalidValue unless it has a group."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise InvalidValue(f"--log-pattern is not a regular expression: {error}") from error
    if expression.groups < 1:
        raise InvalidValue(
            "--log-pattern has no group",
            hint=r"put the time in ms into one, as in 'took ([\d.]+) ms'",
        )
    return expression


def _times(pod: str, values: Sequence[float], latency_s: float | None) -> PodTimes:
    mean_s = sum(values) / len(values)
    queueing = max(0.0, 1.0 - mean_s / latency_s) if latency_s else None
    return PodTimes(pod, len(values), mean_s, min(values), max(values), queueing)

"""What each pod says it took, beside what its client saw: the difference is time in queues and on the way. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.model.errors import InvalidValue
from scaletest.model.sample import Sample

LONGEST_LINE = 10_000


@dataclass(frozen=True, slots=True)
class PodTimes:
    """One pod's own times in s. queueing: part of the client's mean latency that is not the pod's, None if unknown."""

    pod: str
    count: int
    mean_s: float
    fastest_s: float
    slowest_s: float
    queueing: float | None

    def __str__(self) -> str:
        share = f", queueing {self.queueing:.0%}" if self.queueing is not None else ""
        times = f"mean {1e3 * self.mean_s:.4g} ms, {1e3 * self.fastest_s:.4g} to {1e3 * self.slowest_s:.4g} ms"
        return f"pod {self.pod or 'unknown'}: {self.count} requests, {times}{share}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "pod": self.pod,
            "count": self.count,
            "mean_s": self.mean_s,
            "fastest_s": self.fastest_s,
            "slowest_s": self.slowest_s,
            "queueing_share": self.queueing,
        }


def from_headers(samples: Sequence[Sample]) -> list[PodTimes]:
    """By the pod that each answer names; [] when none says its time."""
    own: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in samples:
        if one.ok and one.final and one.server_s is not None:
            own[one.pod].append((one.server_s, one.latency_s))
    found = []
    for pod, rows in sorted(own.items()):
        latency_s = sum(latency for _, latency in rows) / len(rows)
        found.append(_times(pod, [server for server, _ in rows], latency_s))
    return found


def from_logs(logs: Mapping[str, Iterable[str]], pattern: str, latency_s: float | None) -> list[PodTimes]:
    """By the pods' logs: group 1 of `pattern` is the time in ms. latency_s: the client's mean over all pods."""
    expression = compiled(pattern)
    found = []
    for pod, lines in sorted(logs.items()):
        times = []
        for line in lines:
            match = expression.search(line[:LONGEST_LINE])
            try:
                times += [float(match[1]) / 1e3] if match else []
            except (TypeError, ValueError):
                continue
        if times:
            found.append(_times(pod, times, latency_s))
    return found


def compiled(pattern: str) -> re.Pattern[str]:
    """The expression; InvalidValue unless it is one with a group."""
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise InvalidValue(f"--log-pattern is no regular expression: {error}") from error
    if found.groups < 1:
        raise InvalidValue("--log-pattern has no group", hint=r"put the time in ms into one, as in 'took ([\d.]+) ms'")
    return found


def _times(pod: str, values: Sequence[float], latency_s: float | None) -> PodTimes:
    mean_s = sum(values) / len(values)
    queueing = max(0.0, 1.0 - mean_s / latency_s) if latency_s else None
    return PodTimes(pod, len(values), mean_s, min(values), max(values), queueing)

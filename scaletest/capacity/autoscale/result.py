"""The simulated result of a rule, and its figures."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class SimulationPoint:
    """One moment: wanted replicas, present pods, requests that wait and run."""

    at_s: float
    replicas: int
    pods: int
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Figures of one rule."""

    rule: str
    requests: int
    ended: int
    changes: int  # times that the wanted replicas changed
    flips: int  # times that they changed from up to down or back
    killed: int  # requests whose pod was killed and which ran again
    makespan_s: float | None  # when the last request ended, None when some never did
    pod_s: float  # pod seconds, from creation to the end of each pod
    peak: int
    waits_s: tuple[float, ...] = ()  # of ended requests, sorted
    course: tuple[SimulationPoint, ...] = field(default=(), repr=False)

    @property
    def mean_wait_s(self) -> float | None:
        """None when nothing ended."""
        return statistics.fmean(self.waits_s) if self.waits_s else None

    def wait_s(self, share: float) -> float | None:
        """Return the wait that `share` of the ended requests did not exceed; None when nothing
        ended.
        """
        if not self.waits_s:
            return None
        return self.waits_s[
            min(len(self.waits_s) - 1, max(0, math.ceil(share * len(self.waits_s)) - 1))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the course."""
        return {
            "rule": self.rule,
            "requests": self.requests,
            "ended": self.ended,
            "changes": self.changes,
            "flips": self.flips,
            "killed": self.killed,
            "makespan_s": self.makespan_s,
            "pod_s": self.pod_s,
            "peak_pods": self.peak,
            "wait_mean_s": self.mean_wait_s,
            "wait_p50_s": self.wait_s(0.5),
            "wait_p95_s": self.wait_s(0.95),
            "wait_p99_s": self.wait_s(0.99),
            "wait_max_s": self.wait_s(1.0),
        }


def count_turns(changes: Sequence[int]) -> int:
    """Count how often a sequence of changes changes its sign."""
    signs = [change > 0 for change in changes if change]
    return sum(a != b for a, b in pairwise(signs))

"""Pods of one Deployment or of Jobs: starting, serving, draining, and the order of their removal.

The order of victims is the ReplicaSet controller's: not ready before ready, lower deletion cost,
ready for less time (by powers of two of seconds), then by uid, which is chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scaletest.analysis.autoscale.arrivals import SimulationChance

# As `scaletest cluster deletion-cost` writes it: idle 0; of busy pods the longest busy costs most.
IDLE_COST = 0
BUSY_COST = 1_000_000_000


@dataclass(slots=True, eq=False)
class SimulatedPod:
    """A pod.

    request: index of the request that it runs, -1 for none. ready_s is infinite until it is ready.
    once: a Job's pod, which serves one request and ends. turn: counts its requests, so that late
    events are known.
    """

    uid: float
    created_s: float
    once: bool = False
    ready_s: float = math.inf
    request: int = -1
    began_s: float = 0.0
    turn: int = 0
    draining: bool = False
    gone: bool = False

    @property
    def cost(self) -> float:
        """Its deletion cost when that is kept up to date."""
        if self.request < 0:
            return IDLE_COST
        return BUSY_COST - int(self.began_s)


def victims(
    pods: Iterable[SimulatedPod], count: int, now_s: float, idle_first: bool
) -> list[SimulatedPod]:
    """The pods that are removed when the ReplicaSet must shrink by `count`."""

    def order(pod: SimulatedPod) -> tuple[bool, float, int, float]:
        ready = pod.ready_s <= now_s
        age = max(now_s - pod.ready_s, 0.0) if ready else max(now_s - pod.created_s, 0.0)
        return (
            ready,
            pod.cost if idle_first else 0,
            int(math.log2(age)) if age >= 1 else -1,
            pod.uid,
        )

    return sorted(pods, key=order)[:count]


@dataclass(frozen=True, slots=True)
class PodTiming:
    """How long pods take to come and go. Seconds.

    start_s: from creation to ready, jitter: its relative spread (0.2: from 80 to 120 %). grace_s:
    between SIGTERM and SIGKILL; a worker that ends sooner loses nothing.
    """

    start_s: float = 20.0
    jitter: float = 0.0
    grace_s: float = 30.0

    def delay_s(self, chance: SimulationChance) -> float:
        """Start delay of one pod."""
        return self.start_s * (1 + self.jitter * (2 * chance.random() - 1))

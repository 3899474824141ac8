"""KEDA, after its operator's source, 2.20.

ScaledObject drives an HPA, and the step between none and one; ScaledJob has all its strategies.
"""

import math
from dataclasses import dataclass

COOLDOWN_S = 300.0


@dataclass(slots=True)
class ScaledObject:
    """The part of KEDA itself; between one and the maximum its HPA scales."""

    minimum: int = 0
    cooldown_s: float = COOLDOWN_S
    activation: float = 0.0
    active_at_s: float = 0.0  # when the queue was last active; before that the object's creation

    @property
    def hpa_minimum(self) -> int:
        """MinReplicas of its HPA."""
        return max(self.minimum, 1)

    def poll(self, now_s: float, metric: float, replicas: int) -> int:
        """Return the new spec.replicas."""
        if metric > self.activation:
            self.active_at_s = now_s
            return replicas or self.hpa_minimum
        if self.minimum == 0 and replicas > 0 and now_s - self.active_at_s > self.cooldown_s:
            return 0
        return replicas


@dataclass(frozen=True, slots=True)
class ScaledJob:
    """A ScaledJob."""

    strategy: str = "default"  # default, custom, accurate or eager
    maximum: int = 100
    minimum: int = 0
    target: float = 1.0  # queue entries a job
    deduction: int = 0  # of the strategy custom
    share: float = 0.0  # of the strategy custom

    def create(self, length: float, running: int, pending: int) -> int:
        """Return how many jobs one poll creates. running: not finished jobs; pending: those of them
        without a running pod.
        """
        wanted = min(self.maximum, math.ceil(length / self.target))
        if running < self.minimum:
            return self.minimum - running
        running -= self.minimum
        if self.strategy == "custom":
            number = min(wanted - self.deduction - int(running * self.share), self.maximum)
        elif self.strategy == "accurate":
            full = wanted + running - pending > self.maximum
            number = self.maximum - running if full else wanted - pending
        elif self.strategy == "eager":
            number = min(self.maximum - running - pending, wanted)
        else:
            number = wanted - running
        return max(0, number)

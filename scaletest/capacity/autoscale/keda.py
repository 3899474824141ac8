"""KEDA, after its operator's source, 2.20.

ScaledObject drives an HPA, and the step between none and one; ScaledJob creates Jobs.
"""

import math
from dataclasses import dataclass

COOLDOWN_S = 300.0


@dataclass(slots=True)
class ScaledObject:
    """The part of KEDA itself; between one and the maximum its HPA scales."""

    minimum: int = 0
    active_at_s: float = 0.0  # when the queue was last active; before that the object's creation

    def poll(self, now_s: float, metric: float, replicas: int) -> int:
        """Return the new spec.replicas."""
        if metric > 0:
            self.active_at_s = now_s
            return replicas or max(self.minimum, 1)
        if self.minimum == 0 and replicas > 0 and now_s - self.active_at_s > COOLDOWN_S:
            return 0
        return replicas


@dataclass(frozen=True, slots=True)
class ScaledJob:
    """A ScaledJob with one of KEDA's strategies."""

    strategy: str = "default"  # default, custom (without a deduction), accurate or eager
    maximum: int = 100
    minimum: int = 0
    target: float = 1.0  # queue entries a job

    def create(self, length: float, unfinished: int, pending: int) -> int:
        """Return how many jobs one poll creates.

        length: of the queue. unfinished: jobs that have not ended. pending: those of them without a
        running pod.
        """
        wanted = min(self.maximum, math.ceil(length / self.target))
        if unfinished < self.minimum:
            return self.minimum - unfinished
        unfinished -= self.minimum
        if self.strategy == "custom":
            number = wanted
        elif self.strategy == "accurate":
            is_full = wanted + unfinished - pending > self.maximum
            number = self.maximum - unfinished if is_full else wanted - pending
        elif self.strategy == "eager":
            number = min(self.maximum - unfinished - pending, wanted)
        else:
            number = wanted - unfinished
        return max(0, number)

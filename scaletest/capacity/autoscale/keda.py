"""KEDA, after its operator's source, 2.20.

ScaledObject drives an HPA, and the step between none and one; ScaledJob creates Jobs.
"""

import math
from dataclasses import dataclass

from scaletest.capacity.autoscale.rule import Rule

# KEDA's default: for how long a queue has been idle when its last pod goes.
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


def jobs_to_create(rule: Rule, length: float, unfinished: int, pending: int) -> int:
    """Return how many jobs one poll of a ScaledJob creates, by its strategy "accurate".

    length: of the queue. unfinished: jobs that have not ended. pending: those of them without a
    running pod.
    """
    if unfinished < rule.minimum:
        return rule.minimum - unfinished
    unfinished -= rule.minimum
    wanted = min(rule.maximum, math.ceil(length / rule.target))
    if wanted + unfinished - pending > rule.maximum:
        return max(0, rule.maximum - unfinished)
    return max(0, wanted - pending)

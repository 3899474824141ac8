"""HorizontalPodAutoscaler (autoscaling/v2), as its controller computes.

It is that for one External or Object metric, after pkg/controller/podautoscaler of Kubernetes 1.35:
proposals, tolerance, stabilisation, policies. Values are whole thousandths ("milli"), as there.
Metrics of pods and resources are left out: they do not include a queue.
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum

SYNC_S = 15.0
# Within this part of its target a metric changes nothing.
TOLERANCE = 0.1
# The controller's own window of stabilisation, for an HPA without `behavior`.
OWN_WINDOW_S = 300.0


class TargetType(StrEnum):
    """How a target is compared: AVERAGE_VALUE divides by the replicas, VALUE does not."""

    AVERAGE_VALUE = "AverageValue"
    VALUE = "Value"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """The largest change that is allowed in one period."""

    kind: str  # Pods, or Percent of the replicas at the beginning of the period
    value: int
    period_s: int


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """One direction of `behavior`. Of several policies the largest change counts ("Max")."""

    window_s: int  # of stabilisation
    policies: tuple[ScalingPolicy, ...]


# What the API fills in where `behavior` says nothing.
DEFAULT_UP = ScalingRules(0, (ScalingPolicy("Pods", 4, 15), ScalingPolicy("Percent", 100, 15)))
DEFAULT_DOWN = ScalingRules(300, (ScalingPolicy("Percent", 100, 15),))


@dataclass(frozen=True, slots=True)
class Behavior:
    """`spec.behavior`, with the API's defaults filled in."""

    up: ScalingRules = DEFAULT_UP
    down: ScalingRules = DEFAULT_DOWN


@dataclass(frozen=True, slots=True)
class HpaSpec:
    """An HPA as it is declared."""

    minimum: int
    maximum: int
    target: TargetType
    target_milli: int  # the target value in thousandths
    # None is the older algorithm, which is not the same as an empty `behavior`
    behavior: Behavior | None = None


@dataclass(slots=True)
class Hpa:
    """One HPA with its memory, which a restart of its controller clears. Times are in seconds."""

    spec: HpaSpec
    # when which number of replicas was proposed
    recommendations: list[tuple[float, int]] = field(default_factory=list)
    # when replicas were added (above 0) or taken away; kept for the policies of `behavior`
    changes: list[tuple[float, int]] = field(default_factory=list)

    def sync(self, now_s: float, replicas: int, status: int, ready: int, metric_milli: int) -> int:
        """Return the new spec.replicas.

        replicas: spec.replicas so far. status: status.replicas. ready: pods that are ready.
        """
        spec, behavior = self.spec, self.spec.behavior
        if not self.recommendations:
            self.recommendations.append((now_s, replicas))
        # a user scaled it to none: the controller leaves that alone
        if replicas == 0 and spec.minimum != 0:
            return 0
        if not spec.minimum <= replicas <= spec.maximum:
            wanted = min(max(replicas, spec.minimum), spec.maximum)
        else:
            proposal = propose(spec, replicas, status, ready, metric_milli)
            window_s = OWN_WINDOW_S
            if behavior is not None:
                window_s = max(behavior.up.window_s, behavior.down.window_s)
            self.recommendations = [
                (at_s, proposed)
                for at_s, proposed in self.recommendations
                if at_s >= now_s - window_s
            ]
            self.recommendations.append((now_s, proposal))
            if behavior is not None:
                wanted = self._apply_behavior(now_s, replicas, proposal, behavior)
            else:
                # the highest of that window, at most doubled
                highest = max(spec.minimum, *(proposed for _, proposed in self.recommendations))
                wanted = min(highest, spec.maximum, max(2 * replicas, 4))
        if wanted != replicas and behavior is not None:
            self.changes.append((now_s, wanted - replicas))
        return wanted

    def _apply_behavior(
        self, now_s: float, replicas: int, proposal: int, behavior: Behavior
    ) -> int:
        """Stabilise a proposal in both directions, then limit it by the policies."""
        up = down = proposal
        for at_s, proposed in self.recommendations:
            if at_s > now_s - behavior.up.window_s:
                up = min(up, proposed)
            if at_s > now_s - behavior.down.window_s:
                down = max(down, proposed)
        stable = min(max(replicas, up), down)
        if stable > replicas:
            limit = max(replicas, *self._policy_limits(now_s, replicas, behavior.up, 1))
            return min(stable, self.spec.maximum, limit)
        if stable < replicas:
            limit = min(replicas, *self._policy_limits(now_s, replicas, behavior.down, -1))
            return max(stable, self.spec.minimum, limit)
        return stable

    def _policy_limits(
        self, now_s: float, replicas: int, rules: ScalingRules, sign: int
    ) -> list[int]:
        """Return how far each policy lets the replicas go, up (sign 1) or down (-1)."""
        limits = []
        for policy in rules.policies:
            start_s = now_s - policy.period_s
            base = replicas - sum(change for at_s, change in self.changes if at_s > start_s)
            if policy.kind == "Pods":
                limits.append(base + sign * policy.value)
            elif sign > 0:
                limits.append(math.ceil(base * (1 + policy.value / 100)))
            else:
                limits.append(int(base * (1 - policy.value / 100)))
        return limits


def propose(spec: HpaSpec, replicas: int, status: int, ready: int, metric_milli: int) -> int:
    """Return the replicas that the metric proposes: the present number inside the tolerance.

    With AverageValue the present number is that of the status, not of the spec: after a change that
    is not carried out yet the controller goes by the present pods.
    """
    if spec.target is TargetType.AVERAGE_VALUE:
        if status and _is_near(metric_milli / (spec.target_milli * status)):
            return status
        return math.ceil(metric_milli / spec.target_milli)
    ratio = metric_milli / spec.target_milli
    if replicas == 0:
        return math.ceil(ratio)
    return replicas if _is_near(ratio) else math.ceil(ratio * ready)


def _is_near(ratio: float) -> bool:
    return 1.0 - TOLERANCE <= ratio <= 1.0 + TOLERANCE

"""HorizontalPodAutoscaler (autoscaling/v2), as its controller computes.

It is that for External and Object metrics, after pkg/controller/podautoscaler of Kubernetes 1.35:
proposals, tolerance, stabilisation, policies. Values are whole thousandths ("milli"), as there.
Metrics of pods and resources are left out: they do not include a queue.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

SYNC_S = 15.0
TOLERANCE = 0.1
# The longest period that the API allows a policy.
LONGEST_PERIOD_S = 1800.0
# The controller's own, for an HPA without `behavior`.
DOWNSCALE_WINDOW_S = 300.0


class TargetType(StrEnum):
    """How a target is compared: AVERAGE_VALUE divides by the replicas, VALUE does not."""

    AVERAGE_VALUE = "AverageValue"
    VALUE = "Value"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """At most so many pods, or percent of the replicas at its beginning, in a period of seconds."""

    kind: str
    value: int
    period_s: int


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """One direction of `behavior`."""

    window_s: int
    policies: tuple[ScalingPolicy, ...]
    select: str = "Max"  # Max, Min or Disabled
    tolerance: float = TOLERANCE


# What the API fills in where `behavior` says nothing.
DEFAULT_UP = ScalingRules(0, (ScalingPolicy("Pods", 4, 15), ScalingPolicy("Percent", 100, 15)))
DEFAULT_DOWN = ScalingRules(300, (ScalingPolicy("Percent", 100, 15),))


@dataclass(frozen=True, slots=True)
class Behavior:
    """`spec.behavior`, gaps filled."""

    up: ScalingRules = DEFAULT_UP
    down: ScalingRules = DEFAULT_DOWN


@dataclass(frozen=True, slots=True)
class HpaSpec:
    """An HPA."""

    minimum: int
    maximum: int
    target: TargetType
    target_milli: int  # the target value in thousandths
    # None is the older algorithm, which is not the same as an empty `behavior`
    behavior: Behavior | None = None


@dataclass(slots=True)
class Hpa:
    """One HPA with its memory, which a restart of its controller clears. Times in seconds."""

    spec: HpaSpec
    recommendations: list[tuple[float, int]] = field(default_factory=list)
    ups: list[tuple[float, int]] = field(default_factory=list)
    downs: list[tuple[float, int]] = field(default_factory=list)

    def sync(
        self, now_s: float, replicas: int, status: int, ready: int, metrics: Sequence[int | None]
    ) -> int:
        """Return the new spec.replicas. status: status.replicas. metrics: in thousandths, None when
        unread.
        """
        spec = self.spec
        if not self.recommendations:
            self.recommendations.append((now_s, replicas))
        if replicas == 0 and spec.minimum != 0:
            return 0
        if replicas > spec.maximum or replicas < spec.minimum:
            wanted = min(max(replicas, spec.minimum), spec.maximum)
        else:
            known = [
                propose(spec, replicas, status, ready, metric)
                for metric in metrics
                if metric is not None
            ]
            # a metric that could not be read might have asked for more: then nothing is taken away
            if not known or (len(known) < len(metrics) and max(known) < replicas):
                return replicas
            wanted = (
                self._decide_plainly(now_s, replicas, max(known))
                if spec.behavior is None
                else self._decide_by_rules(now_s, replicas, max(known), spec.behavior)
            )
        change = wanted - replicas
        if change and spec.behavior is not None:
            events = self.ups if change > 0 else self.downs
            events[:] = [event for event in events if event[0] > now_s - LONGEST_PERIOD_S]
            events.append((now_s, abs(change)))
        return wanted

    def _decide_plainly(self, now_s: float, replicas: int, proposal: int) -> int:
        """Without `behavior`: the highest of five minutes, at most doubled."""
        recent = [
            proposed
            for at_s, proposed in self.recommendations
            if at_s >= now_s - DOWNSCALE_WINDOW_S
        ]
        self._store(now_s, proposal, DOWNSCALE_WINDOW_S)
        return min(
            max([proposal, *recent, self.spec.minimum]), self.spec.maximum, max(2 * replicas, 4)
        )

    def _decide_by_rules(
        self, now_s: float, replicas: int, proposal: int, behavior: Behavior
    ) -> int:
        """With `behavior`: stabilised in both directions, then limited by the policies."""
        up = down = proposal
        for at_s, proposed in self.recommendations:
            if at_s > now_s - behavior.up.window_s:
                up = min(up, proposed)
            if at_s > now_s - behavior.down.window_s:
                down = max(down, proposed)
        self._store(now_s, proposal, max(behavior.up.window_s, behavior.down.window_s))
        stable = min(max(replicas, up), down)
        if stable > replicas:
            limit = max(replicas, self._limit(now_s, replicas, behavior.up, 1))
            return min(stable, self.spec.maximum, limit)
        if stable < replicas:
            limit = min(replicas, self._limit(now_s, replicas, behavior.down, -1))
            return max(stable, self.spec.minimum, limit)
        return min(max(stable, self.spec.minimum), self.spec.maximum)

    def _limit(self, now_s: float, replicas: int, rules: ScalingRules, sign: int) -> int:
        if rules.select == "Disabled":
            return replicas
        limits = []
        for policy in rules.policies:
            base = (
                replicas
                - _change_within(self.ups, now_s, policy)
                + _change_within(self.downs, now_s, policy)
            )
            if policy.kind == "Pods":
                limits.append(base + sign * policy.value)
            elif sign > 0:
                limits.append(math.ceil(base * (1 + policy.value / 100)))
            else:
                limits.append(int(base * (1 - policy.value / 100)))
        # `Max` is the largest change, so the smallest limit on the way down
        return max(limits) if (rules.select == "Max") == (sign > 0) else min(limits)

    def _store(self, now_s: float, proposal: int, window_s: float) -> None:
        self.recommendations = [
            *(row for row in self.recommendations if row[0] >= now_s - window_s),
            (now_s, proposal),
        ]


def propose(spec: HpaSpec, replicas: int, status: int, ready: int, total_milli: int) -> int:
    """Return the replicas that one metric proposes. Inside the tolerance that is the present
    number.

    total_milli: the metric in thousandths. With AverageValue the present number is that of the
    status, not of the spec: after a change that is not carried out yet the controller goes by the
    present pods.
    """
    behavior = spec.behavior or Behavior()
    down, up = behavior.down.tolerance, behavior.up.tolerance
    if spec.target is TargetType.AVERAGE_VALUE:
        if status and 1.0 - down <= total_milli / (spec.target_milli * status) <= 1.0 + up:
            return status
        return math.ceil(total_milli / spec.target_milli)
    ratio = total_milli / spec.target_milli
    if replicas == 0:
        return math.ceil(ratio)
    if 1.0 - down <= ratio <= 1.0 + up:
        return replicas
    return math.ceil(ratio * ready)


def _change_within(events: Sequence[tuple[float, int]], now_s: float, policy: ScalingPolicy) -> int:
    return sum(change for at_s, change in events if at_s > now_s - policy.period_s)

"""Autoscaling rules, their simulated results, and the search for the cheapest good one.

A rule is a metric, its target, and how fast it may act; the cheapest one keeps a wait target and
kills nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any

from scaletest.capacity.autoscale.hpa import (
    DEFAULT_UP,
    Behavior,
    HpaSpec,
    ScaledObject,
    ScalingPolicy,
    ScalingRules,
    TargetType,
)
from scaletest.model import checks
from scaletest.model.desired_workers import Targets
from scaletest.model.errors import InvalidValue

METRICS = ("waiting", "running", "demand", "desired_workers", "max_wait")


@dataclass(frozen=True, slots=True)
class Rule:
    """How a Deployment of workers is scaled, or Jobs are created.

    kind: hpa, keda (ScaledObject) or job (ScaledJob). metric: waiting, running, demand (both),
    desired_workers of the exporter, or max_wait (the longest wait of requests that ended since the
    last reading, as the original tester measured it). grace_s: None for that of the cluster.
    """

    name: str
    note: str
    kind: str = "hpa"
    metric: str = "demand"
    target: float = 1.0
    value: TargetType = TargetType.AVERAGE_VALUE
    behavior: Behavior | None = None
    minimum: int = 1
    maximum: int = 10
    grace_s: float | None = None
    targets: Targets = field(default_factory=Targets)
    strategy: str = "accurate"
    polling_s: float = 30.0

    def __post_init__(self) -> None:
        checks.count(self.minimum, "minimum", maximum=100_000)
        checks.count(self.maximum, "maximum", minimum=max(1, self.minimum), maximum=100_000)
        checks.number(self.target, "target", maximum=1e9)

    def hpa(self) -> HpaSpec:
        """The HPA of this rule."""
        minimum = ScaledObject(self.minimum).hpa_minimum if self.kind == "keda" else self.minimum
        return HpaSpec(
            minimum, self.maximum, self.value, max(1, round(self.target * 1000)), self.behavior
        )


def quick(window_s: int, *policies: ScalingPolicy) -> Behavior:
    """A behaviour that shrinks after `window_s` seconds, as fast as the policies let it."""
    return Behavior(
        DEFAULT_UP, ScalingRules(window_s, policies or (ScalingPolicy("Percent", 100, 15),))
    )


ORIGINAL = Behavior(
    ScalingRules(0, (ScalingPolicy("Percent", 100, 5), ScalingPolicy("Pods", 4, 5))),
    ScalingRules(10, (ScalingPolicy("Percent", 100, 5),)),
)
GENTLE = quick(60, ScalingPolicy("Pods", 1, 60))

_ALL = (
    Rule(
        "original-count",
        "for comparison: HPA of the tester that came before scaletest, on waiting, Value 2",
        metric="waiting",
        target=2.0,
        value=TargetType.VALUE,
        behavior=ORIGINAL,
    ),
    Rule(
        "original-wait",
        "for comparison: HPA of the tester that came before scaletest, on longest wait, Value 1",
        metric="max_wait",
        target=1.0,
        value=TargetType.VALUE,
        behavior=ORIGINAL,
    ),
    Rule("waiting", "HPA on waiting, without behavior", metric="waiting"),
    Rule("waiting-fast", "HPA on waiting, shrinking at once", metric="waiting", behavior=quick(0)),
    Rule("demand", "HPA on waiting + running, without behavior"),
    Rule("demand-fast", "HPA on waiting + running, shrinking at once", behavior=quick(0)),
    Rule(
        "demand-gentle",
        "HPA on waiting + running, one pod less a minute after a calm minute",
        behavior=GENTLE,
    ),
    Rule(
        "desired",
        "HPA on the exporter's desired workers",
        metric="desired_workers",
        behavior=quick(0),
    ),
    Rule(
        "keda",
        "KEDA ScaledObject on waiting + running, down to none",
        kind="keda",
        minimum=0,
        behavior=quick(60),
    ),
    Rule(
        "jobs",
        "KEDA ScaledJob, accurate: a pod for each request",
        kind="job",
        metric="waiting",
        minimum=0,
    ),
)
RULES = {rule.name: rule for rule in _ALL}


def parse(text: str) -> Rule:
    """NAME or NAME:KEY=VALUE,...; the keys are those of CHANGES."""
    name, _, changes = text.partition(":")
    rule = replace(RULES[checks.one_of(name, RULES, "rule")], name=text)
    for part in filter(None, changes.split(",")):
        key, _, setting = part.partition("=")
        checks.one_of(key, CHANGES, f"change of rule {name}")
        try:
            rule = CHANGES[key](rule, setting)
        except ValueError as error:
            raise InvalidValue(
                f"rule {text!r}: {setting!r} is no {key}",
                hint="write NAME:KEY=VALUE, as in demand:target=2",
            ) from error
    return rule


def _shrinking(rule: Rule, **changes: Any) -> Rule:
    """The rule with another behaviour on the way down."""
    down = (rule.behavior or quick(300)).down
    return replace(rule, behavior=Behavior(DEFAULT_UP, replace(down, **changes)))


def _down_pods(rule: Rule, text: str) -> Rule:
    pods = checks.count(int(text), "pods", minimum=1)
    return _shrinking(rule, policies=(ScalingPolicy("Pods", pods, 60),))


def _targets(key: str) -> Callable[[Rule, str], Rule]:
    return lambda rule, text: replace(rule, targets=replace(rule.targets, **{key: float(text)}))


CHANGES: dict[str, Callable[[Rule, str], Rule]] = {
    "metric": lambda rule, text: replace(rule, metric=checks.one_of(text, METRICS, "metric")),
    "target": lambda rule, text: replace(rule, target=float(text)),
    "min": lambda rule, text: replace(rule, minimum=int(text)),
    "max": lambda rule, text: replace(rule, maximum=int(text)),
    "down_window": lambda rule, text: _shrinking(
        rule, window_s=checks.count(int(text), "window", maximum=3600)
    ),
    "down_pods": _down_pods,
    "grace": lambda rule, text: replace(rule, grace_s=checks.seconds(float(text), "grace")),
    "strategy": lambda rule, text: replace(
        rule, strategy=checks.one_of(text, ("default", "custom", "accurate", "eager"), "strategy")
    ),
    "utilisation": _targets("utilisation"),
    "wait_target": _targets("wait_s"),
    "window": _targets("window_s"),
}


def to_values(rule: Rule) -> dict[str, Any]:
    """The rule as values for the chart; `behavior` can be pasted into an HPA too."""
    rows: dict[str, Any] = {
        "kind": rule.kind,
        "minReplicas": rule.minimum,
        "maxReplicas": rule.maximum,
        "metric": rule.metric,
        "targetType": str(rule.value),
        "target": f"{rule.target:g}",
    }
    if rule.kind != "hpa":
        rows["pollingInterval"] = round(rule.polling_s)
    if rule.kind == "job":
        rows["strategy"] = rule.strategy
    if rule.metric == "desired_workers":
        rows["exporter"] = {
            "utilisation": rule.targets.utilisation,
            "waitTarget": rule.targets.wait_s,
            "window": rule.targets.window_s,
        }
        if rule.kind != "hpa":
            rows["source"] = "exporter"  # Redis knows lengths only
    if rule.behavior is not None:
        rows["behavior"] = {
            "scaleUp": _rules(rule.behavior.up),
            "scaleDown": _rules(rule.behavior.down),
        }
    return {"autoscaling": rows}


def _rules(rules: ScalingRules) -> dict[str, Any]:
    return {
        "stabilizationWindowSeconds": rules.window_s,
        "selectPolicy": rules.select,
        "policies": [
            {"type": p.kind, "value": p.value, "periodSeconds": p.period_s} for p in rules.policies
        ],
    }


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
    """Figures of one rule.

    changes: times that the wanted replicas changed; flips: times that they changed from up to down
    or back. killed: requests whose pod was killed and which ran again. makespan_s: when the last
    request ended, None when some never did. waits_s: of ended requests, sorted. pod_s: pod seconds,
    from creation to the end of each pod.
    """

    rule: str
    requests: int
    ended: int
    changes: int
    flips: int
    killed: int
    makespan_s: float | None
    pod_s: float
    peak: int
    waits_s: tuple[float, ...] = ()
    course: tuple[SimulationPoint, ...] = field(default=(), repr=False)

    @property
    def mean_wait_s(self) -> float | None:
        """None when nothing ended."""
        return statistics.fmean(self.waits_s) if self.waits_s else None

    def wait_s(self, share: float) -> float | None:
        """The wait that `share` of the ended requests did not exceed; None when nothing ended."""
        if not self.waits_s:
            return None
        return self.waits_s[
            min(len(self.waits_s) - 1, max(0, math.ceil(share * len(self.waits_s)) - 1))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the course."""
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


def turns(changes: Sequence[int]) -> int:
    """How often a sequence of changes changes its sign."""
    signs = [change > 0 for change in changes if change]
    return sum(a != b for a, b in pairwise(signs))


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """A rule with its simulated result.

    met: whether the rule keeps the target; if none does, the best is the one that comes closest.
    """

    rule: Rule
    result: SimulationResult
    met: bool


def candidates(maximum: int, minimum: int, wait_s: float) -> Iterator[Rule]:
    """Candidate rules: on demand and on desired workers; quick, damped, and slow to scale down.

    None shrinks by a single look: a real queue that swings between full and nearly empty turns such
    a rule each time, which the simulated load need not show. To none it is KEDA that scales, as an
    HPA can do that from Kubernetes 1.37 on only.
    """
    downs = {
        "after 30 s": quick(30),  # two looks of the HPA
        "after 60 s": quick(60),
        "after 300 s": quick(300),
        "one pod a minute": quick(30, ScalingPolicy("Pods", 1, 60)),
    }
    kind = "hpa" if minimum else "keda"
    for how, behavior in downs.items():
        base = replace(
            RULES["demand"],
            kind=kind,
            behavior=behavior,
            maximum=maximum,
            minimum=minimum,
        )
        for target in (1.0, 1.5, 2.0, 4.0):
            yield replace(base, name=f"{target:g} requests a worker, down {how}", target=target)
        for utilisation, window_s in product((0.7, 0.9), (60.0, 300.0, 600.0)):
            targets = Targets(utilisation, max(1.0, wait_s), window_s)
            name = f"desired at {utilisation:g} over {window_s:g} s, down {how}"
            yield replace(base, name=name, metric="desired_workers", targets=targets)


def recommend(
    rules: Iterable[Rule],
    play: Callable[[Rule], SimulationResult],
    wait_s: float,
    share: float = 0.95,
) -> tuple[RuleChoice, list[RuleChoice]]:
    """The best choice, and all of them, best first: rules that keep the target, by cost.

    The target: `share` of the waits within `wait_s`. play: simulates a rule.
    """

    def rank(choice: RuleChoice) -> tuple[bool, bool, float, int]:
        simulated = choice.result
        cost = simulated.pod_s
        if not choice.met:
            wait = simulated.wait_s(share)
            cost = wait if wait is not None else math.inf
        return not choice.met, simulated.ended < simulated.requests, cost, simulated.changes

    choices = []
    for rule in rules:
        simulated = play(rule)
        complete = simulated.ended == simulated.requests and not simulated.killed
        wait = simulated.wait_s(share)
        met = complete and wait is not None and wait <= wait_s
        choices.append(RuleChoice(rule, simulated, met))
    choices.sort(key=rank)
    return choices[0], choices

"""Autoscaling rules: each is a metric, its target, and how fast it may act."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from scaletest.capacity.autoscale.hpa import (
    DEFAULT_UP,
    Behavior,
    ScalingPolicy,
    ScalingRules,
    TargetType,
)
from scaletest.model import checks
from scaletest.model.desired_workers import Targets
from scaletest.model.errors import InvalidValue

METRICS = ("waiting", "running", "demand", "desired_workers", "max_wait")
# That of the tester that came before scaletest.
ORIGINAL = Behavior(
    ScalingRules(0, (ScalingPolicy("Percent", 100, 5), ScalingPolicy("Pods", 4, 5))),
    ScalingRules(10, (ScalingPolicy("Percent", 100, 5),)),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """How a Deployment of workers is scaled, or Jobs are created."""

    name: str
    note: str
    kind: str = "hpa"  # hpa, keda (ScaledObject) or job (ScaledJob)
    # waiting, running, demand (both), desired_workers of the exporter, or max_wait (the longest
    # wait of requests that ended since the last reading, as the original tester measured it)
    metric: str = "demand"
    target: float = 1.0
    target_type: TargetType = TargetType.AVERAGE_VALUE
    behavior: Behavior | None = None
    minimum: int = 1
    maximum: int = 10
    grace_s: float = 30.0  # between SIGTERM and SIGKILL; a worker that ends sooner loses nothing
    targets: Targets = field(default_factory=Targets)  # of desired_workers
    polling_s: float = 30.0  # how often KEDA looks

    def __post_init__(self) -> None:
        checks.count(self.minimum, "minimum", maximum=100_000)
        checks.count(self.maximum, "maximum", minimum=max(1, self.minimum), maximum=100_000)
        checks.number(self.target, "target", maximum=1e9)


def shrink_after(window_s: int, *policies: ScalingPolicy) -> Behavior:
    """Return a behaviour that shrinks after `window_s` seconds, as fast as the policies let it."""
    return Behavior(
        DEFAULT_UP, ScalingRules(window_s, policies or (ScalingPolicy("Percent", 100, 15),))
    )


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "original-count",
            "for comparison: HPA of the tester that came before scaletest, on waiting, Value 2",
            metric="waiting",
            target=2.0,
            target_type=TargetType.VALUE,
            behavior=ORIGINAL,
        ),
        Rule(
            "original-wait",
            "for comparison: HPA of the tester that came before scaletest, on longest wait, Value"
            " 1",
            metric="max_wait",
            target=1.0,
            target_type=TargetType.VALUE,
            behavior=ORIGINAL,
        ),
        Rule("waiting", "HPA on waiting, without behavior", metric="waiting"),
        Rule(
            "waiting-fast",
            "HPA on waiting, shrinking at once",
            metric="waiting",
            behavior=shrink_after(0),
        ),
        Rule("demand", "HPA on waiting + running, without behavior"),
        Rule(
            "demand-fast", "HPA on waiting + running, shrinking at once", behavior=shrink_after(0)
        ),
        Rule(
            "demand-gentle",
            "HPA on waiting + running, one pod less a minute after a calm minute",
            behavior=shrink_after(60, ScalingPolicy("Pods", 1, 60)),
        ),
        Rule(
            "desired",
            "HPA on the exporter's desired workers",
            metric="desired_workers",
            behavior=shrink_after(0),
        ),
        Rule(
            "keda",
            "KEDA ScaledObject on waiting + running, down to none",
            kind="keda",
            minimum=0,
            behavior=shrink_after(60),
        ),
        Rule(
            "jobs",
            "KEDA ScaledJob, accurate: a pod for each request",
            kind="job",
            metric="waiting",
            minimum=0,
        ),
    )
}


def parse_rule(text: str, *, minimum: int = 1, maximum: int = 10, grace_s: float = 30.0) -> Rule:
    """Parse NAME or NAME:KEY=VALUE,...; the keys are those of CHANGES.

    minimum, maximum, grace_s: of the rule, where its keys say nothing. A rule that scales to none
    keeps its minimum.
    """
    name, _, changes = text.partition(":")
    rule = RULES[checks.one_of(name, RULES, "rule")]
    least = minimum if rule.minimum else 0
    rule = replace(rule, name=text, minimum=least, maximum=maximum, grace_s=grace_s)
    for part in filter(None, changes.split(",")):
        key, _, setting = part.partition("=")
        checks.one_of(key, CHANGES, f"change of rule {name}")
        try:
            rule = CHANGES[key](rule, setting)
        except ValueError as error:
            raise InvalidValue(
                f"rule {text!r}: invalid {key} {setting!r}",
                hint="write NAME:KEY=VALUE, e.g. demand:target=2",
            ) from error
    return rule


def _change_down(rule: Rule, **changes: Any) -> Rule:
    """Return the rule with other ScalingRules on the way down."""
    down = (rule.behavior or shrink_after(300)).down
    return replace(rule, behavior=Behavior(DEFAULT_UP, replace(down, **changes)))


def _target_changer(key: str) -> Callable[[Rule, str], Rule]:
    """Return a function that sets this field of a rule's targets."""
    return lambda rule, text: replace(rule, targets=replace(rule.targets, **{key: float(text)}))


CHANGES: dict[str, Callable[[Rule, str], Rule]] = {
    "metric": lambda rule, text: replace(rule, metric=checks.one_of(text, METRICS, "metric")),
    "target": lambda rule, text: replace(rule, target=float(text)),
    "min": lambda rule, text: replace(rule, minimum=int(text)),
    "max": lambda rule, text: replace(rule, maximum=int(text)),
    "down_window": lambda rule, text: _change_down(
        rule, window_s=checks.count(int(text), "window", maximum=3600)
    ),
    "down_pods": lambda rule, text: _change_down(
        rule, policies=(ScalingPolicy("Pods", checks.count(int(text), "pods", minimum=1), 60),)
    ),
    "grace": lambda rule, text: replace(rule, grace_s=checks.seconds(float(text), "grace")),
    "utilisation": _target_changer("utilisation"),
    "wait_target": _target_changer("wait_s"),
    "window": _target_changer("window_s"),
}


def to_values(rule: Rule) -> dict[str, Any]:
    """Return the rule as values for the chart; `behavior` can be pasted into an HPA too."""
    rows: dict[str, Any] = {
        "kind": rule.kind,
        "minReplicas": rule.minimum,
        "maxReplicas": rule.maximum,
        "metric": rule.metric,
        "targetType": str(rule.target_type),
        "target": f"{rule.target:g}",
    }
    if rule.kind != "hpa":
        rows["pollingInterval"] = round(rule.polling_s)
    if rule.kind == "job":
        rows["strategy"] = "accurate"
    if rule.metric == "desired_workers":
        rows["exporter"] = {
            "utilisation": rule.targets.utilisation,
            "waitTarget": rule.targets.wait_s,
            "window": rule.targets.window_s,
        }
        if rule.kind != "hpa":
            rows["source"] = "exporter"  # Redis knows lengths only
    if rule.behavior is not None:
        directions = {"scaleUp": rule.behavior.up, "scaleDown": rule.behavior.down}
        rows["behavior"] = {
            direction: {
                "stabilizationWindowSeconds": rules.window_s,
                "selectPolicy": "Max",
                "policies": [
                    {"type": policy.kind, "value": policy.value, "periodSeconds": policy.period_s}
                    for policy in rules.policies
                ],
            }
            for direction, rules in directions.items()
        }
    return {"autoscaling": rows}

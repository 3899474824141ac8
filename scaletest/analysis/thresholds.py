"""Whether thresholds hold. Each is PASS when its whole interval meets it, FAIL when none of it does, else INVALID.

    ratio                          interval of the step's ratio (90 %, one-sided 95 % at the end that counts)
    efficiency, throughput         95 %, from the two throughputs by the log delta method, or the step's own
    wait.p95 and the like          95 % by order statistics, of all successful requests of the step
    contention, coherency          bootstrap interval of the fitted law
    failures                       exact counts
    drift                          the shift within a step, 0 when it is not significant; no interval

Without N a threshold holds when it holds at every step, and the step that is worst is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.cause_text import workers_text
from scaletest.analysis.completions import ends_of
from scaletest.analysis.drift import BATCHES
from scaletest.analysis.estimate import Estimate, finite
from scaletest.analysis.percentiles import Distribution, Percentile, samples_needed
from scaletest.analysis.scaling import MeasuredThroughput, scaling
from scaletest.analysis.steps import Step
from scaletest.model import Plan, Verdict, VerdictKind
from scaletest.model.digits import short
from scaletest.model.threshold import METRICS, PERCENTILES, Threshold, parse

# The worst first; among equals the first step counts.
_ORDER = (VerdictKind.FAIL, VerdictKind.INVALID, VerdictKind.PASS)
# The rule that ends a step looks at throughput alone, so a larger --max-step would not help.
_LONGER = "measure longer, with --step-time or a smaller --precision, or more often, with --repeats"
# coefficient -> (low, value, high)
Coefficients = Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    """One threshold: what was measured, in base units, with its interval, and what follows.

    workers: the step that decided it; None for the whole run. value, low, high: None when there are no data.
    reason: in words, with the threshold's unit. remedy: what to do about FAIL or INVALID.
    """

    text: str
    kind: VerdictKind
    reason: str
    remedy: str = ""
    workers: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite or missing is null."""
        row = {**asdict(self), "kind": str(self.kind)}
        for name in ("value", "low", "high"):
            row[name] = finite(row[name]) if row[name] is not None else None
        return row


@dataclass(frozen=True, slots=True)
class _Measure:
    """A measured value with its interval, or why there is none."""

    estimate: Estimate | None
    missing: str = ""
    remedy: str = _LONGER


def evaluate_thresholds(
    plan: Plan, steps: Sequence[Step], coefficients: Coefficients | None = None
) -> tuple[ThresholdResult, ...]:
    """One result for each of the plan's thresholds, in their order.

    coefficients: of the fitted law, (low, value, high) for contention and coherency; None when no law was fitted.
    """
    return tuple(
        _evaluate(threshold, plan, steps, coefficients or {})
        for threshold in (parse(text, plan.steps) for text in plan.thresholds)
    )


def verdict_of(results: Sequence[ThresholdResult], kind: VerdictKind) -> Verdict | None:
    """The verdict of that kind, FAIL or INVALID, which the thresholds call for; None when they do not."""
    found = [result for result in results if result.kind is kind]
    if not found:
        return None
    what = "not met" if kind is VerdictKind.FAIL else "undecided"
    first = f"{found[0].text}: {found[0].reason}"
    return Verdict(kind, f"{len(found)} of {len(results)} thresholds {what}: {first}", found[0].remedy)


def _evaluate(threshold: Threshold, plan: Plan, steps: Sequence[Step], coefficients: Coefficients) -> ThresholdResult:
    if threshold.metric in ("contention", "coherency"):
        return _judge(threshold, _coefficient(threshold.metric, coefficients), None)
    if threshold.metric == "failures" and threshold.workers is None:
        return _judge(threshold, _run_failures(threshold, plan, steps), None)
    wanted = [threshold.workers] if threshold.workers is not None else _all_steps(threshold, plan)
    by_workers = {step.workers: step for step in steps}
    results = []
    for workers in wanted:
        step = by_workers.get(workers)
        found = _measure(threshold, step, steps) if step else _Measure(None, "not measured", "run it to the end")
        results.append(_judge(threshold, found, workers))
    return min(results, key=lambda result: _ORDER.index(result.kind)) if _mixed(results) else _worst(threshold, results)


def _all_steps(threshold: Threshold, plan: Plan) -> Sequence[int]:
    return plan.steps[1:] if threshold.metric == "ratio" and len(plan.steps) > 1 else plan.steps


def _mixed(results: Sequence[ThresholdResult]) -> bool:
    return len({result.kind for result in results}) > 1 or any(result.value is None for result in results)


def _worst(threshold: Threshold, results: Sequence[ThresholdResult]) -> ThresholdResult:
    """The result nearest to, or farthest beyond, the bound; all are of one kind and have values."""
    sign = 1.0 if threshold.operator.startswith(">") else -1.0
    return min(results, key=lambda result: sign * (result.value or 0.0))


def _judge(threshold: Threshold, found: _Measure, workers: int | None) -> ThresholdResult:
    at = f"{workers_text(workers)}: " if workers is not None and threshold.workers is None else ""
    text, estimate = str(threshold), found.estimate
    if estimate is None:
        return ThresholdResult(text, VerdictKind.INVALID, at + found.missing, found.remedy, workers)
    ends = [threshold.holds(end) for end in (estimate.low, estimate.value, estimate.high)]
    kind, remedy = VerdictKind.INVALID, found.remedy
    if all(ends):
        kind, remedy = VerdictKind.PASS, ""
    elif not any(ends):
        kind, remedy = VerdictKind.FAIL, "find what limits it there, or set another threshold"
    reason = at + _shown(threshold, estimate)
    return ThresholdResult(text, kind, reason, remedy, workers, estimate.value, estimate.low, estimate.high)


def _shown(threshold: Threshold, estimate: Estimate) -> str:
    """The value in the threshold's unit, and its interval when it has one."""
    factor = METRICS[threshold.metric].units[threshold.unit]
    value, low, high = (short(end / factor) for end in (estimate.value, estimate.low, estimate.high))
    unit = f" {threshold.unit}" if threshold.unit else ""
    return f"{value}{unit}" if low == high else f"{value}{unit} [{low}, {high}]"


def _measure(threshold: Threshold, step: Step, steps: Sequence[Step]) -> _Measure:
    metric = threshold.metric
    if metric == "failures":
        return _failures(threshold, [step])
    if metric == "drift":
        return _drift(step)
    kind, _, name = metric.partition(".")
    if name:
        return _percentile(step.wait if kind == "wait" else step.run, name)
    before = {"efficiency": steps[0], "ratio": _before(step, steps)}.get(metric)
    for one in (step, before):
        if one is not None and not one.sound:
            return _Measure(None, f"{workers_text(one.workers)}: not steady, or too few requests to tell")
    return {"throughput": _throughput, "efficiency": _efficiency, "ratio": _ratio}[metric](step, steps)


def _before(step: Step, steps: Sequence[Step]) -> Step | None:
    index = steps.index(step)
    return steps[index - 1] if index else None


def _throughput(step: Step, steps: Sequence[Step]) -> _Measure:
    rate = step.throughput
    return _Measure(Estimate(rate.per_s, max(0.0, rate.per_s - rate.half_width), rate.per_s + rate.half_width))


def _efficiency(step: Step, steps: Sequence[Step]) -> _Measure:
    measured = [
        MeasuredThroughput(one.workers, one.throughput.per_s, one.throughput.relative) for one in (steps[0], step)
    ]
    rows = scaling(measured if step is not steps[0] else measured[:1])
    found = next((row.efficiency for row in rows if row.workers == step.workers), None)
    return _Measure(found, "" if found else "there is no throughput to compare with")


def _ratio(step: Step, steps: Sequence[Step]) -> _Measure:
    found = step.ratio
    if found is None:
        return _Measure(None, "there is no step before it with a throughput", "name a later step, or raise --limit")
    return _Measure(Estimate(found.value, found.low, found.high))


def _percentile(times: Distribution, name: str) -> _Measure:
    found: Percentile | None = getattr(times, name.replace(".", "_"))
    if found is None or found.low is None or found.high is None:
        # with fewer than twice what the value itself needs there may be no interval yet
        needed = samples_needed(PERCENTILES[name]) if found is None else 2 * samples_needed(PERCENTILES[name])
        return _Measure(None, f"{name} needs {needed} requests, there are {times.count}")
    return _Measure(Estimate(found.value, found.low, found.high))


def _drift(step: Step) -> _Measure:
    least = min(min(map(len, ends_of(one.counted).values()), default=0) for one in step.samples)
    if least < 2 * BATCHES:
        return _Measure(None, f"drift needs {2 * BATCHES} requests of every worker, there are {least}")
    shift = max(abs(one.drift.shift) for one in step.samples)
    return _Measure(Estimate(shift, shift, shift))


def _failures(threshold: Threshold, steps: Iterable[Step]) -> _Measure:
    rows = list(steps)
    failed = sum(step.failures for step in rows)
    ended = failed + sum(step.run.count for step in rows)
    if threshold.share and not ended:
        return _Measure(None, "no request ended")
    value = failed / ended if threshold.share else float(failed)
    return _Measure(Estimate(value, value, value))


def _run_failures(threshold: Threshold, plan: Plan, steps: Sequence[Step]) -> _Measure:
    """Of the whole run; while steps are missing only what refutes it counts."""
    found = _failures(threshold, steps)
    if found.estimate and threshold.holds(found.estimate.value) and {step.workers for step in steps} != {*plan.steps}:
        return _Measure(None, "not every step was measured", "run it to the end")
    return found


def _coefficient(name: str, coefficients: Coefficients) -> _Measure:
    if name not in coefficients:
        return _Measure(None, "no scaling law could be fitted", "measure 4 steps or more: raise --limit or --repeats")
    low, value, high = coefficients[name]
    return _Measure(Estimate(value, low, high))

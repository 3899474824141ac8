"""Whether thresholds hold.

Each is PASS when its whole interval meets it, FAIL when none of it does, else INVALID. The
intervals:

    ratio                          of the step's ratio (90 %, one-sided 95 % at the end that counts)
    efficiency, throughput         95 %, from the two throughputs by the log delta method, or the
                                   step's own
    wait.p95 and the like          95 % by order statistics, of all successful requests of the step
    contention, coherency          bootstrap interval of the fitted law
    failures                       exact counts
    drift                          the shift within a step, 0 when it is not significant; no
                                   interval

Without N a threshold holds when it holds at every step, and the worst step is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.cause_text import workers_text
from scaletest.analysis.completions import ends_of
from scaletest.analysis.drift import BATCHES
from scaletest.analysis.estimate import Estimate, finite
from scaletest.analysis.percentiles import Distribution, Percentile, samples_needed
from scaletest.analysis.scaling import MeasuredThroughput, scaling
from scaletest.analysis.steps import Step
from scaletest.analysis.stopping import Stop
from scaletest.analysis.verdict_order import Ground, Rank
from scaletest.model import Plan, VerdictKind
from scaletest.model.digits import short
from scaletest.model.threshold import METRICS, PERCENTILES, Threshold, parse

# The worst first; among equals the first step counts.
_ORDER = (VerdictKind.FAIL, VerdictKind.INVALID, VerdictKind.PASS)
# The rule that ends a step looks at throughput alone, so a larger --max-step would not help.
_LONGER = "measure longer, with --step-time or a smaller --precision, or more often, with --repeats"
# Remedy for a bound that is refuted.
LIMITED = "find what limits it there, or set another threshold"
# coefficient -> (low, value, high)
Coefficients = Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    """One threshold: the measured value in base units with its interval, and what follows.

    workers: the step that decided it; None for the whole run. value, low, high: None when there are
    no data. reason: in words, with the threshold's unit. remedy: what to do about FAIL or INVALID.
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
        document = {**asdict(self), "kind": str(self.kind)}
        for name in ("value", "low", "high"):
            document[name] = finite(document[name]) if document[name] is not None else None
        return document


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

    coefficients: of the fitted law, (low, value, high) for contention and coherency; None when no
    law was fitted.
    """
    thresholds = [parse(text, plan.steps) for text in plan.thresholds]
    return tuple(_evaluate(each, plan, steps, coefficients or {}) for each in thresholds)


# The kind of the results that make a ground of a rank.
_KINDS = {Rank.REFUTED: VerdictKind.FAIL, Rank.OPEN: VerdictKind.INVALID}


def ground_of(results: Sequence[ThresholdResult], rank: Rank) -> Ground | None:
    """The ground that refuted, or undecided, thresholds are; None without one."""
    relevant = [result for result in results if result.kind is _KINDS[rank]]
    if not relevant:
        return None
    state = "undecided"
    if rank is Rank.REFUTED:
        state = "not met"
    first = relevant[0]
    count = f"{len(relevant)} of {len(results)} thresholds {state}"
    return Ground(rank, f"{count}: {first.text}: {first.reason}", first.remedy)


def _evaluate(
    threshold: Threshold, plan: Plan, steps: Sequence[Step], coefficients: Coefficients
) -> ThresholdResult:
    if threshold.metric in ("contention", "coherency"):
        return _judge(threshold, _coefficient(threshold.metric, coefficients), None)
    if threshold.metric == "failures" and threshold.workers is None:
        return _judge(threshold, _run_failures(threshold, plan, steps), None)
    wanted = _all_steps(threshold, plan)
    if threshold.workers is not None:
        wanted = [threshold.workers]
    by_workers = {step.workers: step for step in steps}
    results = []
    for workers in wanted:
        step = by_workers.get(workers)
        measure = _Measure(None, "not measured", "run it to the end")
        if step:
            measure = _measured(threshold, step, steps)
        results.append(_judge(threshold, measure, workers))
    if _mixed(results):
        return min(results, key=lambda result: _ORDER.index(result.kind))
    return _worst(threshold, results)


def _all_steps(threshold: Threshold, plan: Plan) -> Sequence[int]:
    if threshold.metric == "ratio" and len(plan.steps) > 1:
        return plan.steps[1:]
    return plan.steps


def _mixed(results: Sequence[ThresholdResult]) -> bool:
    return len({result.kind for result in results}) > 1 or any(
        result.value is None for result in results
    )


def _worst(threshold: Threshold, results: Sequence[ThresholdResult]) -> ThresholdResult:
    """The result nearest to, or farthest beyond, the bound; all are of one kind and have values."""
    sign = -1.0
    if threshold.operator.startswith(">"):
        sign = 1.0
    return min(results, key=lambda result: sign * (result.value or 0.0))


def _judge(threshold: Threshold, measure: _Measure, workers: int | None) -> ThresholdResult:
    at = ""
    if workers is not None and threshold.workers is None:
        at = f"{workers_text(workers)}: "
    text, estimate = str(threshold), measure.estimate
    if estimate is None:
        return ThresholdResult(
            text, VerdictKind.INVALID, at + measure.missing, measure.remedy, workers
        )
    return judge_interval(
        text, threshold.holds, estimate, at + _shown(threshold, estimate), measure.remedy, workers
    )


def judge_interval(
    text: str,
    holds: Callable[[float], bool],
    estimate: Estimate,
    reason: str,
    undecided: str,
    workers: int | None = None,
    refuted: str = LIMITED,
) -> ThresholdResult:
    """Whether all of an interval meets a threshold, or none of it.

    undecided, refuted: the remedy where only a part of it does, or none.
    """
    ends = [holds(end) for end in (estimate.low, estimate.value, estimate.high)]
    kind, remedy = VerdictKind.INVALID, undecided
    if all(ends):
        kind, remedy = VerdictKind.PASS, ""
    elif not any(ends):
        kind, remedy = VerdictKind.FAIL, refuted
    return ThresholdResult(
        text, kind, reason, remedy, workers, estimate.value, estimate.low, estimate.high
    )


def _shown(threshold: Threshold, estimate: Estimate) -> str:
    """The value in the threshold's unit, and its interval when it has one."""
    factor = METRICS[threshold.metric].units[threshold.unit]
    value, low, high = (
        short(end / factor) for end in (estimate.value, estimate.low, estimate.high)
    )
    unit = ""
    if threshold.unit:
        unit = f" {threshold.unit}"
    if low == high:
        return f"{value}{unit}"
    return f"{value}{unit} [{low}, {high}]"


def _measured(threshold: Threshold, step: Step, steps: Sequence[Step]) -> _Measure:
    metric = threshold.metric
    if metric == "failures":
        return _failures(threshold, [step])
    if any(sample.measurement.stop == Stop.ENDED for sample in step.samples):
        return _Measure(None, "the measurement was cut short", "run it to the end")
    if metric == "drift":
        return _drift(step)
    kind, _, name = metric.partition(".")
    if name:
        times = step.run
        if kind == "wait":
            times = step.wait
        return _percentile(times, name)
    before = {"efficiency": steps[0], "ratio": _before(step, steps)}.get(metric)
    for used in (step, before):
        if used is None:
            continue
        at = workers_text(used.workers)
        if not used.sound:
            return _Measure(None, f"{at}: not steady, or too few requests to tell")
        # a change of the machine cancels in a ratio only with the way down
        if used.mirrored and len(used.samples) < 2 and metric != "throughput":
            return _Measure(None, f"{at}: the way down was not measured", "run it to the end")
    return {"throughput": _throughput, "efficiency": _efficiency, "ratio": _ratio}[metric](
        step, steps
    )


def _before(step: Step, steps: Sequence[Step]) -> Step | None:
    index = steps.index(step)
    if index:
        return steps[index - 1]
    return None


def _throughput(step: Step, steps: Sequence[Step]) -> _Measure:
    rate = step.throughput
    return _Measure(
        Estimate(rate.per_s, max(0.0, rate.per_s - rate.half_width), rate.per_s + rate.half_width)
    )


def _efficiency(step: Step, steps: Sequence[Step]) -> _Measure:
    compared = [steps[0]]
    if step is not steps[0]:
        compared.append(step)
    rates = [
        MeasuredThroughput(each.workers, each.throughput.per_s, each.throughput.relative)
        for each in compared
    ]
    for scaled in scaling(rates):
        if scaled.workers == step.workers:
            return _Measure(scaled.efficiency)
    return _Measure(None, "there is no throughput to compare with")


def _ratio(step: Step, steps: Sequence[Step]) -> _Measure:
    ratio = step.ratio
    if ratio is None:
        return _Measure(
            None,
            "there is no step before it with a throughput",
            "name a later step, or raise --limit",
        )
    return _Measure(Estimate(ratio.value, ratio.low, ratio.high))


def _percentile(times: Distribution, name: str) -> _Measure:
    percentile: Percentile | None = getattr(times, name.replace(".", "_"))
    needed = samples_needed(PERCENTILES[name])
    if percentile is not None:
        if percentile.low is not None and percentile.high is not None:
            return _Measure(Estimate(percentile.value, percentile.low, percentile.high))
        # with fewer than twice the requests that the value itself needs there may be no interval
        needed *= 2
    return _Measure(None, f"{name} needs {needed} requests, there are {times.count}")


def _drift(step: Step) -> _Measure:
    least = min(
        min(map(len, ends_of(measured.counted).values()), default=0) for measured in step.samples
    )
    if least < 2 * BATCHES:
        return _Measure(
            None, f"drift needs {2 * BATCHES} requests of every worker, there are {least}"
        )
    shift = max(abs(measured.drift.shift) for measured in step.samples)
    return _Measure(Estimate(shift, shift, shift))


def _failures(threshold: Threshold, steps: Iterable[Step]) -> _Measure:
    rows = list(steps)
    failed = sum(step.failures for step in rows)
    ended = failed + sum(step.run.count for step in rows)
    if threshold.share and not ended:
        return _Measure(None, "no request ended")
    failures = failed / ended if threshold.share else float(failed)
    return _Measure(Estimate(failures, failures, failures))


def _run_failures(threshold: Threshold, plan: Plan, steps: Sequence[Step]) -> _Measure:
    """The failures of the whole run; while steps are missing only a refuted bound counts."""
    failures = _failures(threshold, steps)
    if (
        failures.estimate
        and threshold.holds(failures.estimate.value)
        and {step.workers for step in steps} != {*plan.steps}
    ):
        return _Measure(None, "not every step was measured", "run it to the end")
    return failures


def _coefficient(name: str, coefficients: Coefficients) -> _Measure:
    if name not in coefficients:
        return _Measure(
            None,
            "no scaling law could be fitted",
            "measure 4 steps or more: raise --limit or --repeats",
        )
    low, value, high = coefficients[name]
    return _Measure(Estimate(value, low, high))

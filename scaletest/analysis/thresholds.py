"""Whether thresholds hold: by one rule for every type of run; and those of a validation.

Each is PASS when the whole interval of its measure meets it, FAIL when none of it does, else
INVALID. Of several places that it is about, the worst counts. The intervals of a validation:

    ratio                          of the step's ratio (90 %, one-sided 95 % at the end that counts)
    efficiency, throughput         95 %, from the two throughputs by the log delta method, or the
                                   step's own
    wait.p95 and the like          95 % by order statistics, of all successful requests of the step
    contention, coherency          bootstrap interval of the fitted law
    failures                       exact counts
    drift                          the shift within a step, 0 when it is not significant; no
                                   interval

Those of ratios are not the ones of its measures, and a step may have no value for several reasons,
each with a remedy of its own: so a validation says itself what was measured at each step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from scaletest.analysis.doubling import Ratio
from scaletest.analysis.drift import BATCHES
from scaletest.analysis.estimate import Distribution, Estimate, Percentile, exactly, samples_needed
from scaletest.analysis.scaling import scaled
from scaletest.analysis.steps import Step
from scaletest.analysis.stopping import Stop
from scaletest.analysis.throughput import ends_of
from scaletest.analysis.verdict_order import Ground, Rank
from scaletest.model import Plan, VerdictKind
from scaletest.model.declared import Positive, Unbounded, Written, choice
from scaletest.model.texts import short
from scaletest.model.verdict import JUDGEMENTS, PERCENTILES, Threshold, parse_of_steps
from scaletest.render.numbers import plural, quantity

# The worst first; among equals the first step counts.
_ORDER = (VerdictKind.FAIL, VerdictKind.INVALID, VerdictKind.PASS)
# The rule that ends a step looks at throughput alone, so a larger --max-step would not help.
_LONGER = "measure longer, with <step_time> or a smaller <precision>, or more often, with <repeats>"
# Remedy for a bound that is refuted.
LIMITED = "find what limits it there, or set another threshold"
# Base units whose values have a prefix of their own, whatever the unit of the bound.
PREFIXED = ("bit/s", "B/s", "B")
# A narrow interval is shown with up to so many digits more than usual.
_MORE_DIGITS = 3
# contention and coherency of the fitted law
Coefficients = Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class ThresholdResult(Written):
    """One threshold: the measured value in base units with its interval, and what follows."""

    text: Annotated[str, "as in efficiency(8)>=0.8"]
    kind: Annotated[VerdictKind, choice(JUDGEMENTS)]
    reason: Annotated[str, "what was measured, in the threshold's unit"]
    remedy: Annotated[str, "what to do"] = ""
    workers: Annotated[Positive | None, "step that decided it, of a validation"] = None
    value: Annotated[Unbounded | None, "in base units"] = None
    low: Annotated[Unbounded | None, "of its interval"] = None
    high: Annotated[Unbounded | None, "None when there are no data."] = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured at one place that a threshold is about, or why it was not.

    missing: why there is no estimate. remedy: what to do about that, or about an undecided one.
    refuted: what to do about one that is refuted. place: in words, "" where nobody needs to be
    told. workers: the step; None for another place. remark: what must be known of the estimate.
    """

    estimate: Estimate | None
    missing: str = ""
    remedy: str = _LONGER
    refuted: str = LIMITED
    place: str = ""
    workers: int | None = None
    remark: str = ""


def judge(threshold: Threshold, places: Sequence[Measured]) -> ThresholdResult:
    """Whether a threshold holds at all the places that it is about; the worst of them counts."""
    sign = 1.0 if threshold.operator.startswith(">") else -1.0
    return min(
        (_judge(threshold, measured) for measured in places),
        key=lambda result: (_ORDER.index(result.kind), sign * (result.value or 0.0)),
    )


def _judge(threshold: Threshold, measured: Measured) -> ThresholdResult:
    """PASS where all of the interval meets it, FAIL where none of it does, else INVALID."""
    text, estimate = str(threshold), measured.estimate
    at = f"{measured.place}: " if measured.place else ""
    if estimate is None:
        return ThresholdResult(
            text, VerdictKind.INVALID, at + measured.missing, measured.remedy, measured.workers
        )
    ends = [threshold.holds(end) for end in (estimate.low, estimate.value, estimate.high)]
    kind, remedy = VerdictKind.INVALID, measured.remedy
    if all(ends):
        kind, remedy = VerdictKind.PASS, ""
    elif not any(ends):
        kind, remedy = VerdictKind.FAIL, measured.refuted
    return ThresholdResult(
        text,
        kind,
        at + _shown(threshold, estimate) + measured.remark,
        remedy,
        measured.workers,
        estimate.value,
        estimate.low,
        estimate.high,
    )


def _shown(threshold: Threshold, estimate: Estimate) -> str:
    """The value in the threshold's unit, and its interval when it has one, with so many digits that
    they can be told apart.
    """
    ends = (estimate.value, estimate.low, estimate.high)
    rows = [_numbers(threshold, ends, more) for more in range(_MORE_DIGITS + 1)]
    value, low, high = next((row for row in rows if len(set(row)) == len(set(ends))), rows[0])
    unit = f" {threshold.unit}" if threshold.unit and threshold.base not in PREFIXED else ""
    if math.isinf(estimate.high):
        known = f" [{low}, unknown]" if estimate.low > 0 else ", interval unknown"
        return f"{value}{unit}{known}"
    return f"{value}{unit}" if low == high else f"{value}{unit} [{low}, {high}]"


def _numbers(threshold: Threshold, ends: Sequence[float], more: int) -> list[str]:
    """Numbers as text. more: digits beyond the usual ones."""
    if threshold.base in PREFIXED:
        return [quantity(end, threshold.base, 4 + more) for end in ends]
    return [short(end / threshold.factor, 3 + more) for end in ends]


def evaluate_thresholds(
    plan: Plan, steps: Sequence[Step], coefficients: Coefficients | None = None
) -> tuple[ThresholdResult, ...]:
    """One result for each of the plan's thresholds, in their order.

    coefficients: None when no law was fitted.
    """
    thresholds = [parse_of_steps(text, plan.steps) for text in plan.thresholds]
    return tuple(_evaluate(each, plan, steps, coefficients or {}) for each in thresholds)


# The kind of the results that make a ground of a rank, and how texts call them.
_KINDS = {
    Rank.REFUTED: (VerdictKind.FAIL, "not met"),
    Rank.OPEN: (VerdictKind.INVALID, "undecided"),
}


def ground_of(results: Sequence[ThresholdResult], rank: Rank) -> Ground | None:
    """The ground that refuted, or undecided, thresholds are; None without one."""
    kind, state = _KINDS[rank]
    relevant = [result for result in results if result.kind is kind]
    if not relevant:
        return None
    first = relevant[0]
    count = f"{len(relevant)} of {len(results)} thresholds {state}"
    return Ground(rank, f"{count}: {first.text}: {first.reason}", first.remedy)


def _evaluate(
    threshold: Threshold, plan: Plan, steps: Sequence[Step], coefficients: Coefficients
) -> ThresholdResult:
    if threshold.measure in ("contention", "coherency"):
        return judge(threshold, [_coefficient(threshold.measure, coefficients)])
    if threshold.measure == "failures" and threshold.workers is None:
        return judge(threshold, [_run_failures(threshold, plan, steps)])
    wanted = plan.steps
    if threshold.workers is not None:
        wanted = (threshold.workers,)
    elif threshold.measure == "ratio" and len(plan.steps) > 1:
        wanted = plan.steps[1:]
    by_workers = {step.workers: step for step in steps}
    places = []
    for workers in wanted:
        step = by_workers.get(workers)
        measured = Measured(None, "not measured", "run it to the end")
        if step:
            measured = _measured(threshold, step, steps)
        place = plural(workers, "worker") if threshold.workers is None else ""
        places.append(replace(measured, workers=workers, place=place))
    return judge(threshold, places)


def _measured(threshold: Threshold, step: Step, steps: Sequence[Step]) -> Measured:
    measure = threshold.measure
    if measure == "failures":
        return _failures(threshold, [step])
    if any(sample.measurement.stop == Stop.ENDED for sample in step.samples):
        return Measured(None, "the measurement was cut short", "run it to the end")
    if measure == "drift":
        return _drift(step)
    kind, _, name = measure.partition(".")
    if name:
        return _percentile(getattr(step, kind), name)
    before = {"efficiency": steps[0], "ratio": steps[max(0, steps.index(step) - 1)]}
    for used in (step, before.get(measure, step)):
        at = plural(used.workers, "worker")
        if not used.sound:
            return Measured(None, f"{at}: not steady, or too few requests to tell")
        # a change of the machine cancels in a ratio only with the way down
        if len(used.samples) < 2 and measure != "throughput":
            return Measured(None, f"{at}: the way down was not measured", "run it to the end")
    if measure == "throughput":
        return Measured(step.throughput.estimate)
    if measure == "ratio":
        return _ratio(step.ratio)
    return _efficiency(step, steps[0])


def _efficiency(step: Step, base: Step) -> Measured:
    if min(step.throughput.per_s, base.throughput.per_s) <= 0:
        return Measured(None, "there is no throughput to compare with")
    return Measured(scaled(step.rate, base.rate).efficiency)


def _ratio(ratio: Ratio | None) -> Measured:
    if ratio is None:
        return Measured(
            None,
            "there is no step before it with a throughput",
            "name a later step, or raise <limit>",
        )
    return Measured(Estimate(ratio.value, ratio.low, ratio.high))


def _percentile(times: Distribution, name: str) -> Measured:
    percentile: Percentile | None = getattr(times, name.replace(".", "_"))
    needed = samples_needed(PERCENTILES[name])
    if percentile is not None:
        if percentile.low is not None and percentile.high is not None:
            return Measured(Estimate(percentile.value, percentile.low, percentile.high))
        # with fewer than twice the requests that the value itself needs there may be no interval
        needed *= 2
    return Measured(None, f"{name} needs {needed} requests, there are {times.count}")


def _drift(step: Step) -> Measured:
    least = min(
        min(map(len, ends_of(measured.counted).values()), default=0) for measured in step.samples
    )
    if least < 2 * BATCHES:
        return Measured(
            None, f"drift needs {2 * BATCHES} requests of every worker, there are {least}"
        )
    return Measured(exactly(max(abs(measured.drift.shift) for measured in step.samples)))


def _failures(threshold: Threshold, steps: Sequence[Step]) -> Measured:
    failed = sum(step.failures for step in steps)
    ended = failed + sum(step.run.count for step in steps)
    if threshold.share and not ended:
        return Measured(None, "no request ended")
    failures = failed / ended if threshold.share else float(failed)
    return Measured(exactly(failures))


def _run_failures(threshold: Threshold, plan: Plan, steps: Sequence[Step]) -> Measured:
    """The failures of the whole run; while steps are missing only a refuted bound counts."""
    failures = _failures(threshold, steps)
    if (
        failures.estimate
        and threshold.holds(failures.estimate.value)
        and {step.workers for step in steps} != {*plan.steps}
    ):
        return Measured(None, "not every step was measured", "run it to the end")
    return failures


def _coefficient(name: str, coefficients: Coefficients) -> Measured:
    if name not in coefficients:
        return Measured(
            None,
            "no scaling law could be fitted",
            "measure 4 steps or more: raise <limit> or <repeats>",
        )
    return Measured(coefficients[name])

"""Judge the doublings of a service from what load tools measured. Pure.

The runs at one number of replicas are the units: an interval is made of the scatter between them,
by Student's t on the logarithm of the throughput, where ratios are differences. One or two runs
have no interval, and no ratio of theirs is judged.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from scaletest.model import Verdict, VerdictKind
from scaletest.model.declared import INNER, VERSIONED, Positive, flat
from scaletest.model.writing import Written
from scaletest.stats.chance import Chance
from scaletest.stats.estimate import Estimate, estimate_within
from scaletest.stats.law import Choice, choose_law
from scaletest.stats.law_interval import LawInterval, law_interval
from scaletest.stats.scaling import MeasuredThroughput, Scaled, scaling_over
from scaletest.stats.student import t95, t_quantile, welch_freedom
from scaletest.stats.thresholds import Measured, ThresholdResult, ground_of, judge_threshold
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds
from scaletest.validation.imported.comparable import find_doubts, warnings_of
from scaletest.validation.imported.plan import KIND, TOKENS, UNITS, ImportedPlan, read_threshold
from scaletest.validation.imported.result import ToolResult
from scaletest.validation.judging.doubling import (
    BOUND_ERROR,
    Ratio,
    ratio_around,
    wanted_ratio,
    widening_for_all,
)

# Fewer runs have no interval: with two, Student's t is so wide that it says nothing.
LEAST_REPEATS = 3


@dataclass(frozen=True, slots=True)
class ImportedStep(Written):
    """All runs at one number of replicas."""

    workers: Annotated[Positive, "the number of replicas, or of what was doubled"]
    throughput: Annotated[Estimate, "of the judged measure, per second; the mean of the runs"]
    repeats: Annotated[Positive, "runs"]
    relative: Annotated[float, INNER, "standard error over throughput; infinite without interval"]
    freedom: Annotated[int, INNER, "degrees of freedom of that error"]
    ratio: Annotated[Ratio | None, "to the step before; without interval where its ends are null"]
    scaled: Annotated[Scaled, flat("speedup", "efficiency")]
    results: Annotated[tuple[ToolResult, ...], "of the tool"]
    price_per_million: Annotated[float | None, "for a million output tokens; null if unknown"] = (
        None
    )

    @property
    def rate(self) -> MeasuredThroughput:
        """Its throughput, as figures of scaling take it."""
        wide = t95(self.freedom) * self.relative if self.freedom else math.inf
        return MeasuredThroughput(self.workers, self.throughput.value, wide)


@dataclass(frozen=True, slots=True)
class ImportedEvaluation(Written):
    """What the files say."""

    constants: ClassVar = {**VERSIONED, "kind": KIND}

    plan: ImportedPlan
    steps: list[ImportedStep]
    law: Annotated[Choice | None, "null with too few steps"]
    law_interval: LawInterval | None
    thresholds: tuple[ThresholdResult, ...]
    warnings: list[str]
    verdict: Verdict

    @property
    def finding(self) -> Annotated[str, 'the result in a few words, e.g. "7.9x at 8"']:
        """The speed-up for lists; "" before there is one."""
        if len(self.steps) < 2:
            return ""
        last = self.steps[-1]
        return f"{last.scaled.speedup.value:.1f}x at {last.workers}"


# Returns the cause of a doubling that fails and what to do, for its two steps.
Explain = Callable[[ImportedStep, ImportedStep], tuple[str, str]]


def evaluate_results(
    plan: ImportedPlan, results: Sequence[ToolResult], chance: Chance
) -> ImportedEvaluation:
    """Judge these results. chance: for the law's interval, seeded by the caller."""
    steps: list[ImportedStep] = []
    for count in plan.steps:
        rows = tuple(result for result in results if result.count == count)
        if rows:
            steps.append(summarise_runs(plan, count, rows, steps))
    return judge_steps(plan, steps, chance)


def judge_steps(
    plan: ImportedPlan,
    steps: list[ImportedStep],
    chance: Chance,
    *,
    closer: str = "",
    explain: Explain | None = None,
    further: Sequence[Ground] = (),
) -> ImportedEvaluation:
    """Judge steps whose throughputs and ratios are known.

    closer: what to do for narrower intervals, instead of more runs. explain: where causes are
    known. further: what else speaks for a verdict.
    """
    results = [result for step in steps for result in step.results]
    throughputs = [(float(row.count), throughput_of(row, plan.measure)) for row in results]
    points = [point for point in throughputs if point[1] > 0]
    law = choose_law(points)
    thresholds = tuple(_judge_threshold(text, steps) for text in plan.thresholds)
    repeat = closer or f"measure each number of {plan.axis} {LEAST_REPEATS} times or more"
    ratios = _grounds_of_ratios(plan, steps, thresholds, repeat=repeat, explain=explain)
    return ImportedEvaluation(
        plan=plan,
        steps=steps,
        law=law,
        law_interval=law_interval(law.law, points, chance) if law else None,
        thresholds=thresholds,
        warnings=warnings_of(results),
        verdict=verdict_of_grounds([*further, *find_doubts(plan, results), *ratios]),
    )


def throughput_of(result: ToolResult, measure: str) -> float:
    """Return the judged throughput of a result; 0 where its file has none."""
    per_s = result.tokens_per_s if measure == TOKENS else result.requests_per_s
    return per_s or 0.0


def summarise_runs(
    plan: ImportedPlan, count: int, rows: tuple[ToolResult, ...], before: Sequence[ImportedStep]
) -> ImportedStep:
    """Return the step of these runs. before: the steps with fewer replicas."""
    values = [throughput_of(row, plan.measure) for row in rows]
    logarithms = [math.log(value) for value in values if value > 0]
    mean = math.exp(statistics.fmean(logarithms)) if logarithms else 0.0
    # the scatter of the runs, or what an aggregate of the tool's own says of it
    repeats, deviation = rows[0].repeats, rows[0].deviation
    if len(rows) > 1:
        repeats = len(rows)
        deviation = statistics.stdev(logarithms) if len(logarithms) == repeats else 0.0
    # runs that are all the same are copies, or were rounded: their scatter is unknown
    relative = half_width = math.inf
    freedom = 0
    if repeats >= LEAST_REPEATS and deviation > 0:
        freedom = repeats - 1
        relative = deviation / math.sqrt(repeats)
        half_width = t95(freedom) * relative
    tokens_per_hour = 3600.0 * statistics.fmean(row.tokens_per_s or 0.0 for row in rows)
    price = plan.price * count / tokens_per_hour * 1e6 if tokens_per_hour > 0 else 0.0
    measured = MeasuredThroughput(count, mean, half_width)
    base = before[0].rate if before else measured
    step = ImportedStep(
        workers=count,
        throughput=estimate_within(mean, half_width),
        repeats=repeats,
        relative=relative,
        freedom=freedom,
        ratio=None,
        scaled=scaling_over(measured, base if base.per_s > 0 else measured),
        results=rows,
        price_per_million=price or None,
    )
    return replace(step, ratio=_ratio(plan, before[-1], step)) if before else step


def _ratio(plan: ImportedPlan, before: ImportedStep, step: ImportedStep) -> Ratio | None:
    """Return the ratio of two steps, with its 90 % interval by Welch's t."""
    if min(step.throughput.value, before.throughput.value) <= 0:
        return None
    errors = (before.relative, step.relative)
    half_width = math.inf
    if all(map(math.isfinite, errors)):
        freedom = welch_freedom(errors, (before.freedom, step.freedom))
        half_width = t_quantile(1.0 - BOUND_ERROR, freedom) * math.hypot(*errors)
    wanted = wanted_ratio(plan.scale, before.workers, step.workers)
    log_ratio = math.log(step.throughput.value / before.throughput.value)
    widening = widening_for_all(len(plan.steps) - 1)
    return ratio_around(log_ratio, half_width, half_width, wanted, widening)


def _judge_threshold(text: str, steps: Sequence[ImportedStep]) -> ThresholdResult:
    threshold = read_threshold(text)
    places = []
    for step in steps[1:] if threshold.measure == "ratio" else steps:
        if threshold.workers not in (None, step.workers):
            continue
        estimate: Estimate | None = step.throughput
        if threshold.measure == "efficiency":
            estimate = step.scaled.efficiency
        elif threshold.measure == "ratio":
            ratio = step.ratio
            estimate = Estimate(ratio.value, ratio.low, ratio.high) if ratio else None
        missing = "" if estimate else "there is no ratio to the step before"
        places.append(Measured(estimate, missing, workers=step.workers, place=f"at {step.workers}"))
    return judge_threshold(threshold, places or [Measured(None, "not measured")])


def _grounds_of_ratios(
    plan: ImportedPlan,
    steps: Sequence[ImportedStep],
    thresholds: Sequence[ThresholdResult],
    *,
    repeat: str,
    explain: Explain | None,
) -> Iterator[Ground | None]:
    """Yield what the ratios and thresholds say, and last what a run without a fault met.

    repeat: what to do for narrower intervals.
    """
    if len(steps) < 2:
        yield Ground(Rank.OPEN, f"one number of {plan.axis} has no ratio", "give two or more")
    if not plan.scale and not thresholds:
        yield Ground(
            Rank.OPEN, "no ratio is wanted, so nothing is judged", "give <scale> or <threshold>"
        )
    for before, step in itertools.pairwise(steps):
        yield _ground_of_doubling(plan, before, step, repeat=repeat, explain=explain)
    yield ground_of(thresholds, Rank.REFUTED)
    yield ground_of(thresholds, Rank.OPEN)
    met = []
    ratios = [step.ratio for step in steps if step.ratio]
    if plan.scale and ratios:
        least = min(ratios, key=lambda ratio: ratio.value / ratio.wanted)
        reached = f"every doubling up to {steps[-1].workers} {plan.axis} reaches {plan.scale:.2f}"
        met.append(f"{reached}: the least is {least.value:.2f}")
    if thresholds:
        met.append(f"{len(thresholds)} of {len(thresholds)} thresholds hold")
    yield Ground(Rank.MET, "; ".join(met))


def _ground_of_doubling(
    plan: ImportedPlan,
    before: ImportedStep,
    step: ImportedStep,
    *,
    repeat: str,
    explain: Explain | None,
) -> Ground | None:
    """Return why a doubling fails or is undecided; None where its ratio is as wanted."""
    ratio, doubling = step.ratio, f"{before.workers} -> {step.workers} {plan.axis}"
    if ratio is None:
        return Ground(Rank.OPEN, f"{doubling}: no {UNITS[plan.measure]} in the files", repeat)
    if not plan.scale or ratio.kind is VerdictKind.PASS:
        return None
    value = f"{doubling}: ratio {ratio.value:.2f}"
    if not math.isfinite(ratio.high):
        reason = f"{value}, without an interval: fewer than {LEAST_REPEATS} runs that differ"
        return Ground(Rank.OPEN, reason, repeat)
    value = f"{value} [{ratio.low:.2f}, {ratio.high:.2f}]"
    if ratio.kind is VerdictKind.INVALID:
        return Ground(Rank.OPEN, f"{value} may or may not reach {ratio.wanted:.2f}", repeat)
    cause = ""
    remedy = f"find what the {plan.axis} share: a proxy or router, one node, a cache, a backend"
    if explain:
        cause, remedy = explain(before, step)
    return Ground(Rank.REFUTED, f"{value} is below the {ratio.wanted:.2f} wanted{cause}", remedy)

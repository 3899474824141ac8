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
from scaletest.render.numbers import format_percent, format_seconds, format_significant
from scaletest.stats.chance import Chance
from scaletest.stats.estimate import Estimate, estimate_within
from scaletest.stats.law import Choice, choose_law
from scaletest.stats.law_interval import LawInterval, law_interval
from scaletest.stats.scaling import MeasuredThroughput, Scaled, scaling_over
from scaletest.stats.student import t95, t_quantile, welch_freedom
from scaletest.stats.thresholds import Measured, ThresholdResult, ground_of, judge_threshold
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds
from scaletest.validation.imported.formats import FORMATS, Format
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
# Relative differences between steps that chance and rounding explain.
SAME_LOAD, SAME_LENGTH = 0.01, 0.05
# Requests for each that is in flight: with fewer, start and end of a run are more than 2 % of it.
LEAST_TURNS = 50
# A client that sends later than this measures itself (inference-perf's documentation).
CLIENT_LATE_S = 0.01
# Open load that is served as it was asked for shows no capacity.
SERVED_SHARE = 0.98
# An aggregate has the options of its tool's first format.
BY_TOOL = {form.tool: form for form in reversed(FORMATS)}
# scaletest's own client, which measures for a time and says what to do by itself.
NO_OPTIONS = Format("scaletest", (), {})


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
    price_per_million: Annotated[float | None, "for a million output tokens; null if unknown"]
    results: Annotated[tuple[ToolResult, ...], "of the tool"]

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
        scaled = [step.scaled for step in self.steps if step.scaled]
        if len(scaled) < 2:
            return ""
        return f"{scaled[-1].speedup.value:.1f}x at {scaled[-1].workers}"


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
    explain: Callable[[ImportedStep, ImportedStep], tuple[str, str]] | None = None,
    further: Sequence[Ground] = (),
) -> ImportedEvaluation:
    """Judge steps whose throughputs and ratios are known.

    closer: what to do for narrower intervals. explain: returns the cause of a doubling that fails
    and what to do, for its two steps. further: what else speaks for a verdict.
    """
    points = [(float(step.workers), value) for step in steps for value in _values(plan, step)]
    law = choose_law(points)
    thresholds = tuple(_judge_threshold(text, steps) for text in plan.thresholds)
    grounds, warnings = check_files(plan, steps)
    ratios = _grounds_of_ratios(plan, steps, thresholds, closer=closer, explain=explain)
    return ImportedEvaluation(
        plan=plan,
        steps=steps,
        law=law,
        law_interval=law_interval(law.law, points, chance) if law else None,
        thresholds=thresholds,
        warnings=warnings,
        verdict=verdict_of_grounds([*further, *grounds, *ratios]),
    )


def throughput_of(result: ToolResult, measure: str) -> float:
    """Return the judged throughput of a result; 0 where its file has none."""
    per_s = result.tokens_per_s if measure == TOKENS else result.requests_per_s
    return per_s or 0.0


def _values(plan: ImportedPlan, step: ImportedStep) -> list[float]:
    return [value for row in step.results if (value := throughput_of(row, plan.measure)) > 0]


def summarise_runs(
    plan: ImportedPlan, count: int, rows: tuple[ToolResult, ...], before: Sequence[ImportedStep]
) -> ImportedStep:
    """Return the step of these runs. before: the steps with fewer replicas."""
    values = [throughput_of(row, plan.measure) for row in rows]
    logarithms = [math.log(value) for value in values if value > 0]
    mean = math.exp(statistics.fmean(logarithms)) if logarithms else 0.0
    repeats, deviation = len(rows), math.inf
    if len(rows) == 1:
        # an aggregate of the tool's own
        repeats, deviation = rows[0].repeats, rows[0].deviation
    elif len(logarithms) == len(rows):
        deviation = statistics.stdev(logarithms)
    # runs that are all the same are copies, or were rounded: their scatter is unknown
    enough = repeats >= LEAST_REPEATS and 0.0 < deviation < math.inf
    relative = deviation / math.sqrt(repeats) if enough else math.inf
    freedom = repeats - 1 if enough else 0
    half = t95(freedom) * relative if enough else math.inf
    measured = MeasuredThroughput(count, mean, half)
    base = before[0].rate if before else measured
    tokens = statistics.fmean(row.tokens_per_s or 0.0 for row in rows)
    price = plan.price * count / 3600 / tokens * 1e6 if plan.price and tokens > 0 else None
    step = ImportedStep(
        workers=count,
        throughput=estimate_within(mean, half),
        repeats=repeats,
        relative=relative,
        freedom=freedom,
        ratio=None,
        scaled=scaling_over(measured, base if base.per_s > 0 else measured),
        price_per_million=price,
        results=rows,
    )
    return replace(step, ratio=_ratio(plan, before[-1], step)) if before else step


def _ratio(plan: ImportedPlan, before: ImportedStep, step: ImportedStep) -> Ratio | None:
    """Return the ratio of two steps, with its 90 % interval by Welch's t."""
    if min(step.throughput.value, before.throughput.value) <= 0:
        return None
    half, errors = math.inf, (before.relative, step.relative)
    if all(map(math.isfinite, errors)):
        freedom = welch_freedom(errors, (before.freedom, step.freedom))
        half = t_quantile(1.0 - BOUND_ERROR, freedom) * math.hypot(*errors)
    wanted = wanted_ratio(plan.scale, before.workers, step.workers)
    log_ratio = math.log(step.throughput.value / before.throughput.value)
    return ratio_around(log_ratio, half, half, wanted, widening_for_all(len(plan.steps) - 1))


def _judge_threshold(text: str, steps: Sequence[ImportedStep]) -> ThresholdResult:
    threshold = read_threshold(text)
    places = []
    for step in steps[1:] if threshold.measure == "ratio" else steps:
        if threshold.workers not in (None, step.workers):
            continue
        estimate = step.throughput
        if threshold.measure == "efficiency":
            estimate = step.scaled.efficiency
        elif threshold.measure == "ratio" and step.ratio:
            estimate = Estimate(step.ratio.value, step.ratio.low, step.ratio.high)
        places.append(Measured(estimate, workers=step.workers, place=f"at {step.workers}"))
    return judge_threshold(threshold, places or [Measured(None, "not measured")])


def _grounds_of_ratios(
    plan: ImportedPlan,
    steps: Sequence[ImportedStep],
    thresholds: Sequence[ThresholdResult],
    *,
    closer: str,
    explain: Callable[[ImportedStep, ImportedStep], tuple[str, str]] | None,
) -> Iterator[Ground | None]:
    """Yield what the ratios and thresholds say, and last what a run without a fault met."""
    repeat = closer or f"measure each number of {plan.axis} {LEAST_REPEATS} times or more"
    if len(steps) < 2:
        yield Ground(Rank.OPEN, f"one number of {plan.axis} has no ratio", "give two or more")
    if not plan.scale and not thresholds:
        yield Ground(
            Rank.OPEN, "no ratio is wanted, so nothing is judged", "give <scale> or <threshold>"
        )
    least: tuple[float, str] | None = None
    for before, step in itertools.pairwise(steps):
        ratio, doubling = step.ratio, f"{before.workers} -> {step.workers} {plan.axis}"
        if ratio is None:
            yield Ground(Rank.OPEN, f"{doubling}: no {UNITS[plan.measure]} in the files", repeat)
            continue
        if not plan.scale:
            continue
        value = f"{doubling}: ratio {ratio.value:.2f}"
        interval = f"[{ratio.low:.2f}, {ratio.high:.2f}]"
        if not math.isfinite(ratio.high):
            yield Ground(
                Rank.OPEN,
                f"{value}, without an interval: fewer than {LEAST_REPEATS} runs that differ",
                repeat,
            )
        elif ratio.kind is VerdictKind.FAIL:
            cause = ""
            remedy = (
                f"find what the {plan.axis} share: a proxy or router, one node, a cache, a backend"
            )
            if explain is not None:
                cause, remedy = explain(before, step)
            reason = f"{value} {interval} is below the {ratio.wanted:.2f} wanted{cause}"
            yield Ground(Rank.REFUTED, reason, remedy)
        elif ratio.kind is VerdictKind.INVALID:
            yield Ground(
                Rank.OPEN, f"{value} {interval} may or may not reach {ratio.wanted:.2f}", repeat
            )
        least = min(filter(None, (least, (ratio.value / ratio.wanted, f"{ratio.value:.2f}"))))
    yield ground_of(thresholds, Rank.REFUTED)
    yield ground_of(thresholds, Rank.OPEN)
    holds = f"; {len(thresholds)} of {len(thresholds)} thresholds hold" if thresholds else ""
    last = steps[-1].workers if steps else 0
    reached = f"every doubling up to {last} {plan.axis} reaches {plan.scale:.2f}"
    yield Ground(Rank.MET, f"{reached}: the least is {least[1]}{holds}" if least else holds[2:])


def check_files(
    plan: ImportedPlan, steps: Sequence[ImportedStep]
) -> tuple[list[Ground], list[str]]:
    """Return why the files cannot answer, and what should be known of them besides."""
    rows = [row for step in steps for row in step.results]
    if not rows:
        return [], []
    grounds = [
        *_different_sources(rows),
        *(_different_loads(plan, steps) if plan.scale else ()),
        *_different_lengths(plan, steps),
    ]
    warnings = []
    for row in rows:
        grounds += _faults_of_file(plan, row)
        if row.levels > 1:
            level = format_significant(row.in_flight or row.offered_per_s or 0.0)
            warnings.append(
                f"{row.file} has {row.levels} levels of load; the one with the highest throughput"
                f" counts ({level})"
            )
    versions = sorted({row.version for row in rows} - {""})
    if len(versions) > 1:
        warnings.append(f"the tool's version differs: {', '.join(versions)}")
    seeds = [row.seed for row in rows if row.seed is not None]
    if len(set(seeds)) < len(seeds):
        option = (
            BY_TOOL.get(rows[0].tool, NO_OPTIONS).new_prompts_option
            or "give each run a seed of its own"
        )
        warnings.append(
            f"prompts of seed {seeds[0]:g} were sent more than once, so a prefix cache may have"
            f" served them: {option}"
        )
    return grounds, warnings


def _different_sources(rows: Sequence[ToolResult]) -> Iterator[Ground]:
    """Yield tools or models that differ: throughput and latencies mean something else then."""
    sources = {"tools": {row.tool for row in rows}, "models": {row.model for row in rows} - {""}}
    for name, found in sources.items():
        if len(found) > 1:
            yield _doubt(
                f"the files are of different {name}: {', '.join(sorted(found))}",
                "measure all steps with one tool, and one model",
            )


def _different_loads(plan: ImportedPlan, steps: Sequence[ImportedStep]) -> Iterator[Ground]:
    """Yield loads that do not show whether capacity doubles."""
    rows = [row for step in steps for row in step.results]
    option = BY_TOOL.get(rows[0].tool, NO_OPTIONS).in_flight_option or "{} in flight"

    def keep_in_flight(each: float) -> str:
        parts = [
            f"{option.format(f'{each * step.workers:.0f}')} at {step.workers}" for step in steps
        ]
        return f"keep as many in flight for each: {', '.join(parts)}"

    in_flight = _spread(steps, lambda row, count: _over(row.in_flight, count))
    if in_flight and in_flight[1] > in_flight[0] * (1 + SAME_LOAD):
        yield _doubt(
            f"requests in flight for each of the {plan.axis} differ, from {in_flight[0]:g} to"
            f" {in_flight[1]:g}",
            keep_in_flight(in_flight[1]),
        )
    served = [_over(row.requests_per_s, row.offered_per_s) for row in rows]
    if all(share is not None and share >= SERVED_SHARE for share in served):
        yield _doubt(
            "all requests of an open load were served, so its rate was measured and no capacity",
            keep_in_flight(32.0),
        )


def _different_lengths(plan: ImportedPlan, steps: Sequence[ImportedStep]) -> Iterator[Ground]:
    """Yield lengths of prompts that differ, and of answers where requests are judged."""
    prompts = _spread(steps, lambda row, _: row.input_tokens)
    answers = _spread(steps, lambda row, _: row.output_tokens)
    remedies = {"prompts": "give all steps prompts of the same length"}
    if plan.measure != TOKENS:
        remedies["answers"] = "fix their length, or judge <measure> tokens"
    for name, tokens in (("prompts", prompts), ("answers", answers)):
        if name in remedies and tokens and tokens[1] > tokens[0] * (1 + SAME_LENGTH):
            yield _doubt(
                f"{name} have {tokens[0]:.0f} to {tokens[1]:.0f} tokens on average", remedies[name]
            )


def _faults_of_file(plan: ImportedPlan, row: ToolResult) -> Iterator[Ground]:
    """Yield why the throughput of a file is not that of the service."""
    ended = (row.errors or 0.0) + (row.successes or 0.0)
    if ended and (row.errors or 0.0) / ended > plan.tolerate_failures:
        yield _doubt(
            f"{row.file}: {row.errors:g} of {ended:g} requests failed, and"
            f" {format_percent(plan.tolerate_failures, 0)} are tolerated",
            "find out why they failed, and measure again: failures are fast and free capacity",
        )
    turns, form = _over(ended, row.in_flight), BY_TOOL.get(row.tool, NO_OPTIONS)
    if form.whole_run and turns is not None and turns < LEAST_TURNS:
        needed = LEAST_TURNS * (row.in_flight or 0.0)
        yield _doubt(
            f"{row.file}: {turns:.0f} requests for each one in flight, so start and end of the run"
            " weigh more with more in flight",
            f"send at least {form.longer_option.format(f'{needed:.0f}')}",
        )
    # in closed load requests wait in the client on purpose
    if row.offered_per_s is not None and row.late_s is not None and row.late_s > CLIENT_LATE_S:
        yield _doubt(
            f"{row.file}: the client sent requests {format_seconds(row.late_s)} late",
            "run more client processes, or on a machine of their own",
        )


def _doubt(reason: str, remedy: str) -> Ground:
    return Ground(Rank.NOT_THE_SUBJECT, reason, remedy)


def _over(number: float | None, other: float | None) -> float | None:
    return number / other if number is not None and other else None


def _spread(
    steps: Sequence[ImportedStep], figure: Callable[[ToolResult, int], float | None]
) -> tuple[float, float] | None:
    """Return the least and the largest of a figure; None where no file has it."""
    known = [figure(row, step.workers) for step in steps for row in step.results]
    numbers = [number for number in known if number is not None]
    return (min(numbers), max(numbers)) if numbers else None

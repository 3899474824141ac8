"""The ratio of two steps that are measured in parts: up, down, and again.

Each part of a step has one of the other beside it. The parts of a pair are equally long and equally
far from the middle of the run, so a steady change along the run cancels in their mean. Any other
change shows as a ratio in the pass up that differs from the one in the pass down. The truth may
then be either, so the interval reaches to both.

The interval of a ratio is built on the logarithm, where the errors of the two throughputs add:
half-width of ln r = sqrt(rel(a)^2 + rel(b)^2), rel being half-width over rate. It is the 90 %
interval: each of its ends is wrong in at most 5 of 100 runs, and a verdict rests on one end only
(two one-sided tests, Schuirmann 1987). Slow requests count by how often they come, see
`slow_requests`.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Annotated

from scaletest.model import VerdictKind
from scaletest.model.declared import Unbounded, choice, named_in_documents
from scaletest.model.verdict import JUDGEMENTS
from scaletest.model.writing import Written
from scaletest.stats.estimate import LARGEST_EXPONENT
from scaletest.stats.scaling import MeasuredThroughput
from scaletest.stats.student import t95
from scaletest.validation.judging.machine_trend import STEADY, MachineTrend
from scaletest.validation.judging.slow_requests import slowdowns
from scaletest.validation.judging.step_parts import (
    StepPart,
    mean_time_s,
    tail_of_parts,
    throughput_of_parts,
)
from scaletest.validation.plan import Plan

# From the half-width of a two-sided 95 % interval to that of a 90 % one: 1.645 / 1.960.
TO_90_PERCENT = 0.839
# A bound of a ratio is wrong in this part of all runs.
BOUND_ERROR = 0.05
# Reasons why an interval is wider than the scatter of requests makes it: the passes up and down
# differ, or requests that are slow.
WIDENED_BY_PASSES = "ways"
WIDENED_BY_SLOW_REQUESTS = "slow requests"
# Both passes may be off in the same direction by chance, as when all workers fluctuate for longer
# than a step. So a doubling fails only when it is twice as far below the wanted ratio as the passes
# are from their mean.
FAILS_BEYOND = 2.0
# A part that was not measured for any time counts as one of a microsecond.
_SHORTEST_S = 1e-6
_NORMAL_95 = t95(math.inf)


@dataclass(frozen=True, slots=True)
class Ratio(Written):
    """Throughput over that of the step before, its 90 % interval, and the ratio that was wanted."""

    value: Annotated[float, "throughput over that of the step before"]
    low: Annotated[Unbounded, "of the 90 % interval"]
    high: Unbounded
    wanted: float
    most: Annotated[Unbounded, "upper bound for all doublings together, on which FAIL rests"]
    up: Annotated[
        float | None,
        "the ratio of the ascending pass, slow requests left out; null without both",
    ] = None
    down: Annotated[float | None, "the same of the descending pass"] = None
    widened_by: Annotated[
        str,
        choice(("", WIDENED_BY_PASSES, WIDENED_BY_SLOW_REQUESTS)),
        "what widens the interval, besides the variation of requests",
    ] = ""

    @property
    def kind(self) -> Annotated[VerdictKind, choice(JUDGEMENTS), named_in_documents("verdict")]:
        """The verdict of this ratio alone: PASS when all of the interval is high enough."""
        if self.low >= self.wanted:
            return VerdictKind.PASS
        if self.most < self.wanted:
            return VerdictKind.FAIL
        return VerdictKind.INVALID


def wanted_ratio(scale: float, workers_before: int, workers: int) -> float:
    """Return the ratio that is wanted from fewer workers to more: `scale` for each doubling."""
    ratio: float = scale ** math.log2(workers / workers_before)
    return ratio


def widening_for_all(doublings: int) -> float:
    """Return by how much a bound widens that may be wrong in 5 % / doublings instead of in 5 %."""
    normal = NormalDist()
    return normal.inv_cdf(1.0 - BOUND_ERROR / max(1, doublings)) / normal.inv_cdf(1.0 - BOUND_ERROR)


def ratio_around(
    log_ratio: float, below: float, above: float, wanted: float, widening: float
) -> Ratio:
    """Return the ratio with that logarithm; infinite widths are bounds of 0 and infinity.

    below, above: half-widths of the logarithm. widening: see `widening_for_all`.
    """
    return Ratio(
        value=math.exp(log_ratio),
        low=math.exp(log_ratio - below),
        high=_exp_or_infinity(log_ratio + above),
        wanted=wanted,
        most=_exp_or_infinity(log_ratio + widening * above),
    )


def _exp_or_infinity(exponent: float) -> float:
    """Return e to the power of the exponent; infinity where that is too large."""
    return math.exp(exponent) if exponent < LARGEST_EXPONENT else math.inf


def ratio_of_throughputs(
    before: MeasuredThroughput, after: MeasuredThroughput, plan: Plan
) -> Ratio | None:
    """Return the ratio of two steps by their throughputs alone; None where one has none."""
    if before.per_s <= 0 or after.per_s <= 0:
        return None
    half_width = TO_90_PERCENT * math.hypot(before.relative, after.relative)
    return ratio_around(
        math.log(after.per_s / before.per_s),
        half_width,
        half_width,
        wanted_ratio(plan.scale, before.workers, after.workers),
        widening_for_all(len(plan.steps) - 1),
    )


@dataclass(frozen=True, slots=True)
class _PassPair:
    """The parts of two steps from one pass up and the pass down after it, which may be missing."""

    before: Sequence[StepPart]  # of the step with fewer workers
    after: Sequence[StepPart]  # of the step with more workers

    @property
    def weight(self) -> float:
        """Its share in the ratio: errors of the two steps add and fall with the seconds."""
        before_s = max(sum(part.seconds for part in self.before), _SHORTEST_S)
        after_s = max(sum(part.seconds for part in self.after), _SHORTEST_S)
        return 1.0 / (1.0 / before_s + 1.0 / after_s)

    def of_pass(self, *, is_descending: bool) -> "_PassPair | None":
        """Return what was measured in one direction; None unless both steps were."""
        before = [part for part in self.before if part.is_descending is is_descending]
        after = [part for part in self.after if part.is_descending is is_descending]
        return _PassPair(before, after) if before and after else None


def doubling_ratio(
    before: Sequence[StepPart],
    after: Sequence[StepPart],
    plan: Plan,
    *,
    confidence: float = TO_90_PERCENT,
    width_factor: float = 1.0,
    trend: MachineTrend = STEADY,
) -> Ratio | None:
    """Return the ratio of two steps by all their parts; None without a sound pair of both.

    confidence: factor on half-widths, from two-sided 95 % to what is wanted. width_factor: a
    further one, for parts that are still to be measured. trend: how the machine changed along the
    run.
    """
    pairs = []
    for number in sorted({part.pair for part in before} & {part.pair for part in after}):
        pair = _PassPair(
            before=[part for part in before if part.pair == number],
            after=[part for part in after if part.pair == number],
        )
        if all(part.sound and part.throughput.enough for part in (*pair.before, *pair.after)):
            pairs.append(pair)
    ratio = _ratio_of_pairs(pairs, plan, confidence, width_factor * trend.scatter_factor)
    if ratio is None:
        return None
    ratio = _reach_both_passes(ratio, pairs, trend.per_s, widening_for_all(len(plan.steps) - 1))
    # too few slow requests leave it open whatever the machine did, and more of them would tell
    if_steady = _ratio_of_pairs(pairs, plan, confidence, width_factor)
    if if_steady and if_steady.widened_by and if_steady.kind is VerdictKind.INVALID:
        return replace(ratio, widened_by=WIDENED_BY_SLOW_REQUESTS)
    if trend.scatter_factor > 1.0 and ratio.up is not None:
        return replace(ratio, widened_by=WIDENED_BY_PASSES)
    return ratio


def _ratio_of_pairs(
    pairs: Sequence[_PassPair], plan: Plan, confidence: float, width_factor: float
) -> Ratio | None:
    """Return the ratio by the usual requests and by how often slow ones come.

    By throughput alone where no request was slow. None without a throughput in each pair.
    """
    # by throughput: the weighted mean of the logarithms of all pairs
    total_weight = sum(pair.weight for pair in pairs)
    log_ratio, half_width = 0.0, 0.0
    for pair in pairs:
        rate_before, rate_after = throughput_of_parts(pair.before), throughput_of_parts(pair.after)
        if rate_before.per_s <= 0 or rate_after.per_s <= 0:
            return None
        share = pair.weight / total_weight
        log_ratio += share * math.log(rate_after.per_s / rate_before.per_s)
        pair_width = math.hypot(rate_before.relative, rate_after.relative)
        half_width = math.hypot(half_width, share * confidence * width_factor * pair_width)
    if not pairs:
        return None
    wanted = wanted_ratio(plan.scale, pairs[0].before[0].workers, pairs[0].after[0].workers)
    widening = widening_for_all(len(plan.steps) - 1)

    # by the usual requests and the slow ones, where there are any
    before_parts = list(itertools.chain.from_iterable(pair.before for pair in pairs))
    after_parts = list(itertools.chain.from_iterable(pair.after for pair in pairs))
    tail_before, tail_after = tail_of_parts(before_parts), tail_of_parts(after_parts)
    usual_log_ratio = _log_ratio_of_usual(before_parts, after_parts)
    if usual_log_ratio is None or not (tail_before.slow or tail_after.slow):
        return ratio_around(log_ratio, half_width, half_width, wanted, widening)
    # slow requests lengthen the mean of each step; each end of the interval comes by the method of
    # variance estimates recovery
    slowed_before, slowed_after = slowdowns(tail_before, tail_after, confidence * _NORMAL_95)
    usual_errors = [
        confidence * t95(max(1, tail.usual - 1)) * tail.error for tail in (tail_before, tail_after)
    ]
    below = math.hypot(
        *usual_errors,
        slowed_before.value - slowed_before.low,
        slowed_after.high - slowed_after.value,
    )
    above = math.hypot(
        *usual_errors,
        slowed_before.high - slowed_before.value,
        slowed_after.value - slowed_after.low,
    )
    ratio = ratio_around(
        usual_log_ratio + slowed_before.value - slowed_after.value,
        width_factor * below,
        width_factor * above,
        wanted,
        widening,
    )
    return replace(ratio, widened_by=WIDENED_BY_SLOW_REQUESTS)


def _reach_both_passes(
    ratio: Ratio, pairs: Sequence[_PassPair], trend_per_s: float, widening: float
) -> Ratio:
    """Return the ratio with an interval that reaches to those of the passes up and down.

    Unchanged where no pair has both. trend_per_s: what is known of the machine's change, and taken
    out. widening: see `widening_for_all`.
    """
    both_passes = []
    parts: list[StepPart] = []
    for pair in pairs:
        pass_up, pass_down = pair.of_pass(is_descending=False), pair.of_pass(is_descending=True)
        if pass_up and pass_down:
            both_passes.append((pair.weight, pass_up, pass_down))
            parts += [*pair.before, *pair.after]
    if not both_passes:
        return ratio
    total_weight = sum(weight for weight, _, _ in both_passes)
    by_usual = any(part.tail.slow for part in parts)

    # the ratio of each pass, and how much of their difference the machine's steady change explains
    log_up, log_down, apart_s = 0.0, 0.0, 0.0
    for weight, pass_up, pass_down in both_passes:
        share = weight / total_weight
        log_up += share * _log_ratio_of_pass(pass_up, by_usual=by_usual)
        log_down += share * _log_ratio_of_pass(pass_down, by_usual=by_usual)
        after_s = mean_time_s(pass_down.after) - mean_time_s(pass_up.after)
        apart_s += share * (after_s - mean_time_s(pass_down.before) + mean_time_s(pass_up.before))
    gap = abs(log_down - log_up - trend_per_s * apart_s) / 2.0

    log_ratio = math.log(ratio.value)
    low, high = math.exp(log_ratio - gap), _exp_or_infinity(log_ratio + gap)
    return replace(
        ratio,
        low=min(ratio.low, low),
        high=max(ratio.high, high),
        most=max(ratio.most, _exp_or_infinity(log_ratio + FAILS_BEYOND * widening * gap)),
        up=math.exp(log_up),
        down=math.exp(log_down),
        widened_by=WIDENED_BY_PASSES if low < ratio.low or high > ratio.high else ratio.widened_by,
    )


def _log_ratio_of_pass(parts: _PassPair, *, by_usual: bool) -> float:
    """Return the logarithm of the ratio of one pass; 0 where a step has no throughput.

    by_usual: by the usual requests, where both steps have some, since some were slow.
    """
    usual_log_ratio = _log_ratio_of_usual(parts.before, parts.after)
    if by_usual and usual_log_ratio is not None:
        return usual_log_ratio
    before_per_s = throughput_of_parts(parts.before).per_s
    after_per_s = throughput_of_parts(parts.after).per_s
    if before_per_s <= 0 or after_per_s <= 0:
        return 0.0
    return math.log(after_per_s / before_per_s)


def _log_ratio_of_usual(before: Sequence[StepPart], after: Sequence[StepPart]) -> float | None:
    """Return the logarithm of the ratio of the usual requests; None where a step has none."""
    tail_before, tail_after = tail_of_parts(before), tail_of_parts(after)
    if not tail_before.usual or not tail_after.usual:
        return None
    return math.log(after[0].workers / tail_after.usual_s * tail_before.usual_s / before[0].workers)

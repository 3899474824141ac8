"""The ratio of two steps that are measured in parts: up, down, and again.

Each part of a step has one of the other beside it. The parts of a pair are equally long and equally
far from the middle of the run, so a steady change along the run cancels in their mean. Any other
change shows as a ratio on the way up that differs from the one on the way down. The truth may then
be either, so the interval reaches to both.

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
from scaletest.stats.student import t95
from scaletest.validation.judging.machine_trend import STEADY, MachineTrend
from scaletest.validation.judging.slow_requests import slowdowns
from scaletest.validation.judging.step_parts import (
    StepPart,
    mean_time_s,
    tail_of_parts,
    throughput_of_parts,
)
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.plan import Plan

# 1.645 / 1.960: from the half-width of a two-sided 95 % interval to that of a 90 % one.
ONE_SIDED = 0.839
# A bound of a ratio is wrong in this part of all runs.
ERROR = 0.05
# Reasons why an interval is wider than the scatter of requests makes it.
WAYS, SLOW_REQUESTS = "ways", "slow requests"
_NORMAL = t95(math.inf)
# Both ways may be off in the same direction by chance, as when all workers fluctuate for longer
# than a step. So a doubling fails only when it is twice as far below the wanted ratio as the ways
# are from their mean.
FAILS_BEYOND = 2.0


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
        choice(("", WAYS, SLOW_REQUESTS)),
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


def ratio_of_rates(
    before: tuple[int, Throughput],
    after: tuple[int, Throughput],
    scale: float,
    wider: float = ONE_SIDED,
    doublings: int = 1,
) -> Ratio | None:
    """Return the ratio of (workers, throughput) pairs; None without a throughput on either side.

    scale: wanted per doubling; for a step that is no doubling the wanted ratio is scale^log2(N2 /
    N1). wider: factor on the half-width, from two-sided 95 % to the confidence wanted. doublings:
    of the whole run.
    """
    workers, base = before
    more, rate = after
    if base.per_s <= 0 or rate.per_s <= 0:
        return None
    quotient = rate.per_s / base.per_s
    spread = wider * math.hypot(base.relative, rate.relative)
    wanted = scale ** math.log2(more / workers)
    return ratio_around(math.log(quotient), spread, spread, wanted, widening_for_all(doublings))


def ratio_around(
    log_ratio: float, below: float, above: float, wanted: float, widening: float
) -> Ratio:
    """Return the ratio with that logarithm; infinite widths are bounds of 0 and infinity.

    below, above: half-widths of the logarithm. widening: see `widening_for_all`.
    """
    return Ratio(
        value=math.exp(log_ratio),
        low=math.exp(log_ratio - below),
        high=exp_or_infinity(log_ratio + above),
        wanted=wanted,
        most=exp_or_infinity(log_ratio + widening * above),
    )


def exp_or_infinity(exponent: float) -> float:
    """Return e to the power of the exponent; infinity where that is too large."""
    return math.exp(exponent) if exponent < 700.0 else math.inf


def widening_for_all(doublings: int) -> float:
    """Return by how much a bound widens that may be wrong in 5 % / doublings instead of in 5 %."""
    return NormalDist().inv_cdf(1.0 - ERROR / max(1, doublings)) / NormalDist().inv_cdf(1.0 - ERROR)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The parts of two steps from one way up and the way down after it, which may be missing."""

    first: Sequence[StepPart]
    second: Sequence[StepPart]

    @property
    def weight(self) -> float:
        """Its share in the ratio: errors of the two steps add and fall with the seconds."""
        first_s = max(sum(part.seconds for part in self.first), 1e-6)
        second_s = max(sum(part.seconds for part in self.second), 1e-6)
        return 1.0 / (1.0 / first_s + 1.0 / second_s)

    def of_way(self, *, down: bool) -> "_Pair | None":
        """Return what was measured in one direction; None unless both steps were."""
        first = [part for part in self.first if part.is_way_down is down]
        second = [part for part in self.second if part.is_way_down is down]
        return _Pair(first, second) if first and second else None

    def log_ratio(self, *, by_usual: bool) -> float:
        """Return the logarithm of the ratio. by_usual: of the usual requests, where there are."""
        if by_usual:
            base, more = tail_of_parts(self.first), tail_of_parts(self.second)
            if base.usual and more.usual:
                first, second = self.first[0].workers, self.second[0].workers
                return math.log(second / more.usual_s * base.usual_s / first)
        base_per_s = throughput_of_parts(self.first).per_s
        more_per_s = throughput_of_parts(self.second).per_s
        return math.log(more_per_s / base_per_s) if more_per_s > 0 and base_per_s > 0 else 0.0


def doubling_ratio(
    before: Sequence[StepPart],
    after: Sequence[StepPart],
    plan: Plan,
    *,
    wider: float = ONE_SIDED,
    narrower: float = 1.0,
    trend: MachineTrend = STEADY,
) -> Ratio | None:
    """Return the ratio of the second step over the first; None without a sound pair of both.

    wider: factor on the half-width, from two-sided 95 % to the confidence wanted. narrower: a
    further factor, for the parts that are still to be measured. trend: how the machine changed
    along the run.
    """
    pairs = []
    for number in sorted({part.pair for part in before} & {part.pair for part in after}):
        first = [part for part in before if part.pair == number]
        second = [part for part in after if part.pair == number]
        if all(part.sound and part.throughput.enough for part in (*first, *second)):
            pairs.append(_Pair(first, second))
    ratio = _ratio_with_slow_requests(pairs, plan, wider, narrower * trend.scatter_factor)
    if ratio is None:
        return None
    ratio = _reach_both_ways(ratio, pairs, trend.per_s, widening_for_all(len(plan.steps) - 1))
    # too few slow requests leave it open whatever the machine did, and more of them would tell
    steady = _ratio_with_slow_requests(pairs, plan, wider, narrower)
    if steady and steady.widened_by and steady.kind is VerdictKind.INVALID:
        return replace(ratio, widened_by=SLOW_REQUESTS)
    if trend.scatter_factor > 1.0 and ratio.up is not None:
        return replace(ratio, widened_by=WAYS)
    return ratio


def _ratio_with_slow_requests(
    pairs: Sequence[_Pair], plan: Plan, wider: float, narrower: float
) -> Ratio | None:
    """Return the ratio by the usual requests and by how often slow ones come.

    By throughput alone where none came. None without a throughput.
    """
    # by throughput alone: the weighted mean of the logarithms of all pairs
    doublings = len(plan.steps) - 1
    ratios: list[Ratio] = []
    for pair in pairs:
        base_rate = (pair.first[0].workers, throughput_of_parts(pair.first))
        rate = (pair.second[0].workers, throughput_of_parts(pair.second))
        pair_ratio = ratio_of_rates(base_rate, rate, plan.scale, wider * narrower, doublings)
        if pair_ratio is None:
            return None
        ratios.append(pair_ratio)
    if not ratios:
        return None
    by_throughput = ratios[0]
    if len(ratios) > 1:
        total_weight = sum(pair.weight for pair in pairs)
        log_ratio, spread = 0.0, 0.0
        for pair, pair_ratio in zip(pairs, ratios, strict=True):
            weight = pair.weight / total_weight
            log_ratio += weight * math.log(pair_ratio.value)
            spread = math.hypot(spread, weight * math.log(pair_ratio.high / pair_ratio.value))
        by_throughput = ratio_around(
            log_ratio, spread, spread, by_throughput.wanted, widening_for_all(doublings)
        )

    # by the usual requests, where some were slow
    base = tail_of_parts(itertools.chain.from_iterable(pair.first for pair in pairs))
    more = tail_of_parts(itertools.chain.from_iterable(pair.second for pair in pairs))
    if not (base.slow or more.slow) or not base.usual or not more.usual:
        return by_throughput
    # the ratio of usual requests, and by how much slow ones lengthen the mean of each step
    first, second = pairs[0].first[0].workers, pairs[0].second[0].workers
    usual = math.log(second / more.usual_s * base.usual_s / first)
    base_slowed, more_slowed = slowdowns(base, more, wider * _NORMAL)
    # each end of the interval, by the method of variance estimates recovery
    errors = [wider * t95(max(1, tail.usual - 1)) * tail.error for tail in (base, more)]
    below = math.hypot(
        *errors, base_slowed.value - base_slowed.low, more_slowed.high - more_slowed.value
    )
    above = math.hypot(
        *errors, base_slowed.high - base_slowed.value, more_slowed.value - more_slowed.low
    )
    ratio = ratio_around(
        usual + base_slowed.value - more_slowed.value,
        narrower * below,
        narrower * above,
        by_throughput.wanted,
        widening_for_all(doublings),
    )
    return replace(ratio, widened_by=SLOW_REQUESTS)


def _reach_both_ways(
    ratio: Ratio, pairs: Sequence[_Pair], trend_per_s: float, widening: float
) -> Ratio:
    """Return the ratio with an interval that reaches to those of the way up and of the way down.

    Unchanged where no pair has both. trend_per_s: what is known of the machine's change, and taken
    out. widening: see `widening_for_all`.
    """
    both_ways = []
    parts: list[StepPart] = []
    for pair in pairs:
        way_up, way_down = pair.of_way(down=False), pair.of_way(down=True)
        if way_up and way_down:
            both_ways.append((pair.weight, way_up, way_down))
            parts += [*pair.first, *pair.second]
    if not both_ways:
        return ratio
    total_weight = sum(weight for weight, _, _ in both_ways)
    by_usual = any(part.tail.slow for part in parts)

    # the ratio of each way, and how much of their difference the machine's steady change explains
    up, down, apart_s = 0.0, 0.0, 0.0
    for weight, way_up, way_down in both_ways:
        share = weight / total_weight
        up += share * way_up.log_ratio(by_usual=by_usual)
        down += share * way_down.log_ratio(by_usual=by_usual)
        second_s = mean_time_s(way_down.second) - mean_time_s(way_up.second)
        apart_s += share * (second_s - mean_time_s(way_down.first) + mean_time_s(way_up.first))
    gap = abs(down - up - trend_per_s * apart_s) / 2.0

    log_ratio = math.log(ratio.value)
    low, high = math.exp(log_ratio - gap), exp_or_infinity(log_ratio + gap)
    return replace(
        ratio,
        low=min(ratio.low, low),
        high=max(ratio.high, high),
        most=max(ratio.most, exp_or_infinity(log_ratio + FAILS_BEYOND * widening * gap)),
        up=math.exp(up),
        down=math.exp(down),
        widened_by=WAYS if low < ratio.low or high > ratio.high else ratio.widened_by,
    )

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
    middle_of,
    tail_of,
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
        "the ratio on the way up, by usual requests where some were slow; null without both",
    ] = None
    down: Annotated[float | None, "the same on the way down"] = None
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


def ratio(
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
    return around(
        math.log(quotient), spread, spread, scale ** math.log2(more / workers), family(doublings)
    )


def around(log_ratio: float, below: float, above: float, wanted: float, more: float) -> Ratio:
    """Return the ratio with that logarithm; infinite widths are bounds of 0 and infinity.

    below, above: half-widths of the logarithm. more: see `family`.
    """
    return Ratio(
        math.exp(log_ratio),
        math.exp(log_ratio - below),
        power(log_ratio + above),
        wanted,
        power(log_ratio + more * above),
    )


def power(exponent: float) -> float:
    """Return e to the power of the exponent; infinity where that is too large."""
    return math.exp(exponent) if exponent < 700.0 else math.inf


def family(doublings: int) -> float:
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

    @property
    def sound(self) -> bool:
        """Whether every part may be judged."""
        return all(part.sound and part.throughput.enough for part in (*self.first, *self.second))

    @property
    def slow(self) -> bool:
        """Whether any part has slow requests."""
        return any(part.tail.slow for part in (*self.first, *self.second))

    @property
    def complete(self) -> bool:
        """Whether it has both steps."""
        return bool(self.first and self.second)

    @property
    def apart_s(self) -> float:
        """Seconds between the middles of the second step's ways, less those of the first's."""
        up, down = self.way(False), self.way(True)
        second_s = middle_of(down.second) - middle_of(up.second)
        return second_s - middle_of(down.first) + middle_of(up.first)

    def log_ratio(self, by_usual: bool) -> float:
        """Return the logarithm of the ratio. by_usual: of the usual requests, where there are."""
        if by_usual:
            base, more = tail_of(self.first), tail_of(self.second)
            if base.usual and more.usual:
                first, second = self.first[0].workers, self.second[0].workers
                return math.log(second / more.usual_s * base.usual_s / first)
        base_rate, rate = (
            throughput_of_parts(self.first).per_s,
            throughput_of_parts(self.second).per_s,
        )
        return math.log(rate / base_rate) if rate > 0 and base_rate > 0 else 0.0

    def way(self, down: bool) -> "_Pair":
        """The parts of it that were measured in one direction."""
        return _Pair(
            [part for part in self.first if part.down is down],
            [part for part in self.second if part.down is down],
        )


def doubling(
    before: Sequence[StepPart],
    after: Sequence[StepPart],
    plan: Plan,
    *,
    wider: float = ONE_SIDED,
    narrower: float = 1.0,
    course: MachineTrend = STEADY,
) -> Ratio | None:
    """Return the ratio of the second step over the first; None without a sound pair of both.

    wider: factor on the half-width, from two-sided 95 % to the confidence wanted. narrower: a
    further factor, for the parts that are still to be measured. course: how the machine changed
    along the run.
    """
    firsts, seconds = ({part.repeat // 2 for part in parts} for parts in (before, after))
    pairs = []
    for number in sorted(firsts & seconds):
        pair = _Pair(
            [part for part in before if part.repeat // 2 == number],
            [part for part in after if part.repeat // 2 == number],
        )
        if pair.sound:
            pairs.append(pair)
    more = family(len(plan.steps) - 1)

    def with_tails(narrower: float) -> Ratio | None:
        plain = _by_throughput(pairs, plan, wider * narrower)
        return _with_tails(plain, pairs, wider, narrower, more) if plain else None

    shaken = with_tails(narrower * course.shaken)
    if shaken is None:
        return None
    both = _with_both_ways(shaken, pairs, course.per_s, more)
    # too few slow requests leave it open whatever the machine did, and more of them would tell
    steady = with_tails(narrower)
    if steady and steady.widened_by and steady.kind is VerdictKind.INVALID:
        return replace(both, widened_by=SLOW_REQUESTS)
    return replace(both, widened_by=WAYS) if course.shaken > 1.0 and both.up is not None else both


def _by_throughput(pairs: Sequence[_Pair], plan: Plan, factor: float) -> Ratio | None:
    """Return the ratio by throughput alone: the weighted mean of the logarithms of all pairs."""
    ratios: list[Ratio] = []
    doublings = len(plan.steps) - 1
    for pair in pairs:
        base = (pair.first[0].workers, throughput_of_parts(pair.first))
        rate = (pair.second[0].workers, throughput_of_parts(pair.second))
        pair_ratio = ratio(base, rate, plan.scale, factor, doublings)
        if pair_ratio is None:
            return None
        ratios.append(pair_ratio)
    if len(ratios) < 2:
        return next(iter(ratios), None)
    whole = sum(pair.weight for pair in pairs)
    log_ratio, spread = 0.0, 0.0
    for pair, pair_ratio in zip(pairs, ratios, strict=True):
        weight = pair.weight / whole
        log_ratio += weight * math.log(pair_ratio.value)
        spread = math.hypot(spread, weight * math.log(pair_ratio.high / pair_ratio.value))
    return around(log_ratio, spread, spread, ratios[0].wanted, family(doublings))


def _with_tails(
    plain: Ratio, pairs: Sequence[_Pair], wider: float, narrower: float, more: float
) -> Ratio:
    """Return the ratio by the usual requests and by how often slow ones come.

    `plain` where none came.
    """
    first, second = pairs[0].first[0].workers, pairs[0].second[0].workers
    base = tail_of(itertools.chain.from_iterable(pair.first for pair in pairs))
    tail = tail_of(itertools.chain.from_iterable(pair.second for pair in pairs))
    if not (base.slow or tail.slow) or not base.usual or not tail.usual:
        return plain
    slowed, slowed_more = slowdowns(base, tail, wider * _NORMAL)
    usual = math.log(second / tail.usual_s * base.usual_s / first)
    log_ratio = usual + slowed.value - slowed_more.value
    errors = [wider * t95(max(1, each.usual - 1)) * each.error for each in (base, tail)]
    below = math.hypot(*errors, slowed.value - slowed.low, slowed_more.high - slowed_more.value)
    above = math.hypot(*errors, slowed.high - slowed.value, slowed_more.value - slowed_more.low)
    return replace(
        around(log_ratio, narrower * below, narrower * above, plain.wanted, more),
        widened_by=SLOW_REQUESTS,
    )


def _with_both_ways(whole: Ratio, pairs: Sequence[_Pair], per_s: float, more: float) -> Ratio:
    """Return the ratio with an interval that reaches to those of the way up and of the way down.

    `whole` unchanged where no pair has both.
    """
    complete = [pair for pair in pairs if pair.way(False).complete and pair.way(True).complete]
    if not complete:
        return whole
    slow = any(pair.slow for pair in complete)
    whole_weight = sum(pair.weight for pair in complete)
    weights = [pair.weight / whole_weight for pair in complete]
    weighted = list(zip(weights, complete, strict=True))
    up = sum(weight * pair.way(False).log_ratio(slow) for weight, pair in weighted)
    down = sum(weight * pair.way(True).log_ratio(slow) for weight, pair in weighted)
    explained = per_s * sum(weight * pair.apart_s for weight, pair in weighted)
    gap = abs(down - up - explained) / 2.0
    log_ratio = math.log(whole.value)
    low, high = math.exp(log_ratio - gap), power(log_ratio + gap)
    widened_by = WAYS if low < whole.low or high > whole.high else whole.widened_by
    return replace(
        whole,
        low=min(whole.low, low),
        high=max(whole.high, high),
        most=max(whole.most, power(log_ratio + FAILS_BEYOND * more * gap)),
        up=math.exp(up),
        down=math.exp(down),
        widened_by=widened_by,
    )

"""The ratio of two steps, also of steps that are measured in parts: up, down, and again.

The interval of a ratio is built on the logarithm, where the errors of the two throughputs add:
half-width of ln r = sqrt(rel(a)^2 + rel(b)^2), rel being half-width over rate. It is the 90 %
interval: each of its ends is wrong in at most 5 of 100 runs, and a verdict rests on one end only
(two one-sided tests, Schuirmann 1987).

How the machine changed along a run that measures its steps on the way up and on the way down.

The two measurements of a step lie the farther apart the fewer workers it has, all around the middle
of the run. So a change by the same part every second makes the logarithm of down over up
proportional to the time between, and cancels in the mean of both; a jump makes it the same for all
steps around it, and does not cancel. A trend counts only where the straight line fits and the best
jump does not: chi square of the line within chance (1 %), and that of the jump larger by six, a
likelihood ratio of 20 (Burnham and Anderson 2002 call that "considerably less support").

Each part of a step has one of the other beside it. The parts of a pair are equally long and equally
far from the middle of the run, so a steady change along the run cancels in their mean. Any other
change shows as a ratio on the way up that differs from the one on the way down. The truth may then
be either, so the interval reaches to both.

Slow requests count by how often they come, see `throughput`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Annotated

from scaletest.model import VerdictKind
from scaletest.model.declared import Unbounded, called, choice
from scaletest.model.verdict import JUDGEMENTS
from scaletest.model.writing import Written
from scaletest.stats.student import chi_square_limit, t95
from scaletest.validation.judging.slow_requests import Tail, joined_tails, slowdowns
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.plan import Plan

# 1.645 / 1.960: from the half-width of a two-sided 95 % interval to that of a 90 % one.
ONE_SIDED = 0.839
ERROR = 0.05


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
    def kind(self) -> Annotated[VerdictKind, choice(JUDGEMENTS), called("verdict")]:
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
    """The ratio of (workers, throughput) pairs; None without a throughput on either side.

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
    """The ratio with that logarithm; infinite widths are bounds of 0 and infinity.

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
    """e to the power of the exponent; infinity where that is too large."""
    return math.exp(exponent) if exponent < 700.0 else math.inf


def family(doublings: int) -> float:
    """By how much a bound that is wrong in 5 % widens when it may be wrong in 5 % / doublings."""
    return NormalDist().inv_cdf(1.0 - ERROR / max(1, doublings)) / NormalDist().inv_cdf(1.0 - ERROR)


FEWEST_STEPS = 3
LESS_SUPPORT = 6.0
# Two measurements of one step differ by this relative standard deviation without a cause.
NUISANCE = 0.001
LINE_ERROR, SHAKEN_ERROR = 0.01, 0.20


@dataclass(frozen=True, slots=True)
class UpAndDown:
    """One step measured on the way up and on the way down.

    seconds: from the middle of the one to that of the other. change: logarithm of the throughput on
    the way down over that on the way up; error: its standard error.
    """

    seconds: float
    change: float
    error: float

    @property
    def weight(self) -> float:
        """One over the variance."""
        return 1.0 / (self.error**2 + NUISANCE**2)


@dataclass(frozen=True, slots=True)
class MachineTrend:
    """How the machine changed along a run.

    per_s: its steady relative change per second, as a logarithm; 0 where none is certain. shaken:
    by which factor the ways differ more than the scatter of requests explains, to widen errors; 1
    where chance explains it. One number for all steps (Birge 1932), since few steps know little
    each.
    """

    per_s: float = 0.0
    shaken: float = 1.0


def machine_trend(both_ways: Sequence[UpAndDown]) -> MachineTrend:
    """The trend by the two ways of all steps together."""
    steps = [step for step in both_ways if math.isfinite(step.error) and step.seconds > 0]
    per_s, freedom = _trend(steps), len(steps) - 1
    # a steady change cancels, whether or not it is certain that it was steady
    misfit = _fit(steps, [step.seconds for step in steps])[1]
    if freedom < 1 or misfit <= chi_square_limit(freedom, SHAKEN_ERROR):
        return MachineTrend(per_s)
    return MachineTrend(per_s, math.sqrt(misfit / freedom))


def _trend(steps: Sequence[UpAndDown]) -> float:
    """The steady change; 0 where there is none, or it may have been a jump."""
    if len(steps) < FEWEST_STEPS:
        return 0.0
    gaps = [step.seconds for step in steps]
    slope, misfit = _fit(steps, gaps)

    def jump(least: float) -> float:
        return _fit(steps, [float(gap >= least) for gap in gaps])[1]

    line_fits = misfit <= chi_square_limit(len(steps) - 1, LINE_ERROR)
    return slope if line_fits and min(map(jump, gaps)) - misfit >= LESS_SUPPORT else 0.0


def _fit(steps: Sequence[UpAndDown], pattern: Sequence[float]) -> tuple[float, float]:
    """The factor on the pattern that is closest to the changes, and chi square of what remains."""
    pairs = list(zip(steps, pattern, strict=True))
    below = sum(step.weight * part**2 for step, part in pairs)
    factor = 0.0
    if below:
        factor = sum(step.weight * part * step.change for step, part in pairs) / below
    return factor, sum(step.weight * (step.change - factor * part) ** 2 for step, part in pairs)


_NORMAL = t95(math.inf)
STEADY = MachineTrend()
# Both ways may be off in the same direction by chance, as when all workers fluctuate for longer
# than a step. So a doubling fails only when it is twice as far below the wanted ratio as the ways
# are from their mean.
FAILS_BEYOND = 2.0
# Reasons why an interval is wider than the scatter of requests makes it.
WAYS, SLOW_REQUESTS = "ways", "slow requests"


@dataclass(frozen=True, slots=True)
class StepPart:
    """One measurement of a step.

    seconds: time under load. at_s: the middle of it, on the clock of all parts.
    repeat: even on the way up, odd on the way down. sound: whether it may be judged.
    """

    workers: int
    repeat: int
    seconds: float
    at_s: float
    throughput: Throughput
    tail: Tail
    sound: bool = True

    @property
    def down(self) -> bool:
        """Whether it was measured on the way down."""
        return self.repeat % 2 == 1

    @property
    def spread(self) -> float | None:
        """Relative standard deviation of its cycles by its interval's width; None without one."""
        rate, count = self.throughput, self.throughput.completions - self.workers
        if rate.enough and count > 0 and math.isfinite(rate.relative):
            return rate.error * math.sqrt(count)
        return None


def together(parts: Sequence[StepPart]) -> Throughput:
    """The throughput of a step from its parts, each weighted with its length.

    The scatter of requests in a second is pooled over the parts, each with its degrees of freedom
    as
    weight: a part of 30 requests that follow each other alike underestimates its own error.
    """
    rates = [part.throughput for part in parts]
    weighted = list(zip(_weights([part.seconds for part in parts]), rates, strict=True))
    per_s = sum(weight * rate.per_s for weight, rate in weighted)
    completions = sum(rate.completions for rate in rates)
    enough = all(rate.enough for rate in rates)
    if not all(math.isfinite(rate.half_width) for rate in rates):
        return Throughput(per_s, math.inf, completions, 0, enough)
    freedom = sum(rate.freedom for rate in rates)
    pooled = sum(rate.freedom * weight * rate.error**2 for weight, rate in weighted)
    error = math.sqrt(pooled / freedom) if freedom else 0.0
    return Throughput(per_s, t95(max(1, freedom)) * error * per_s, completions, freedom, enough)


def _weights(seconds: Sequence[float]) -> list[float]:
    """The part of each in their sum; equal parts where the sum is 0."""
    whole = sum(seconds)
    if whole > 0:
        return [each / whole for each in seconds]
    return [1.0 / len(seconds)] * len(seconds)


def doubling(
    before: Sequence[StepPart],
    after: Sequence[StepPart],
    plan: Plan,
    *,
    wider: float = ONE_SIDED,
    narrower: float = 1.0,
    course: MachineTrend = STEADY,
) -> Ratio | None:
    """The ratio of the second step over the first, from the sound pairs of both; None without one.

    wider: factor on the half-width, from two-sided 95 % to the confidence wanted. narrower: a
    further factor, for the parts that are still to be measured. course: how the machine changed
    along the run.
    """
    pairs = [pair for pair in _pairs(before, after) if pair.sound]
    more = family(len(plan.steps) - 1)

    def with_tails(narrower: float) -> Ratio | None:
        plain = _plain(pairs, plan, wider * narrower)
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

    def way(self, down: bool) -> _Pair:
        """The parts of it that were measured in one direction."""
        return _Pair(
            [part for part in self.first if part.down is down],
            [part for part in self.second if part.down is down],
        )


def _pairs(before: Sequence[StepPart], after: Sequence[StepPart]) -> list[_Pair]:
    numbers = sorted({part.repeat // 2 for part in before} & {part.repeat // 2 for part in after})
    return [_Pair(_of_pair(before, number), _of_pair(after, number)) for number in numbers]


def _of_pair(parts: Sequence[StepPart], number: int) -> list[StepPart]:
    return [part for part in parts if part.repeat // 2 == number]


def _plain(pairs: Sequence[_Pair], plan: Plan, factor: float) -> Ratio | None:
    """The ratio by throughput alone: the weighted mean of the logarithms of all pairs."""
    ratios: list[Ratio] = []
    doublings = len(plan.steps) - 1
    for pair in pairs:
        base = (pair.first[0].workers, together(pair.first))
        rate = (pair.second[0].workers, together(pair.second))
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


def pairs_of(parts: Sequence[StepPart]) -> list[list[StepPart]]:
    """The parts of a step by the way up and the way down after it, which may be missing."""
    return [_of_pair(parts, number) for number in sorted({part.repeat // 2 for part in parts})]


def judged(parts: Sequence[StepPart]) -> list[StepPart]:
    """The parts of a step that a verdict uses: those of sound pairs, or all without a sound one."""
    sound: list[StepPart] = []
    for pair in pairs_of(parts):
        if all(part.sound for part in pair):
            sound += pair
    return sound or list(parts)


def run_course(steps: Sequence[Sequence[StepPart]]) -> MachineTrend:
    """How the machine changed along the run, by both ways of each step and its judged parts."""
    return machine_trend(list(filter(None, map(_up_and_down, steps))))


def _up_and_down(parts: Sequence[StepPart]) -> UpAndDown | None:
    """The change of a step from its way up to its way down, by its judged parts; None without both.

    By its usual requests where some were slow.
    """
    sound = [part for part in judged(parts) if part.sound]
    up_parts = [part for part in sound if not part.down]
    down_parts = [part for part in sound if part.down]
    if not up_parts or not down_parts:
        return None
    seconds = _middle(down_parts) - _middle(up_parts)
    up, down = _tail(up_parts), _tail(down_parts)
    if up.slow or down.slow:
        if not up.usual or not down.usual:
            return None
        error = math.hypot(up.error, down.error)
        return UpAndDown(seconds, math.log(up.usual_s / down.usual_s), error)
    first, second = together(up_parts), together(down_parts)
    if first.per_s <= 0 or second.per_s <= 0:
        return None
    error = math.hypot(first.error, second.error)
    return UpAndDown(seconds, math.log(second.per_s / first.per_s), error)


def _tail(parts: Iterable[StepPart]) -> Tail:
    """The slow requests of several parts together."""
    return joined_tails([part.tail for part in parts])


def _middle(parts: Sequence[StepPart]) -> float:
    """The middle of several parts on their clock, each weighted with its length, in s."""
    whole = sum(part.seconds for part in parts)
    if whole > 0:
        return sum(part.at_s * part.seconds for part in parts) / whole
    return parts[0].at_s


def _with_tails(
    plain: Ratio, pairs: Sequence[_Pair], wider: float, narrower: float, more: float
) -> Ratio:
    """The ratio by the usual requests and by how often slow ones come; `plain` where none came."""
    first, second = pairs[0].first[0].workers, pairs[0].second[0].workers
    base = _tail(itertools.chain.from_iterable(pair.first for pair in pairs))
    tail = _tail(itertools.chain.from_iterable(pair.second for pair in pairs))
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
    """The ratio with an interval that reaches to those of the way up and of the way down.

    `whole` unchanged where no pair has both.
    """
    complete = [pair for pair in pairs if pair.way(False).complete and pair.way(True).complete]
    if not complete:
        return whole
    slow = any(pair.slow for pair in complete)
    whole_weight = sum(pair.weight for pair in complete)
    weights = [pair.weight / whole_weight for pair in complete]
    weighted = list(zip(weights, complete, strict=True))
    up = sum(weight * _log_ratio(pair.way(False), slow) for weight, pair in weighted)
    down = sum(weight * _log_ratio(pair.way(True), slow) for weight, pair in weighted)
    explained = per_s * sum(weight * _apart_s(pair) for weight, pair in weighted)
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


def _apart_s(pair: _Pair) -> float:
    """Seconds between the middles of the second step's ways, less those of the first step's."""
    up, down = pair.way(False), pair.way(True)
    return _middle(down.second) - _middle(up.second) - _middle(down.first) + _middle(up.first)


def _log_ratio(pair: _Pair, slow: bool) -> float:
    """The logarithm of the ratio; that of the usual requests where some were slow."""
    if slow:
        base, more = _tail(pair.first), _tail(pair.second)
        if base.usual and more.usual:
            first, second = pair.first[0].workers, pair.second[0].workers
            return math.log(second / more.usual_s * base.usual_s / first)
    base_rate, rate = together(pair.first).per_s, together(pair.second).per_s
    return math.log(rate / base_rate) if rate > 0 and base_rate > 0 else 0.0

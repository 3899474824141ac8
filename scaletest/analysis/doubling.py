"""The ratio of two steps that may each be measured in parts: on the way up, on the way down, and again.

Each part of a step has one of the other beside it, and parts of a pair are equally long and equally far from the middle
of the run, so what changes evenly along the run cancels in their mean. What changes otherwise shows as a ratio on the
way up that differs from the one on the way down. The truth may then be either, so the interval reaches to both.

Slow requests count by how often they come, see `tails`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scaletest.analysis import tails
from scaletest.analysis.machine_trend import MachineTrend, UpAndDown
from scaletest.analysis.machine_trend import machine_trend as course_of
from scaletest.analysis.ratio import ONE_SIDED, Ratio, around, family, power, ratio
from scaletest.analysis.student_t import t95
from scaletest.analysis.tails import Tail
from scaletest.analysis.throughput import Throughput
from scaletest.model import Plan

_NORMAL = t95(math.inf)
STEADY = MachineTrend()
# Two ways know little of how far both are off by the same chance, as where all workers fluctuate for longer than a
# step: a doubling fails only when it is twice as far below what is wanted as the ways are from their mean.
FAILS_BEYOND = 2.0
# What can make an interval wider than the scatter of requests does.
WAYS, SLOW_REQUESTS = "ways", "slow requests"


@dataclass(frozen=True, slots=True)
class StepPart:
    """One measuring of a step. seconds: under load, and at_s: the middle of it, on the clock of all parts.

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
        """The relative standard deviation of its cycles by the width of its interval; None where there is none."""
        rate, count = self.throughput, self.throughput.completions - self.workers
        known = rate.enough and count > 0 and math.isfinite(rate.relative)
        return rate.relative * math.sqrt(count) / t95(max(1, rate.freedom)) if known else None


def together(parts: Sequence[StepPart]) -> Throughput:
    """The throughput of a step from its parts, each as much as it is long.

    What requests scatter in a second is pooled over the parts, each with its degrees of freedom as weight: a part of 30
    requests that follow each other alike says too little of its own error.
    """
    whole = sum(part.seconds for part in parts)
    weights = [part.seconds / whole if whole > 0 else 1.0 / len(parts) for part in parts]
    rates = [part.throughput for part in parts]
    per_s = sum(weight * rate.per_s for weight, rate in zip(weights, rates, strict=True))
    completions, enough = sum(rate.completions for rate in rates), all(rate.enough for rate in rates)
    if not all(math.isfinite(rate.half_width) for rate in rates):
        return Throughput(per_s, math.inf, completions, 0, enough)
    freedom = sum(rate.freedom for rate in rates)
    pooled = sum(
        rate.freedom * weight * (rate.relative / t95(max(1, rate.freedom))) ** 2
        for weight, rate in zip(weights, rates, strict=True)
    )
    error = math.sqrt(pooled / freedom) if freedom else 0.0
    return Throughput(per_s, t95(max(1, freedom)) * error * per_s, completions, freedom, enough)


def doubling(
    before: Sequence[StepPart],
    after: Sequence[StepPart],
    plan: Plan,
    *,
    wider: float = ONE_SIDED,
    narrower: float = 1.0,
    course: MachineTrend = STEADY,
) -> Ratio | None:
    """The ratio of the second step over the first, from the sound pairs of both; None where there is none.

    wider: factor on the half-width, from two-sided 95 % to the confidence wanted. narrower: another one, for what parts
    yet to come will do. course: what the machine did along the run.
    """
    narrower *= course.shaken
    pairs = [pair for pair in _pairs(before, after) if pair.sound]
    plain = _plain(pairs, plan, wider * narrower)
    if plain is None:
        return None
    more = family(len(plan.steps) - 1)
    both = _with_halves(_with_tails(plain, pairs, wider, narrower, more), pairs, course.per_s, more)
    return replace(both, widened_by=WAYS) if course.shaken > 1.0 and both.up is not None else both


@dataclass(frozen=True, slots=True)
class _Pair:
    """The parts of two steps that were measured on one way up and down, or on a way up that has none down yet."""

    first: Sequence[StepPart]
    second: Sequence[StepPart]

    @property
    def weight(self) -> float:
        """Its share in the ratio: the errors of the two steps add, and each falls with the seconds."""
        seconds = [sum(part.seconds for part in parts) for parts in (self.first, self.second)]
        return 1.0 / sum(1.0 / max(spent, 1e-6) for spent in seconds)

    @property
    def sound(self) -> bool:
        """Whether every part may be judged."""
        return all(part.sound and part.throughput.enough for part in (*self.first, *self.second))

    @property
    def complete(self) -> bool:
        """Whether it has both steps."""
        return bool(self.first and self.second)

    def way(self, down: bool) -> _Pair:
        """The part of it that is one way."""
        first, second = ([part for part in parts if part.down is down] for parts in (self.first, self.second))
        return _Pair(first, second)


def _pairs(before: Sequence[StepPart], after: Sequence[StepPart]) -> list[_Pair]:
    numbers = sorted({part.repeat // 2 for part in before} & {part.repeat // 2 for part in after})
    return [_Pair(_of_pair(before, number), _of_pair(after, number)) for number in numbers]


def _of_pair(parts: Sequence[StepPart], number: int) -> list[StepPart]:
    return [part for part in parts if part.repeat // 2 == number]


def _plain(pairs: Sequence[_Pair], plan: Plan, factor: float) -> Ratio | None:
    """The ratio by throughput alone: the mean of the logarithms of all pairs, each with its weight."""
    ratios: list[Ratio] = []
    doublings = len(plan.steps) - 1
    for pair in pairs:
        base, rate = (pair.first[0].workers, together(pair.first)), (pair.second[0].workers, together(pair.second))
        pair_ratio = ratio(base, rate, plan.scale, factor, doublings)
        if pair_ratio is None:
            return None
        ratios.append(pair_ratio)
    if len(ratios) < 2:
        return ratios[0] if ratios else None
    whole = sum(pair.weight for pair in pairs)
    value, spread = 0.0, 0.0
    for pair, pair_ratio in zip(pairs, ratios, strict=True):
        weight = pair.weight / whole
        value += weight * math.log(pair_ratio.value)
        spread = math.hypot(spread, weight * math.log(pair_ratio.high / pair_ratio.value))
    return around(value, spread, spread, ratios[0].wanted, family(doublings))


def judged(parts: Sequence[StepPart]) -> list[StepPart]:
    """The parts of a step that a verdict rests on: those of its sound pairs, or all where no pair is sound."""
    pairs = [_of_pair(parts, number) for number in sorted({part.repeat // 2 for part in parts})]
    sound = [part for pair in pairs if all(part.sound for part in pair) for part in pair]
    return sound or list(parts)


def run_course(steps: Sequence[Sequence[StepPart]]) -> MachineTrend:
    """What the machine did along the run, by the two ways of every step and the sound parts that it is judged by."""
    halves = [_halves([part for part in judged(parts) if part.sound]) for parts in steps]
    return course_of([row for row in halves if row])


def _halves(parts: Sequence[StepPart]) -> UpAndDown | None:
    """By how much a step differs between its ways; by its usual requests where some were slow. None without both."""
    ways = [[part for part in parts if part.down is down] for down in (False, True)]
    if not all(ways):
        return None
    seconds = _middle(ways[1]) - _middle(ways[0])
    up, down = (tails.joined([part.tail for part in way]) for way in ways)
    if up.slow or down.slow:
        if not up.usual or not down.usual:
            return None
        return UpAndDown(seconds, math.log(up.usual_s / down.usual_s), math.hypot(up.error, down.error))
    first, second = (together(way) for way in ways)
    if first.per_s <= 0 or second.per_s <= 0:
        return None
    error = math.hypot(*(rate.relative / t95(max(1, rate.freedom)) for rate in (first, second)))
    return UpAndDown(seconds, math.log(second.per_s / first.per_s), error)


def _middle(parts: Sequence[StepPart]) -> float:
    """The middle of several parts, each as much as it is long."""
    whole = sum(part.seconds for part in parts)
    return sum(part.at_s * part.seconds for part in parts) / whole if whole > 0 else parts[0].at_s


def _with_tails(plain: Ratio, pairs: Sequence[_Pair], wider: float, narrower: float, more: float) -> Ratio:
    """The ratio by the usual requests, and by how often slow ones come; as it was where none came."""
    first, second = pairs[0].first[0].workers, pairs[0].second[0].workers
    base = tails.joined([part.tail for pair in pairs for part in pair.first])
    tail = tails.joined([part.tail for pair in pairs for part in pair.second])
    if (not base.slow and not tail.slow) or not base.usual or not tail.usual:
        return plain
    slowed, slowed_more = tails.slowdowns(base, tail, wider * _NORMAL)
    value = math.log(second / tail.usual_s * base.usual_s / first) + slowed.value - slowed_more.value
    usual = [wider * t95(max(1, row.usual - 1)) * row.error for row in (base, tail)]
    below = math.hypot(*usual, slowed.value - slowed.low, slowed_more.high - slowed_more.value)
    above = math.hypot(*usual, slowed.high - slowed.value, slowed_more.value - slowed_more.low)
    return replace(around(value, narrower * below, narrower * above, plain.wanted, more), widened_by=SLOW_REQUESTS)


def _with_halves(whole: Ratio, pairs: Sequence[_Pair], per_s: float, more: float) -> Ratio:
    """The same with an interval that reaches to what the way up and the way down say, where there are both."""
    complete = [pair for pair in pairs if all(pair.way(down).complete for down in (False, True))]
    if not complete:
        return whole
    slow = any(part.tail.slow for pair in complete for part in (*pair.first, *pair.second))
    weights = [pair.weight / sum(other.weight for other in complete) for pair in complete]
    up, down = (
        sum(weight * _log_ratio(pair.way(down), slow) for weight, pair in zip(weights, complete, strict=True))
        for down in (False, True)
    )
    explained = per_s * sum(weight * _apart_s(pair) for weight, pair in zip(weights, complete, strict=True))
    gap = abs(down - up - explained) / 2.0
    value = math.log(whole.value)
    low, high = math.exp(value - gap), power(value + gap)
    return replace(
        whole,
        low=min(whole.low, low),
        high=max(whole.high, high),
        most=max(whole.most, power(value + FAILS_BEYOND * more * gap)),
        up=math.exp(up),
        down=math.exp(down),
        widened_by=WAYS if low < whole.low or high > whole.high else whole.widened_by,
    )


def _apart_s(pair: _Pair) -> float:
    """Seconds from the middle of the second step's ways to each other, less those of the first step's."""
    up, down = pair.way(False), pair.way(True)
    return _middle(down.second) - _middle(up.second) - _middle(down.first) + _middle(up.first)


def _log_ratio(pair: _Pair, slow: bool) -> float:
    """The logarithm of the ratio; that of the usual requests where some were slow."""
    first, second = pair.first, pair.second
    if slow:
        base, more = (tails.joined([part.tail for part in parts]) for parts in (first, second))
        if base.usual and more.usual:
            return math.log(second[0].workers / more.usual_s * base.usual_s / first[0].workers)
    base_rate, rate = together(first).per_s, together(second).per_s
    return math.log(rate / base_rate) if rate > 0 and base_rate > 0 else 0.0

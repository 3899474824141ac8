"""The ratio of two steps that may each be measured in parts: on the way up, down, and again.

Each part of a step has one of the other beside it. The parts of a pair are equally long and equally
far from the middle of the run, so a steady change along the run cancels in their mean. Any other
change shows as a ratio on the way up that differs from the one on the way down. The truth may then
be either, so the interval reaches to both.

Slow requests count by how often they come, see `tails`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
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
        known = rate.enough and count > 0 and math.isfinite(rate.relative)
        if known:
            return rate.relative * math.sqrt(count) / t95(max(1, rate.freedom))
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
    pooled = sum(rate.freedom * weight * _error(rate) ** 2 for weight, rate in weighted)
    error = 0.0
    if freedom:
        error = math.sqrt(pooled / freedom)
    return Throughput(per_s, t95(max(1, freedom)) * error * per_s, completions, freedom, enough)


def _weights(seconds: Sequence[float]) -> list[float]:
    """The part of each in their sum; equal parts where the sum is 0."""
    whole = sum(seconds)
    if whole > 0:
        return [each / whole for each in seconds]
    return [1.0 / len(seconds)] * len(seconds)


def _error(rate: Throughput) -> float:
    """The relative standard error of a throughput."""
    return rate.relative / t95(max(1, rate.freedom))


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
    narrower *= course.shaken
    pairs = [pair for pair in _pairs(before, after) if pair.sound]
    plain = _plain(pairs, plan, wider * narrower)
    if plain is None:
        return None
    more = family(len(plan.steps) - 1)
    with_tails = _with_tails(plain, pairs, wider, narrower, more)
    both = _with_both_ways(with_tails, pairs, course.per_s, more)
    if course.shaken > 1.0 and both.up is not None:
        return replace(both, widened_by=WAYS)
    return both


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
        first = [part for part in self.first if part.down is down]
        second = [part for part in self.second if part.down is down]
        return _Pair(first, second)


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
        if ratios:
            return ratios[0]
        return None
    whole = sum(pair.weight for pair in pairs)
    log_ratio, spread = 0.0, 0.0
    for pair, pair_ratio in zip(pairs, ratios, strict=True):
        weight = pair.weight / whole
        log_ratio += weight * math.log(pair_ratio.value)
        spread = math.hypot(spread, weight * math.log(pair_ratio.high / pair_ratio.value))
    return around(log_ratio, spread, spread, ratios[0].wanted, family(doublings))


def judged(parts: Sequence[StepPart]) -> list[StepPart]:
    """The parts of a step that a verdict uses: those of sound pairs, or all without a sound one."""
    sound: list[StepPart] = []
    for number in sorted({part.repeat // 2 for part in parts}):
        pair = _of_pair(parts, number)
        if all(part.sound for part in pair):
            sound += pair
    return sound or list(parts)


def run_course(steps: Sequence[Sequence[StepPart]]) -> MachineTrend:
    """How the machine changed along the run, by both ways of each step and its judged parts."""
    both_ways = []
    for parts in steps:
        step = _up_and_down([part for part in judged(parts) if part.sound])
        if step:
            both_ways.append(step)
    return course_of(both_ways)


def _up_and_down(parts: Sequence[StepPart]) -> UpAndDown | None:
    """The change of a step from its way up to its way down; None without both.

    By its usual requests where some were slow.
    """
    up_parts = [part for part in parts if not part.down]
    down_parts = [part for part in parts if part.down]
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
    error = math.hypot(_error(first), _error(second))
    return UpAndDown(seconds, math.log(second.per_s / first.per_s), error)


def _tail(parts: Iterable[StepPart]) -> Tail:
    """The slow requests of several parts together."""
    return tails.joined([part.tail for part in parts])


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
    slowed, slowed_more = tails.slowdowns(base, tail, wider * _NORMAL)
    usual = math.log(second / tail.usual_s * base.usual_s / first)
    log_ratio = usual + slowed.value - slowed_more.value
    errors = [wider * t95(max(1, each.usual - 1)) * each.error for each in (base, tail)]
    below = math.hypot(*errors, slowed.value - slowed.low, slowed_more.high - slowed_more.value)
    above = math.hypot(*errors, slowed.high - slowed.value, slowed_more.value - slowed_more.low)
    joint = around(log_ratio, narrower * below, narrower * above, plain.wanted, more)
    return replace(joint, widened_by=SLOW_REQUESTS)


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
    widened_by = whole.widened_by
    if low < whole.low or high > whole.high:
        widened_by = WAYS
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
    if rate > 0 and base_rate > 0:
        return math.log(rate / base_rate)
    return 0.0

"""When a step has been measured enough, which part comes next, and how long a run takes.

Pure: it gets the completions and the time, and decides.

Checking again and again until an interval is narrow, or a ratio clear, makes both look better than
they are. Four rules limit that: checks come only when a fifth more was completed than at the last
one; they take the correlation of successive requests two standard errors higher than estimated; a
ratio counts as decided while measuring only when one end in a hundred would be wrong (the verdict
itself allows one in twenty); and nothing counts while throughput still rises or falls, or while
warm-up fills 40 % of the step.

Thresholds require requests and precision of a step: without that a step that is decided after
twenty requests would leave every percentile threshold undecided.

A step is measured in two parts, on the way up and on the way down. The first ends
when twice as much of the same would suffice; the second is as long as the first. The requests in
flight when a part ends still finish and count, so a part of steady requests ends when these will
make it precise.

The order of the measurements: up and down, and again for undecided doublings.

Every pair of ways is symmetric: the same steps, equally long, in the opposite order. A further pair
is as long as all before it together, so that few are needed, and has only the steps of the
doublings that are still open.

Forecast of a run: how long its steps take, and how narrow their intervals will be.

A step whose run times have the coefficient of variation c needs n = (1.96 c / precision)^2 cycles
of all its workers, never less than 8 completions in all and 3 a worker, never less than the
shortest nor more than the longest step. This is an upper bound: a step also ends when its doubling
is decided. Every step has two parts, each with half of that; where these decide nothing further
parts follow, up to the longest time of the run.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from scaletest.model import Measurement, VerdictKind
from scaletest.model.threshold import PERCENTILES, Threshold, parse_of_steps
from scaletest.model.writing import Written
from scaletest.stats.completions import Ends, after, cycles
from scaletest.stats.percentiles import samples_needed
from scaletest.stats.student import spread_bound, t95
from scaletest.validation.judging.doubling import (
    MachineTrend,
    StepPart,
    doubling,
    run_course,
    together,
)
from scaletest.validation.judging.drift import (
    BATCHES,
    LEFT_PER_WORKER,
    TREND_EFFECT,
    Warmup,
    agreed,
    cut,
    rising,
)
from scaletest.validation.judging.slow_requests import Tail, tail, usual
from scaletest.validation.judging.throughput import (
    MIN_COMPLETIONS,
    MIN_COMPLETIONS_PER_WORKER,
    Throughput,
    completed,
    least_each,
    relative_spread,
    throughput,
)
from scaletest.validation.plan import Plan

# The way up and the way down, and the factor of both together on the width of an interval.
PARTS = 2
NARROWER = 1.0 / math.sqrt(PARTS)
# Shorter steps would be at the mercy of one scheduling delay, however many requests they hold.
SHORTEST_STEP_S = 2.0
LOOK_GROWTH = 1.2
# 2.326 / 1.960: from the half-width of a two-sided 95 % interval to that of 98 %, 1 % at each end.
WIDER = 1.187
# An interval wider than this comes from too little data to be trusted, whatever it decides.
ROUGH = 0.10
# While more than this part of a step is warm-up it may not have ended yet.
MOST_WARMUP = 0.4
# A throughput that changes by this along a part is a warm-up rather than a machine that heats up.
WARMING, WARMING_T = 0.25, 3.0
# The base of another doubling keeps its share of the error within the margin: 1 / sqrt(2).
BASE_SHARE = 0.4


class Stop(StrEnum):
    """Why a step's measuring ended."""

    DECIDED = "decided"
    PRECISE = "precise"
    FIXED = "fixed time"
    LONGEST = "longest step"
    MIRRORED = "as long as before"
    FAILURES = "failures"
    ENDED = "ended early"


# Measures whose thresholds need the plan's precision.
RATES = ("ratio", "efficiency", "throughput", "contention", "coherency")


@dataclass(frozen=True, slots=True)
class StepRequirements:
    """Requirements of a step.

    requests: that must be counted. precise: whether the step must go on to the plan's precision.
    """

    requests: int
    precise: bool


def requirements_of(plan: Plan, workers: int) -> StepRequirements:
    """The requirements of the thresholds for the step with that many workers."""
    thresholds = [parse_of_steps(text, plan.steps) for text in plan.thresholds]
    concerning = [each for each in thresholds if _concerns(each, plan, workers)]
    return StepRequirements(
        requests=max((_requests(each, workers) for each in concerning), default=0),
        precise=any(each.measure in RATES for each in concerning),
    )


def _concerns(threshold: Threshold, plan: Plan, workers: int) -> bool:
    """Whether a threshold uses the step: by name, by naming none, or as the base of its ratio."""
    if threshold.workers is None or threshold.workers == workers:
        return True
    if threshold.measure == "ratio":
        return plan.steps[max(0, plan.steps.index(threshold.workers) - 1)] == workers
    return threshold.measure == "efficiency" and workers == plan.steps[0]


def _requests(threshold: Threshold, workers: int) -> int:
    """A percentile's interval needs twice the requests of its value; drift two of each worker in
    every batch.

    Whether a step drifted is asked of each of its parts.
    """
    if threshold.measure == "drift":
        return 2 * BATCHES * workers * PARTS
    quantile = PERCENTILES.get(threshold.measure.partition(".")[2])
    if quantile:
        return 2 * samples_needed(quantile)
    return 0


def trimmed(
    ends: Ends,
    warmup_s: float | None,
    began_s: float,
    warm_at_s: float | None = None,
    per_s: float = 0.0,
) -> Warmup:
    """The completions without the warm-up.

    warmup_s: seconds to cut from `began_s` on; None: those that MSER-5 finds. warm_at_s: what it
    found when the step was ended, see `Stopping.warm_at_s`. per_s: the run's trend.
    """
    if warmup_s is None:
        if warm_at_s is None:
            return cut(ends, per_s)
        return agreed(ends, warm_at_s)
    cut_s = began_s + warmup_s
    return Warmup(after(ends, cut_s), cut_s, 0.0, True)


@dataclass(slots=True)
class Stopping:
    """The rule for one measurement of a step.

    before: the measurement of the step that this one is compared with, None without one. last:
    whether no later step is compared with this one. length_s: how long it is measured, as its
    mirror image is or will be; 0: as long as it takes. rate: throughput at the last check.
    warm_at_s: the end of the warm-up at the check that ended the step, 0 for none; None before
    that.
    """

    plan: Plan
    workers: int
    before: StepPart | None
    last: bool
    length_s: float = 0.0
    next_look: int = 0
    rate: Throughput | None = None
    warm_at_s: float | None = None
    _warm_s: float = 0.0

    @property
    def longest_s(self) -> float:
        """Seconds after which it ends.

        A part that warms up gets that time back, up to the longest time of the step.
        """
        plan = self.plan
        if plan.step_s:
            return plan.fixed_part_s
        if self.length_s:
            return 2.0 * self.length_s
        return min(plan.longest_s, plan.longest_part_s + self._warm_s)

    def look(
        self, completions: int, elapsed_s: float, ends: Callable[[], tuple[Ends, float]]
    ) -> Stop | None:
        """Whether to stop now.

        ends: returns the completions and the beginning in s, called only when they are needed.
        """
        plan = self.plan
        if elapsed_s >= self.longest_s and not self._warms_up(elapsed_s, ends):
            return Stop.FIXED if plan.step_s else Stop.LONGEST
        if plan.step_s or completions < self.next_look:
            return None
        if self.length_s:
            # after the mirror image's length, but not before requests in flight are enough
            if elapsed_s < self.length_s:
                return None
            return Stop.MIRRORED if self._suffices_with_those_in_flight(ends()[0]) else None
        warmup_s = plan.warmup_s or 0.0
        if elapsed_s < warmup_s:
            return None
        return self._check(completions, elapsed_s, SHORTEST_STEP_S / PARTS + warmup_s, ends())

    def _check(
        self, completions: int, elapsed_s: float, shortest_s: float, measured: tuple[Ends, float]
    ) -> Stop | None:
        """Whether the completions so far are enough. measured: completions and the beginning."""
        plan = self.plan
        completed_by, began_s = measured
        warm = trimmed(completed_by, plan.warmup_s, began_s)
        if plan.warmup_s is None and not self._began_steadily(warm, began_s):
            return None
        stop = self._foreseen(warm, elapsed_s, shortest_s)
        if not stop and elapsed_s >= shortest_s:
            self.next_look = max(completions + 1, math.ceil(completions * LOOK_GROWTH))
            stop = self._judge(warm)
        if stop and plan.warmup_s is None:
            self.warm_at_s = warm.cut_s if warm.share else 0.0
        return stop

    def _warms_up(self, elapsed_s: float, ends: Callable[[], tuple[Ends, float]]) -> bool:
        """Whether a part goes on beyond its time, since a warm-up took a share or still lasts."""
        plan = self.plan
        if plan.step_s or self.length_s or plan.warmup_s is not None:
            return False
        completed_by, began_s = ends()
        warm = trimmed(completed_by, None, began_s)
        if not warm.settled or rising(usual(warm.ends), WARMING, WARMING_T):
            self._warm_s = elapsed_s * LOOK_GROWTH - plan.longest_part_s
        elif warm.share:
            self._warm_s = max(self._warm_s, warm.cut_s - began_s)
        return elapsed_s < self.longest_s

    def _began_steadily(self, warm: Warmup, began_s: float) -> bool:
        """Whether first requests took as long as later ones, or there is enough to show a warm-up.

        One cycle of each worker has no trend. A warm-up makes the first request longer than the
        next, or than those of the step before, as long as throughput follows.
        """
        fewest = min(map(len, warm.ends.values()), default=0)
        if warm.share or fewest >= LEFT_PER_WORKER:
            return True
        first = [times[0] - began_s for times in warm.ends.values() if times]
        later = list(itertools.chain.from_iterable(map(cycles, warm.ends.values())))
        if not later and self.before:
            later = [self.before.tail.usual_s]
        if not first or not any(later):
            return False
        return abs(statistics.fmean(first) / statistics.fmean(later) - 1.0) <= TREND_EFFECT

    def _foreseen(self, warm: Warmup, elapsed_s: float, shortest_s: float) -> Stop | None:
        """Stop when the requests in flight will make it precise, if they scatter as before."""
        # with enough already the scatter is known well enough to be checked itself
        if warm.share or completed(
            warm.ends, self.workers, MIN_COMPLETIONS, MIN_COMPLETIONS_PER_WORKER
        ):
            return None
        if not self._suffices_with_those_in_flight(warm.ends):
            return None
        counts = [len(times) for times in warm.ends.values()]
        count = sum(counts)
        required = requirements_of(self.plan, self.workers)
        ended_s = elapsed_s + (elapsed_s - (self.plan.warmup_s or 0.0)) / min(counts)
        if PARTS * (count + self.workers) < required.requests or ended_s < shortest_s:
            return None
        spread = self._largest_spread(warm.ends)
        if spread is None or count < 2:
            return None
        relative = t95(count - 1) * spread / math.sqrt(count)
        return Stop.PRECISE if relative * NARROWER <= self.plan.precision else None

    def _suffices_with_those_in_flight(self, ends: Ends) -> bool:
        """Whether completions suffice once the requests in flight have ended."""
        return completed(
            ends,
            self.workers,
            MIN_COMPLETIONS - self.workers,
            MIN_COMPLETIONS_PER_WORKER - 1,
        )

    def _largest_spread(self, ends: Ends) -> float | None:
        """The largest relative scatter of cycles, so far and of the base; None for neither.

        The standard deviation of a few is too small by chance: its upper bound counts, wrong in one
        of twenty cases.
        """
        known = []
        own, count = relative_spread(ends), sum(len(times) - 1 for times in ends.values())
        if own is not None:
            known.append(own * spread_bound(count - 1))
        if self.before and self.before.spread is not None:
            known.append(self.before.spread)
        return max(known, default=None)

    def _judge(self, warm: Warmup) -> Stop | None:
        rate = throughput(warm.ends, self.workers, cautious=True)
        self.rate = rate if rate.enough else None
        required = requirements_of(self.plan, self.workers)
        if not rate.enough or PARTS * rate.completions < required.requests:
            return None
        if not warm.settled or warm.share > MOST_WARMUP or rising(usual(warm.ends)):
            return None
        relative = NARROWER * rate.relative
        if relative <= self.plan.precision:
            return Stop.PRECISE
        early = not required.precise and relative <= ROUGH
        return Stop.DECIDED if early and self._decided(rate, tail(warm.ends)) else None

    def _decided(self, rate: Throughput, slow: Tail) -> bool:
        if self.before is None or not self.before.throughput.enough:
            return False
        own = StepPart(self.workers, self.before.repeat, 1.0, 0.0, rate, slow)
        narrower = math.sqrt(NARROWER)  # the part to come may well say something less clear
        ratio = doubling([self.before], [own], self.plan, wider=WIDER, narrower=narrower)
        if ratio is None or ratio.kind is VerdictKind.INVALID:
            return False
        margin = abs(math.log(ratio.value / ratio.wanted))
        return self.last or NARROWER * rate.relative <= BASE_SHARE * margin


# A further pair is not begun when only this part of its time is left.
LEAST_PART = 0.5


@dataclass(frozen=True, slots=True)
class Turn:
    """A measurement to come: workers, repeat, and how many seconds.

    length_s: 0 on the first way up, which lasts as long as it takes.
    """

    workers: int
    repeat: int
    length_s: float = 0.0

    @property
    def key(self) -> tuple[int, int]:
        """Workers and repeat, the key of its records."""
        return self.workers, self.repeat


def way(repeat: int) -> str:
    """The name of a measurement: "way up" or "way down", and its pair beyond the first."""
    direction = "way down" if repeat % 2 else "way up"
    return f"{direction}, pair {repeat // 2 + 1}" if repeat > 1 else direction


def planned_pairs(plan: Plan) -> list[Turn]:
    """Every step up, then every step down, as long as on the way up; as often as planned."""
    turns = []
    for pair in range(plan.repeats):
        turns += [Turn(workers, 2 * pair) for workers in plan.steps]
        turns += [Turn(workers, 2 * pair + 1) for workers in reversed(plan.steps)]
    return turns


def further_pair(plan: Plan, steps: Sequence[Sequence[StepPart]]) -> list[Turn]:
    """The next pair after these steps; empty when all is decided or time is up.

    Other steps may use the time that a step has left, so that the run is never longer than all
    steps may be.
    """
    if plan.step_s or plan.compares or plan.repeats > 1:
        return []
    course = run_course(steps)
    ratios = [
        doubling(first, second, plan, course=course) for first, second in itertools.pairwise(steps)
    ]
    # a doubling that fails decides the run
    if any(ratio and ratio.kind is VerdictKind.FAIL for ratio in ratios):
        return []
    spent = {parts[0].workers: _seconds(parts) for parts in steps}
    lengths = _lengths(plan, steps, course, spent)
    left = plan.longest_s * len(steps) - sum(spent.values())
    wanted = PARTS * sum(lengths.values())
    if wanted <= 0 or left < LEAST_PART * wanted:
        return []
    shorter = min(1.0, left / wanted)
    repeat = 1 + max(part.repeat for part in itertools.chain.from_iterable(steps))
    open_steps = [workers for workers in plan.steps if workers in lengths]
    up = [Turn(workers, repeat, shorter * lengths[workers]) for workers in open_steps]
    return up + [Turn(turn.workers, repeat + 1, turn.length_s) for turn in reversed(up)]


def _seconds(parts: Sequence[StepPart]) -> float:
    return sum(part.seconds for part in parts)


def _lengths(
    plan: Plan,
    steps: Sequence[Sequence[StepPart]],
    course: MachineTrend,
    spent: Mapping[int, float],
) -> dict[int, float]:
    """Seconds of each way of the next pair, for the steps of open doublings.

    Each as long as the shorter step of the doubling was measured so far.
    """
    lengths: dict[int, float] = {}
    for first, second in itertools.pairwise(steps):
        if _open(plan, first, second, course):
            pair = (first[0].workers, second[0].workers)
            length = min(spent[workers] for workers in pair)
            for workers in pair:
                lengths[workers] = max(length, lengths.get(workers, 0.0))
    return lengths


def _open(
    plan: Plan, first: Sequence[StepPart], second: Sequence[StepPart], course: MachineTrend
) -> bool:
    """Whether measuring again may decide this doubling: it is undecided and still imprecise."""
    ratio = doubling(first, second, plan, wider=WIDER, course=course)
    if ratio is None:
        return True
    if ratio.kind is not VerdictKind.INVALID:
        return False
    if ratio.widened_by:
        return True
    return max(together(first).relative, together(second).relative) > plan.precision


# Starting a worker process, and noticing that it serves.
START_S = 0.3
STEADY, SCATTERED = 0.005, 0.10


@dataclass(frozen=True, slots=True)
class ValidationForecast(Written):
    """The forecast of a run."""

    spread: Annotated[float, "relative standard deviation of run times."]
    seconds: Annotated[float, "of the whole run."]
    half_widths: Annotated[tuple[float, ...], "relative, by step."]


def forecast(plan: Plan, spread: float) -> ValidationForecast:
    """Duration and interval widths of `plan` if run times scatter by `spread` at ideal scaling."""
    total, widths = 0.0, []
    for workers in plan.steps:
        part_s = _part_s(plan, workers, spread)
        cycles = max(1.0, PARTS * workers * (part_s / max(plan.seconds, 1e-3) - 1))
        widths.append(1.96 * spread / math.sqrt(cycles))
        total += PARTS * part_s
    return ValidationForecast(spread, total * plan.repeats + _without_load_s(plan), tuple(widths))


def at_most_s(plan: Plan) -> float:
    """Seconds of the whole run if each step is measured for as long as it may be."""
    return longest_s(plan) + _without_load_s(plan)


def _without_load_s(plan: Plan) -> float:
    """Seconds until workers serve, and until the last requests of each part have ended."""
    ending_s = PARTS * len(plan.steps) * plan.seconds
    return plan.repeats * (ending_s + START_S * max(plan.steps))


def left_s(plan: Plan, turns: Sequence[Turn], measurements: Sequence[Measurement]) -> float:
    """Seconds that these turns take, by the forecast and by how right it was so far."""
    measured_s = sum(measurement.measured_s for measurement in measurements)
    expected_s = sum(_part_s(plan, measurement.workers, STEADY) for measurement in measurements)
    pace = measured_s / (expected_s or 1.0) or 1.0
    lengths = (turn.length_s or pace * _part_s(plan, turn.workers, STEADY) for turn in turns)
    return sum(length + plan.seconds for length in lengths)


def longest_s(plan: Plan) -> float:
    """Seconds under load that a run takes at most, unless parts warm up longer than planned."""
    step_s = plan.longest_s + (plan.warmup_s or 0.0)
    if plan.step_s:
        step_s = PARTS * plan.fixed_part_s
    return step_s * len(plan.steps) * plan.repeats


def _part_s(plan: Plan, workers: int, spread: float) -> float:
    """Seconds of load of one part of a step; each worker's first request only starts its cycle."""
    if plan.step_s:
        return plan.fixed_part_s
    needed = math.ceil((1.96 * spread / plan.precision) ** 2 / workers / PARTS) + 1
    seconds = (plan.warmup_s or 0.0) + max(least_each(workers), needed) * plan.seconds
    return min(plan.longest_part_s, max(SHORTEST_STEP_S / PARTS, seconds))

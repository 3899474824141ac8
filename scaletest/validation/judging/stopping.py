"""The rule that says when a step has been measured enough, from its completions and the time.

Checking again and again until an interval is narrow, or a ratio clear, makes both look better than
they are. Four rules limit that:

* Checks come only when a fifth more was completed than at the last one.
* They take the correlation of successive requests two standard errors higher than estimated.
* A ratio counts as decided while measuring only when one end in a hundred would be wrong. The
  verdict itself allows one in twenty.
* Nothing counts while throughput still rises or falls, or while warm-up fills 40 % of the step.

A step is measured in two parts, in the pass up and in the pass down. The first ends when twice as
much of the same would suffice, and the second is as long as the first. The requests in flight when
a part ends still finish and count, so a part of steady requests ends when these will make it
precise.
"""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scaletest.model import VerdictKind
from scaletest.model.threshold import PERCENTILES, parse_step_threshold
from scaletest.stats.completions import Completions
from scaletest.stats.percentiles import samples_needed
from scaletest.stats.student import spread_bound, t95
from scaletest.validation.judging.doubling import doubling_ratio, wanted_ratio
from scaletest.validation.judging.drift import (
    POSSIBLE_CHANGE,
    has_settled,
    may_still_change,
)
from scaletest.validation.judging.slow_requests import find_slow
from scaletest.validation.judging.step_parts import StepPart
from scaletest.validation.judging.throughput import (
    MIN_COMPLETIONS,
    MIN_COMPLETIONS_PER_WORKER,
    Throughput,
    has_completed,
    relative_spread,
    throughput,
)
from scaletest.validation.judging.warm_up import LEAST_LEFT_PER_WORKER, Warmup, cut_warm_up
from scaletest.validation.plan import Plan

# The pass up and the pass down.
PARTS = 2
# The interval of both parts together is as wide as that of one, times this.
WIDTH_OF_BOTH = 1.0 / math.sqrt(PARTS)
# From the half-width of a two-sided 95 % interval to that of 98 %, 1 % at each end: 2.326 / 1.960.
TO_98_PERCENT = 1.187
# A relative half-width beyond this comes from too little data to be trusted, whatever it decides.
MOST_TRUSTED_WIDTH = 0.10
# The base of another doubling keeps its share of the error within the margin: 1 / sqrt(2).
MOST_BASE_SHARE = 0.4
# Shorter steps would be at the mercy of one scheduling delay, however many requests they hold.
SHORTEST_STEP_S = 2.0
# The next check of the completions comes when there are this many times as many.
CHECK_GROWTH = 1.2
# A part whose doubling fails lasts so long, so that the cause is known too.
CAUSE_S = 3.0
# While more than this part of a step is warm-up it may not have ended yet.
MOST_WARMUP = 0.4
# A throughput that changes by this part along a measurement, and by so many standard errors, is a
# warm-up rather than a machine that heats up.
WARMING_CHANGE = 0.25
WARMING_T_VALUE = 3.0
# Measures whose thresholds need the plan's precision.
RATE_MEASURES = ("ratio", "efficiency", "throughput")
# Returns the completions so far, and when the first request was submitted, on Redis' clock.
ReadCompletions = Callable[[], tuple[Completions, float]]


class Stop(StrEnum):
    """Why a step's measuring ended."""

    DECIDED = "decided"
    PRECISE = "precise"
    FIXED = "fixed time"
    LONGEST = "longest step"
    MIRRORED = "same duration as the first pass"
    FAILURES = "failures"
    ENDED = "ended early"


@dataclass(frozen=True, slots=True)
class StepRequirements:
    """What thresholds require of a step.

    Without this a step that is decided after twenty requests would leave every threshold on a
    percentile undecided.
    """

    requests: int  # that must be counted
    precise: bool  # whether the step must reach the plan's precision


def requirements_of(plan: Plan, workers: int) -> StepRequirements:
    """Return what the plan's thresholds require of the step with that many workers."""
    requests, precise = 0, False
    for text in plan.thresholds:
        threshold = parse_step_threshold(text, plan.steps)
        measure, named_step = threshold.measure, threshold.workers
        # a threshold rests on the step that it names and on the base of that, or on every step
        rests_on = {named_step}
        if named_step is None:
            rests_on = {workers}
        elif measure == "ratio":
            rests_on.add(plan.steps[max(0, plan.steps.index(named_step) - 1)])
        elif measure == "efficiency":
            rests_on.add(plan.steps[0])
        if workers not in rests_on:
            continue
        precise = precise or measure in RATE_MEASURES
        quantile = PERCENTILES.get(threshold.percentile)
        if quantile:  # an interval needs twice the requests of its value
            requests = max(requests, 2 * samples_needed(quantile))
    return StepRequirements(requests, precise)


@dataclass(slots=True)
class Stopping:
    """The rule for one measurement of a step."""

    plan: Plan
    workers: int
    base: StepPart | None  # the step that this one is compared with, None without one
    mirrored_s: float = 0.0  # how long its mirror image was measured; 0: as long as it takes
    rate: Throughput | None = None  # at the last check
    # the end of the warm-up at the check that ended the step, 0 for none; None before that
    warm_at_s: float | None = None
    _next_check: int = 0  # completions from which on the next check comes
    _extra_s: float = 0.0  # time that a part gets back, which its warm-up took

    @property
    def longest_s(self) -> float:
        """Seconds after which it ends.

        A part that warms up gets that time back, up to the longest time of the step.
        """
        plan = self.plan
        if plan.step_s:
            return plan.fixed_part_s
        if self.mirrored_s:
            return 2.0 * self.mirrored_s
        return min(plan.longest_s, plan.longest_part_s + self._extra_s)

    def decide(self, count: int, elapsed_s: float, read: ReadCompletions) -> Stop | None:
        """Return why to stop now; None to continue.

        count: of completions. elapsed_s: under load. read: called only when they are needed.
        """
        # a part whose length is known: it ends then, or when its mirror image has as much
        if self.plan.step_s:
            return Stop.FIXED if elapsed_s >= self.longest_s else None
        if self.mirrored_s:
            if elapsed_s >= self.longest_s:
                return Stop.LONGEST
            is_over = elapsed_s >= self.mirrored_s and self._will_suffice(read()[0])
            return Stop.MIRRORED if is_over else None

        # a part that takes as long as it needs
        if elapsed_s >= self.longest_s and not self._gets_more_time(elapsed_s, read):
            return Stop.LONGEST
        if count < self._next_check or elapsed_s < (self.plan.warmup_s or 0.0):
            return None
        completions, began_s = read()
        warm = cut_warm_up(completions, self.plan.warmup_s, began_s)
        stop = self._find_stop(count, warm, began_s=began_s, elapsed_s=elapsed_s)
        if stop is None:
            return None
        if elapsed_s < CAUSE_S and self._falls_short(warm.rest):
            # a second shows that a doubling fails, and too few requests to tell why
            self._postpone_check(count)
            return None
        if self.plan.warmup_s is None:
            self.warm_at_s = warm.cut_s if warm.share else 0.0
        return stop

    def _gets_more_time(self, elapsed_s: float, read: ReadCompletions) -> bool:
        """Return whether a part runs beyond its time: a warm-up took a share or still lasts."""
        plan = self.plan
        if plan.warmup_s is not None:
            return False
        completions, began_s = read()
        warm = cut_warm_up(completions, None, began_s)
        usual = warm.rest.with_slow_cycles_filled
        if not has_settled(warm) or may_still_change(usual, WARMING_CHANGE, WARMING_T_VALUE):
            self._extra_s = elapsed_s * CHECK_GROWTH - plan.longest_part_s
        elif warm.share:
            self._extra_s = max(self._extra_s, warm.cut_s - began_s)
        return elapsed_s < self.longest_s

    def _postpone_check(self, count: int) -> None:
        """Check next when there are a fifth more completions than these."""
        self._next_check = max(count + 1, math.ceil(count * CHECK_GROWTH))

    def _find_stop(
        self, count: int, warm: Warmup, *, began_s: float, elapsed_s: float
    ) -> Stop | None:
        """Return why the completions so far are enough, or will be; None where they are not."""
        plan = self.plan
        if plan.warmup_s is None and not self._began_steadily(warm, began_s):
            return None
        shortest_s = SHORTEST_STEP_S / PARTS + (plan.warmup_s or 0.0)
        required = requirements_of(plan, self.workers)
        if self._will_be_precise(warm, elapsed_s, shortest_s, required.requests):
            return Stop.PRECISE
        if elapsed_s < shortest_s:
            return None
        self._postpone_check(count)
        rate = throughput(warm.rest, self.workers, cautious=True)
        self.rate = rate if rate.enough else None
        has_enough = rate.enough and PARTS * rate.completions >= required.requests
        is_steady = has_settled(warm) and warm.share <= MOST_WARMUP
        if not (has_enough and is_steady) or may_still_change(warm.rest.with_slow_cycles_filled):
            return None
        if WIDTH_OF_BOTH * rate.relative <= plan.precision:
            return Stop.PRECISE
        if not required.precise and self._is_doubling_clear(rate, warm.rest):
            return Stop.DECIDED
        return None

    def _is_doubling_clear(self, rate: Throughput, completions: Completions) -> bool:
        """Return whether the ratio is decided, although neither of its steps is known precisely."""
        base = self.base
        relative = WIDTH_OF_BOTH * rate.relative
        if base is None or not base.throughput.enough or relative > MOST_TRUSTED_WIDTH:
            return False
        # one pair of parts: neither length nor time matters to its ratio
        part = StepPart(
            workers=self.workers,
            repeat=base.repeat,
            seconds=1.0,
            middle_s=0.0,
            throughput=rate,
            tail=find_slow(completions),
        )
        ratio = doubling_ratio(
            [base],
            [part],
            self.plan,
            confidence=TO_98_PERCENT,
            # not all that the second part will gain: it may well say something less clear
            width_factor=math.sqrt(WIDTH_OF_BOTH),
        )
        if ratio is None or ratio.kind is VerdictKind.INVALID:
            return False
        # unless it is the last, the rate must be good enough as the base of the next doubling
        margin = abs(math.log(ratio.value / ratio.wanted))
        return self.workers == self.plan.steps[-1] or relative <= MOST_BASE_SHARE * margin

    def _began_steadily(self, warm: Warmup, began_s: float) -> bool:
        """Return whether first requests took as long as later ones, or a warm-up would show.

        One cycle of each worker has no trend. A warm-up makes the first request longer than the
        next, or than those of the step before, as long as throughput follows.
        """
        if warm.share or warm.rest.fewest >= LEAST_LEFT_PER_WORKER:
            return True
        first_s = [times[0] - began_s for times in warm.rest.by_worker.values() if times]
        later_s = warm.rest.all_cycles
        if not later_s and self.base:
            later_s = [self.base.tail.usual_s]
        if not first_s or not any(later_s):
            return False
        ratio = statistics.fmean(first_s) / statistics.fmean(later_s)
        return abs(ratio - 1.0) <= POSSIBLE_CHANGE

    def _will_be_precise(
        self, warm: Warmup, elapsed_s: float, shortest_s: float, least_requests: int
    ) -> bool:
        """Return whether the requests in flight will make it precise if they scatter as before."""
        # with enough already the scatter is known well enough to be checked itself
        if warm.share or has_completed(
            warm.rest, self.workers, MIN_COMPLETIONS, MIN_COMPLETIONS_PER_WORKER
        ):
            return False
        count = warm.rest.total
        if count < 2 or not self._will_suffice(warm.rest):
            return False
        ended_s = elapsed_s + (elapsed_s - (self.plan.warmup_s or 0.0)) / warm.rest.fewest
        if PARTS * (count + self.workers) < least_requests or ended_s < shortest_s:
            return False
        # The largest relative scatter of cycles, so far and of the base. The standard deviation of
        # a few is too small by chance: its upper bound counts, wrong in one of twenty cases.
        spreads = []
        spread = relative_spread(warm.rest)
        if spread is not None:
            spreads.append(spread * spread_bound(len(warm.rest.all_cycles) - 1))
        if self.base and self.base.spread is not None:
            spreads.append(self.base.spread)
        if not spreads:
            return False
        relative = t95(count - 1) * max(spreads) / math.sqrt(count)
        return relative * WIDTH_OF_BOTH <= self.plan.precision

    def _falls_short(self, completions: Completions) -> bool:
        """Return whether throughput is below what is wanted, as far as is seen."""
        if self.base is None or not self.base.throughput.per_s:
            return False
        wanted = wanted_ratio(self.plan.scale, self.base.workers, self.workers)
        return 0.0 < completions.rate_under_load < wanted * self.base.throughput.per_s

    def _will_suffice(self, completions: Completions) -> bool:
        """Return whether completions suffice once the requests in flight have ended."""
        return has_completed(
            completions,
            self.workers,
            MIN_COMPLETIONS - self.workers,
            MIN_COMPLETIONS_PER_WORKER - 1,
        )

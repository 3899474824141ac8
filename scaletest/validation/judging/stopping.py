"""When a step has been measured enough.

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
from scaletest.validation.judging.doubling import doubling
from scaletest.validation.judging.drift import BATCHES, TREND_EFFECT, has_settled, may_rise
from scaletest.validation.judging.slow_requests import Tail, tail
from scaletest.validation.judging.step_parts import StepPart
from scaletest.validation.judging.throughput import (
    MIN_COMPLETIONS,
    MIN_COMPLETIONS_PER_WORKER,
    Throughput,
    completed,
    relative_spread,
    throughput,
)
from scaletest.validation.judging.warm_up import LEFT_PER_WORKER, Warmup, cut_warm_up
from scaletest.validation.plan import Plan

# The way up and the way down, and the factor of both together on the width of an interval.
PARTS = 2
NARROWER = 1.0 / math.sqrt(PARTS)
# Shorter steps would be at the mercy of one scheduling delay, however many requests they hold.
SHORTEST_STEP_S = 2.0
LOOK_GROWTH = 1.2
# A part whose doubling fails goes on for so long, so that the cause is known too.
CAUSE_S = 3.0
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
# Measures whose thresholds need the plan's precision.
RATES = ("ratio", "efficiency", "throughput", "contention", "coherency")


class Stop(StrEnum):
    """Why a step's measuring ended."""

    DECIDED = "decided"
    PRECISE = "precise"
    FIXED = "fixed time"
    LONGEST = "longest step"
    MIRRORED = "as long as before"
    FAILURES = "failures"
    ENDED = "ended early"


@dataclass(frozen=True, slots=True)
class StepRequirements:
    """Requirements of a step."""

    requests: int  # that must be counted
    precise: bool  # whether the step must go on to the plan's precision


def requirements_of(plan: Plan, workers: int) -> StepRequirements:
    """Return the requirements of the thresholds for the step with that many workers."""
    requests, precise = 0, False
    for text in plan.thresholds:
        threshold = parse_step_threshold(text, plan.steps)
        measure, named = threshold.measure, threshold.workers
        # a threshold uses a step by its name, by naming none, or as the base of what it names
        used = {named}
        if named is None:
            used = {workers}
        elif measure == "ratio":
            used.add(plan.steps[max(0, plan.steps.index(named) - 1)])
        elif measure == "efficiency":
            used.add(plan.steps[0])
        if workers not in used:
            continue
        precise = precise or measure in RATES
        quantile = PERCENTILES.get(measure.partition(".")[2])
        if measure == "drift":  # two of each worker in every batch of each part
            requests = max(requests, 2 * BATCHES * workers * PARTS)
        elif quantile:  # an interval needs twice the requests of its value
            requests = max(requests, 2 * samples_needed(quantile))
    return StepRequirements(requests, precise)


@dataclass(slots=True)
class Stopping:
    """The rule for one measurement of a step."""

    plan: Plan
    workers: int
    # the measurement of the step that this one is compared with, None without one
    before: StepPart | None
    # whether no later step is compared with this one
    last: bool
    # how long it is measured, as its mirror image is or will be; 0: as long as it takes
    length_s: float = 0.0
    next_look: int = 0
    # throughput at the last check
    rate: Throughput | None = None
    # the end of the warm-up at the check that ended the step, 0 for none; None before that
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
        self, count: int, elapsed_s: float, course: Callable[[], tuple[Completions, float]]
    ) -> Stop | None:
        """Return why to stop now; None to go on.

        count: of completions. course: returns them and the beginning in s, called only when they
        are needed.
        """
        plan = self.plan
        if elapsed_s >= self.longest_s and not self._warms_up(elapsed_s, course):
            return Stop.FIXED if plan.step_s else Stop.LONGEST
        if plan.step_s or count < self.next_look:
            return None
        if self.length_s:
            # after the mirror image's length, but not before requests in flight are enough
            if elapsed_s < self.length_s:
                return None
            return Stop.MIRRORED if self._suffices_with_those_in_flight(course()[0]) else None
        warmup_s = plan.warmup_s or 0.0
        if elapsed_s < warmup_s:
            return None

        # whether the completions so far are enough
        completions, began_s = course()
        warm = cut_warm_up(completions, plan.warmup_s, began_s)
        if plan.warmup_s is None and not self._began_steadily(warm, began_s):
            return None
        shortest_s = SHORTEST_STEP_S / PARTS + warmup_s
        stop = self._foresee(warm, elapsed_s, shortest_s)
        if not stop and elapsed_s >= shortest_s:
            self.next_look = max(count + 1, math.ceil(count * LOOK_GROWTH))
            stop = self._judge(warm)
        if stop and elapsed_s < CAUSE_S and self._falls_short(warm.rest):
            # a second shows that a doubling fails, and too few requests to tell why
            self.next_look = max(count + 1, math.ceil(count * LOOK_GROWTH))
            return None
        if stop and plan.warmup_s is None:
            self.warm_at_s = warm.cut_s if warm.share else 0.0
        return stop

    def _warms_up(self, elapsed_s: float, course: Callable[[], tuple[Completions, float]]) -> bool:
        """Return whether a part goes on beyond its time: a warm-up took a share or still lasts."""
        plan = self.plan
        if plan.step_s or self.length_s or plan.warmup_s is not None:
            return False
        completions, began_s = course()
        warm = cut_warm_up(completions, None, began_s)
        if not has_settled(warm) or may_rise(warm.rest.usual, WARMING, WARMING_T):
            self._warm_s = elapsed_s * LOOK_GROWTH - plan.longest_part_s
        elif warm.share:
            self._warm_s = max(self._warm_s, warm.cut_s - began_s)
        return elapsed_s < self.longest_s

    def _began_steadily(self, warm: Warmup, began_s: float) -> bool:
        """Return whether first requests took as long as later ones, or there is enough to show a
        warm-up.

        One cycle of each worker has no trend. A warm-up makes the first request longer than the
        next, or than those of the step before, as long as throughput follows.
        """
        if warm.share or warm.rest.fewest >= LEFT_PER_WORKER:
            return True
        first = [times[0] - began_s for times in warm.rest.by_worker.values() if times]
        later = warm.rest.all_cycles
        if not later and self.before:
            later = [self.before.tail.usual_s]
        if not first or not any(later):
            return False
        return abs(statistics.fmean(first) / statistics.fmean(later) - 1.0) <= TREND_EFFECT

    def _foresee(self, warm: Warmup, elapsed_s: float, shortest_s: float) -> Stop | None:
        """Stop when the requests in flight will make it precise, if they scatter as before."""
        # with enough already the scatter is known well enough to be checked itself
        if warm.share or completed(
            warm.rest, self.workers, MIN_COMPLETIONS, MIN_COMPLETIONS_PER_WORKER
        ):
            return None
        if not self._suffices_with_those_in_flight(warm.rest):
            return None
        count = warm.rest.total
        required = requirements_of(self.plan, self.workers)
        ended_s = elapsed_s + (elapsed_s - (self.plan.warmup_s or 0.0)) / warm.rest.fewest
        if PARTS * (count + self.workers) < required.requests or ended_s < shortest_s:
            return None
        # The largest relative scatter of cycles, so far and of the base. The standard deviation of
        # a few is too small by chance: its upper bound counts, wrong in one of twenty cases.
        spreads = []
        own = relative_spread(warm.rest)
        if own is not None:
            spreads.append(own * spread_bound(len(warm.rest.all_cycles) - 1))
        if self.before and self.before.spread is not None:
            spreads.append(self.before.spread)
        if not spreads or count < 2:
            return None
        relative = t95(count - 1) * max(spreads) / math.sqrt(count)
        return Stop.PRECISE if relative * NARROWER <= self.plan.precision else None

    def _falls_short(self, completions: Completions) -> bool:
        """Return whether throughput is below what is wanted, as far as is seen."""
        if self.before is None or not self.before.throughput.per_s:
            return False
        wanted: float = self.plan.scale ** math.log2(self.workers / self.before.workers)
        return 0.0 < completions.rate_together < wanted * self.before.throughput.per_s

    def _suffices_with_those_in_flight(self, completions: Completions) -> bool:
        """Return whether completions suffice once the requests in flight have ended."""
        return completed(
            completions,
            self.workers,
            MIN_COMPLETIONS - self.workers,
            MIN_COMPLETIONS_PER_WORKER - 1,
        )

    def _judge(self, warm: Warmup) -> Stop | None:
        """Return why the completions so far are enough; None where they are not."""
        rate = throughput(warm.rest, self.workers, cautious=True)
        self.rate = rate if rate.enough else None
        required = requirements_of(self.plan, self.workers)
        if not rate.enough or PARTS * rate.completions < required.requests:
            return None
        if not has_settled(warm) or warm.share > MOST_WARMUP or may_rise(warm.rest.usual):
            return None
        relative = NARROWER * rate.relative
        if relative <= self.plan.precision:
            return Stop.PRECISE
        early = not required.precise and relative <= ROUGH
        return Stop.DECIDED if early and self._decides(rate, tail(warm.rest)) else None

    def _decides(self, rate: Throughput, slow: Tail) -> bool:
        """Return whether the doubling is clear, and the rate good enough as the next one's base."""
        if self.before is None or not self.before.throughput.enough:
            return False
        own = StepPart(
            self.workers, self.before.repeat, seconds=1.0, at_s=0.0, throughput=rate, tail=slow
        )
        narrower = math.sqrt(NARROWER)  # the part to come may well say something less clear
        ratio = doubling([self.before], [own], self.plan, wider=WIDER, narrower=narrower)
        if ratio is None or ratio.kind is VerdictKind.INVALID:
            return False
        margin = abs(math.log(ratio.value / ratio.wanted))
        return self.last or NARROWER * rate.relative <= BASE_SHARE * margin

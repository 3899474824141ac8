"""When a step has been measured enough. Pure: it gets the completions and the time, and decides.

Checking again and again until an interval is narrow, or a ratio clear, makes both look better than
they are. Four rules limit that: checks come only when a fifth more was completed than at the last
one; they take the correlation of successive requests two standard errors higher than estimated; a
ratio counts as decided while measuring only when one end in a hundred would be wrong (the verdict
itself allows one in twenty); and nothing counts while throughput still rises or falls, or while
warm-up fills 40 % of the step.

A step of a mirrored run is measured in two parts, on the way up and on the way down. The first ends
when twice as much of the same would suffice; the second is as long as the first. The requests in
flight when a part ends still finish and count, so a part of steady requests ends when these will
make it precise.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scaletest.analysis.completions import Ends, after
from scaletest.analysis.doubling import StepPart, doubling
from scaletest.analysis.drift import TREND_EFFECT, rising
from scaletest.analysis.ratio import Ratio
from scaletest.analysis.student_t import spread_bound, t95
from scaletest.analysis.tails import Tail, tail, usual
from scaletest.analysis.threshold_requirements import requirements_of
from scaletest.analysis.throughput import (
    MIN_COMPLETIONS_PER_WORKER,
    Throughput,
    completed,
    cycles,
    least_per_worker,
    least_total,
    relative_spread,
    throughput,
)
from scaletest.analysis.warmup import Warmup, agreed, cut
from scaletest.model import Plan, VerdictKind

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

        A part of a mirrored step that warms up gets that time back, up to the longest time of the
        step.
        """
        plan = self.plan
        if plan.step_s:
            return plan.fixed_part_s
        if self.length_s:
            return 2.0 * self.length_s
        return min(plan.longest_s, plan.longest_part_s + self._warm_s)

    @property
    def _narrower(self) -> float:
        """The factor on the width of an interval from the parts that are still to be measured."""
        return 1.0 / math.sqrt(self.plan.parts)

    def look(
        self, completions: int, elapsed_s: float, ends: Callable[[], tuple[Ends, float]]
    ) -> Stop | None:
        """Whether to stop now.

        ends: returns the completions and the beginning in s, called only when they are needed.
        """
        plan = self.plan
        if elapsed_s >= self.longest_s and not self._warms_up(elapsed_s, ends):
            if plan.step_s:
                return Stop.FIXED
            return Stop.LONGEST
        if plan.step_s or completions < self.next_look:
            return None
        if self.length_s:
            return self._mirrored(elapsed_s, ends)
        warmup_s = plan.warmup_s or 0.0
        shortest_s = SHORTEST_STEP_S / plan.parts + warmup_s
        if elapsed_s < warmup_s or (plan.parts == 1 and elapsed_s < shortest_s):
            return None
        return self._check(completions, elapsed_s, shortest_s, ends())

    def _check(
        self, completions: int, elapsed_s: float, shortest_s: float, measured: tuple[Ends, float]
    ) -> Stop | None:
        """Whether the completions so far are enough. measured: completions and the beginning."""
        plan = self.plan
        completed_by, began_s = measured
        warm = trimmed(completed_by, plan.warmup_s, began_s)
        if plan.parts > 1 and plan.warmup_s is None and not self._began_steadily(warm, began_s):
            return None
        stop = self._foreseen(warm, elapsed_s, shortest_s)
        if not stop and elapsed_s >= shortest_s:
            self.next_look = max(completions + 1, math.ceil(completions * LOOK_GROWTH))
            stop = self._judge(warm)
        if stop and plan.warmup_s is None:
            self.warm_at_s = 0.0
            if warm.share:
                self.warm_at_s = warm.cut_s
        return stop

    def _warms_up(self, elapsed_s: float, ends: Callable[[], tuple[Ends, float]]) -> bool:
        """Whether a part goes on beyond its time, since a warm-up took a share or still lasts."""
        plan = self.plan
        if plan.parts == 1 or plan.step_s or self.length_s or plan.warmup_s is not None:
            return False
        completed_by, began_s = ends()
        warm = trimmed(completed_by, None, began_s)
        if not warm.settled or rising(usual(warm.ends), WARMING, WARMING_T):
            self._warm_s = elapsed_s * LOOK_GROWTH - plan.longest_part_s
        elif warm.share:
            self._warm_s = max(self._warm_s, warm.cut_s - began_s)
        return elapsed_s < self.longest_s

    def _mirrored(self, elapsed_s: float, ends: Callable[[], tuple[Ends, float]]) -> Stop | None:
        """Stop after the mirror image's length, but not before requests in flight are enough."""
        if elapsed_s < self.length_s:
            return None
        parts = self.plan.parts
        least = least_per_worker(parts) - 1
        if completed(ends()[0], self.workers, least_total(parts) - self.workers, least):
            return Stop.MIRRORED
        return None

    def _began_steadily(self, warm: Warmup, began_s: float) -> bool:
        """Whether first requests took as long as later ones, or there is enough to show a warm-up.

        One cycle of each worker has no trend. A warm-up makes the first request longer than the
        next, or than those of the step before, as long as throughput follows.
        """
        fewest = min(map(len, warm.ends.values()), default=0)
        if warm.share or fewest >= MIN_COMPLETIONS_PER_WORKER:
            return True
        first = [times[0] - began_s for times in warm.ends.values() if times]
        later = list(itertools.chain.from_iterable(map(cycles, warm.ends.values())))
        usual_s = 0.0
        if later:
            usual_s = statistics.fmean(later)
        elif self.before:
            usual_s = self.before.tail.usual_s
        if not first or usual_s <= 0:
            return False
        return abs(statistics.fmean(first) / usual_s - 1.0) <= TREND_EFFECT

    def _foreseen(self, warm: Warmup, elapsed_s: float, shortest_s: float) -> Stop | None:
        """Stop when the requests in flight will make it precise, if they scatter as before."""
        parts = self.plan.parts
        if parts == 1 or warm.share or not self._about_to_suffice(warm.ends):
            return None
        counts = [len(times) for times in warm.ends.values()]
        count = sum(counts)
        required = requirements_of(self.plan, self.workers)
        ended_s = elapsed_s + (elapsed_s - (self.plan.warmup_s or 0.0)) / min(counts)
        if parts * (count + self.workers) < required.requests or ended_s < shortest_s:
            return None
        spread = self._largest_spread(warm.ends)
        if spread is None or count < 2:
            return None
        relative = t95(count - 1) * spread / math.sqrt(count)
        if relative * self._narrower <= self.plan.precision:
            return Stop.PRECISE
        return None

    def _about_to_suffice(self, ends: Ends) -> bool:
        """Whether completions suffice only with the requests in flight.

        With enough already the scatter is known well enough to be checked itself.
        """
        total, each = least_total(self.plan.parts), least_per_worker(self.plan.parts)
        if completed(ends, self.workers, total, each):
            return False
        return completed(ends, self.workers, total - self.workers, each - 1)

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
        parts = self.plan.parts
        rate = throughput(warm.ends, self.workers, parts=parts, cautious=True)
        self.rate = None
        if rate.enough:
            self.rate = rate
        required = requirements_of(self.plan, self.workers)
        if not rate.enough or parts * rate.completions < required.requests:
            return None
        if not warm.settled or warm.share > MOST_WARMUP or rising(usual(warm.ends)):
            return None
        relative = self._narrower * rate.relative
        if relative <= self.plan.precision:
            return Stop.PRECISE
        early = not required.precise and relative <= ROUGH
        if early and self._decided(rate, tail(warm.ends)):
            return Stop.DECIDED
        return None

    def _decided(self, rate: Throughput, slow: Tail) -> bool:
        if self.before is None or not self.before.throughput.enough:
            return False
        own = StepPart(self.workers, self.before.repeat, 1.0, 0.0, rate, slow)
        narrower = math.sqrt(self._narrower)  # the part to come may well say something less clear
        ratio = doubling([self.before], [own], self.plan, wider=WIDER, narrower=narrower)
        if ratio is None or ratio.kind is VerdictKind.INVALID:
            return False
        return self.last or self._narrower * rate.relative <= BASE_SHARE * _margin(ratio)


def _margin(ratio: Ratio) -> float:
    return abs(math.log(ratio.value / ratio.wanted))

"""When a step has been measured enough. Pure: it is told the completions and the time, and says stop or go on.

Looking again and again until an interval is narrow, or a ratio clear, makes both look better than they are. Four things
hold that in bounds: looks come only when a fifth more was completed than at the last; they take the correlation of
successive requests two standard errors higher than seen; a ratio counts as decided while measuring only when one end in
a hundred would be wrong (the verdict itself takes one in twenty); and nothing counts while throughput still rises or
falls, or while warm-up fills 40 % of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scaletest.analysis.demand import demand
from scaletest.analysis.drift import rising
from scaletest.analysis.ratio import Ratio, ratio
from scaletest.analysis.series import Ends, after
from scaletest.analysis.throughput import Throughput, throughput
from scaletest.analysis.warmup import Warmup, agreed, cut
from scaletest.model import Plan, VerdictKind

# Shorter steps would be at the mercy of one scheduling delay, however many requests they hold.
SHORTEST_STEP_S = 2.0
LOOK_GROWTH = 1.2
# 2.326 / 1.960: from the half-width of a two-sided 95 % interval to that of a 98 % one, 1 % at each end.
WIDER = 1.187
# An interval wider than this comes from too little data to be trusted, whatever it decides.
ROUGH = 0.10
# While more than this part of a step is warm-up it may not have ended yet.
MOST_WARMUP = 0.4
# A step that is the base of another doubling keeps its share of the error within the margin: 1 / sqrt(2).
BASE_SHARE = 0.4


class Stop(StrEnum):
    """Why a step's measuring ended."""

    DECIDED = "decided"
    PRECISE = "precise"
    FIXED = "fixed time"
    LONGEST = "longest step"
    FAILURES = "failures"
    ENDED = "ended early"


def trimmed(ends: Ends, warmup_s: float | None, began_s: float, warm_at_s: float | None = None) -> Warmup:
    """The completions without the warm-up: `warmup_s` seconds from `began_s` when given, else what MSER-5 finds.

    warm_at_s: what it found when the step was ended for that, see `Stopping.warm_at_s`.
    """
    if warmup_s is None:
        return cut(ends) if warm_at_s is None else agreed(ends, warm_at_s)
    cut_s = began_s + warmup_s
    return Warmup(after(ends, cut_s), cut_s, 0.0, True)


@dataclass(slots=True)
class Stopping:
    """The rule for one step. before: throughput of the step that this one is compared with, None for the first.

    last: whether no later step is compared with this one. seen: throughput at the last look.
    warm_at_s: where the look that ended the step saw the warm-up's end, 0 for none; None while no look has.
    """

    plan: Plan
    workers: int
    before: tuple[int, Throughput] | None
    last: bool
    next_look: int = 0
    seen: Throughput | None = None
    warm_at_s: float | None = None

    @property
    def longest_s(self) -> float:
        """Seconds after which the step ends; with a fixed time that and the first request, which only warms up."""
        return self.plan.step_s + self.plan.seconds if self.plan.step_s else self.plan.longest_s

    def look(self, completions: int, elapsed_s: float, ends: Callable[[], tuple[Ends, float]]) -> Stop | None:
        """Whether to stop now; `ends` gives the completions and the beginning, asked for only when it is time."""
        plan = self.plan
        if plan.step_s:
            return Stop.FIXED if elapsed_s >= self.longest_s else None
        if elapsed_s >= self.longest_s:
            return Stop.LONGEST
        if elapsed_s < SHORTEST_STEP_S + (plan.warmup_s or 0.0) or completions < self.next_look:
            return None
        self.next_look = max(completions + 1, math.ceil(completions * LOOK_GROWTH))
        found, began_s = ends()
        warm = trimmed(found, plan.warmup_s, began_s)
        stop = self._judge(warm)
        if stop and plan.warmup_s is None:
            self.warm_at_s = warm.cut_s if warm.share else 0.0
        return stop

    def _judge(self, warm: Warmup) -> Stop | None:
        rate = throughput(warm.ends, self.workers, cautious=True)
        self.seen = rate if rate.enough else None
        if not rate.enough or not warm.settled or warm.share > MOST_WARMUP or rising(warm.ends):
            return None
        wanted = demand(self.plan, self.workers)
        if rate.completions < wanted.requests:
            return None
        if rate.relative <= self.plan.precision:
            return Stop.PRECISE
        early = not wanted.precise and rate.relative <= ROUGH
        return Stop.DECIDED if early and self._decided(rate) else None

    def _decided(self, rate: Throughput) -> bool:
        if self.before is None or not self.before[1].enough:
            return False
        found = ratio(self.before, (self.workers, rate), self.plan.scale, WIDER)
        if found is None or found.kind is VerdictKind.INVALID:
            return False
        return self.last or rate.relative <= BASE_SHARE * _margin(found)


def _margin(found: Ratio) -> float:
    return abs(math.log(found.value / found.wanted))

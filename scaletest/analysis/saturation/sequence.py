"""The course of a run: probe, search, operating point. Told each step as it is assessed, it says what comes next.

A stored run goes through the same course again, so that what it says never differs from what was decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from scaletest.analysis.saturation.exceedance import Exceedance
from scaletest.analysis.saturation.search import search
from scaletest.analysis.saturation.step import Assessed
from scaletest.analysis.saturation.trial import Bracket, Probe, Search, Trial
from scaletest.model.saturation import Mode, Phase, SaturationPlan

# Without a first level open load begins at what one connection did in the probe, and a little lower to be safe.
PROBED_SHARE = 0.5
UNPROBED_RATE = 10.0
LEAST_RATE = 1.0
# A level whose latency limit is undecided is measured longer, this many times the length of a step at most.
LONGEST = 4
# A step in which the tester was late says nothing; so often it is measured again before the level is given up.
MOST_AGAIN = 2
# After so many steps in a row in which nothing succeeded the service is gone: a search would only follow it down.
GONE = 3
REFUSED = {"refused"}


class SaturationSequence:
    """Follows a plan. `next` is None when nothing is left to measure. spoilt: steps in which the tester stayed late.

    strayed: the first step of a stored run that these rules would not have measured, None when all follow them.
    gone: how the service was lost, "" as long as it was not: too much load is no such thing, so it counts only where
    nothing listened, or where the level is none above one that held.
    """

    def __init__(self, plan: SaturationPlan) -> None:
        self.plan = plan
        self.steps: list[Assessed] = []
        self.bracket: Bracket | None = None
        self.warm: Assessed | None = None
        self.operating: Assessed | None = None
        self._search: Search | None = None
        self.next: Probe | None = None
        self.spoilt: list[Assessed] = []
        self.strayed: Assessed | None = None
        self.gone = ""
        self._again = self._dead = 0
        self._pieces = 1
        self._exceeded: dict[float, Exceedance] = {}
        self._held = 0.0
        if plan.warm_s:
            self.next = Probe(1.0, Phase.WARM)
        else:
            self._begin()

    def tell(self, found: Assessed) -> None:
        """The step that `next` asked for was measured."""
        found = self._joined(found)
        self.steps.append(found)
        if self.next is None or self._lost(found) or self._once_more(found) or self._longer(found):
            return
        if self.next.phase is Phase.WARM:
            self.warm = found
            self._begin()
        elif self.next.phase is Phase.OPERATE:
            self.operating, self.next = found, None
        else:
            assert self._search is not None
            trial = Trial(
                self.next.level,
                bool(found.saturated),
                found.goodput.value,
                bool(found.tester),
                found.growth,
                bool(found.saturated) and not found.overload,
                bool(found.undecided),
            )
            try:
                self.next = self._search.send(trial)
            except StopIteration as stop:
                self._end(stop.value)

    def _lost(self, found: Assessed) -> bool:
        """Whether the service is gone: then nothing more is measured."""
        assert self.next is not None
        phase, level = self.next.phase, self.next.level
        if phase is Phase.WARM:
            return False
        # the operating point lies below what held, in another unit perhaps
        last = phase is Phase.OPERATE
        counts = last or level <= self._held or set(found.errors) <= REFUSED
        dead = bool(found.errors) and found.success == 0 and counts
        self._dead = self._dead + 1 if dead else 0
        if not (found.saturated or found.tester or last):
            self._held = max(self._held, level)
        if self._dead >= GONE or (dead and last):
            kinds = ", ".join(found.errors)
            times = f"{GONE} steps in a row" if self._dead >= GONE else "the last step"
            self.gone, self.next = f"the service is gone: nothing succeeded in {times} ({kinds})", None
        return bool(self.gone)

    def _once_more(self, found: Assessed) -> bool:
        """Whether the same step is measured again."""
        self._again = self._again + 1 if found.tester else 0
        if 0 < self._again <= MOST_AGAIN:
            return True
        self._again = 0
        if found.tester:
            self.spoilt.append(found)
        return False

    def _joined(self, found: Assessed) -> Assessed:
        """The step, with what all steps at its level say of the latency limit, as far as the tester was in time."""
        if self.next is None or found.alone is None or self.next.phase in (Phase.WARM, Phase.OPERATE) or found.tester:
            return found
        before = self._exceeded.get(self.next.level)
        joined = self._exceeded[self.next.level] = before + found.alone if before else found.alone
        return replace(found, exceeded=joined)

    def _longer(self, found: Assessed) -> bool:
        """Whether the level is measured on, since more requests may decide whether its latency limit holds."""
        assert self.next is not None
        may = False
        if found.undecided and found.exceeded and found.alone and self.next.phase is not Phase.OPERATE:
            left = LONGEST - self._pieces
            may = left > 0 and not found.tester and found.exceeded.decidable(left * found.alone.count)
        self._pieces = self._pieces + 1 if may else 1
        return may

    @property
    def usual_s(self) -> float:
        """What one request alone took on average in the probe; 0 when that is unknown."""
        return self.warm.latency.mean or 0.0 if self.warm else 0.0

    def _begin(self) -> None:
        self._search = search(self.plan, self._start())
        self.next = next(self._search)

    def _start(self) -> float:
        if self.plan.start:
            return self.plan.start
        if not self.plan.open or self.warm is None or not self.warm.goodput.value:
            return 1.0 if not self.plan.open else UNPROBED_RATE
        return max(LEAST_RATE, PROBED_SHARE * self.warm.goodput.value)

    def _end(self, bracket: Bracket) -> None:
        """The operating point is an open load, also after closed ones: a rate is what a service must be given."""
        self.bracket, self.next = bracket, None
        rate = self.capacity
        if rate and self.plan.mode == Mode.SEARCH:
            self.next = Probe(self.plan.share * rate, Phase.OPERATE)

    @property
    def capacity(self) -> float | None:
        """The saturation point in requests a second, None when there is none yet."""
        if self.bracket is None or self.bracket.low is None:
            return None
        return self.bracket.low if self.plan.open else self.bracket.plateau_per_s


def replay(plan: SaturationPlan, steps: Sequence[Assessed]) -> SaturationSequence:
    """The course after these steps, in their order. Another version may have decided otherwise: `strayed` says so."""
    course = SaturationSequence(plan)
    for one in steps:
        wanted = course.next
        follows = wanted is not None and wanted.phase == one.step.phase and same(wanted.level, one.step.level)
        if course.strayed is None and not follows:
            course.strayed = one
        if course.strayed is None:
            course.tell(one)
        else:
            course.steps.append(one)
    return course


def same(one: float, other: float) -> bool:
    """Whether two levels are one: another machine's powers and roots may differ in the last digit."""
    return math.isclose(one, other, rel_tol=1e-6)


def searched(course: SaturationSequence) -> list[Assessed]:
    """The steps at the levels of the search, without probe and operating point."""
    return [one for one in course.steps if one.step.phase not in (Phase.WARM, Phase.OPERATE)]


def at_level(course: SaturationSequence, level: float) -> list[Assessed]:
    """The steps of a level in which the tester was in time."""
    return [one for one in searched(course) if same(one.step.level, level) and not one.tester]

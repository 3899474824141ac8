"""The sequence of steps of a run: probe, search, operating point.

A stored run goes through the same sequence again, so that its report never differs from what was
decided.
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

# Without a planned first level open load begins at this part of one connection's rate in the probe.
PROBED_SHARE = 0.5
UNPROBED_RATE = 10.0
LEAST_RATE = 1.0
# A level with an undecided latency limit is measured longer, at most this many lengths of a step.
LONGEST = 4
# A step in which the tester was late shows nothing; it is measured again this often at most.
MOST_AGAIN = 2
# After this many steps in a row without a success the service is gone: a search would only go down.
GONE = 3
REFUSED = {"refused"}


class SaturationSequence:
    """Follows a plan. `next` is None when nothing is left to measure.

    spoilt: steps in which the tester stayed late. strayed: the first step of a stored run that
    these rules would not have measured, None when all follow them. gone: how the service was lost,
    "" as long as it was not. Too much load does not count as lost, so it counts only where nothing
    listened, or where the level is not above one that held.
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

    def tell(self, step: Assessed) -> None:
        """Take the step that `next` asked for, measured, and choose the next."""
        step = self._joined(step)
        self.steps.append(step)
        if self.next is None or self._lost(step) or self._once_more(step) or self._longer(step):
            return
        if self.next.phase is Phase.WARM:
            self.warm = step
            self._begin()
        elif self.next.phase is Phase.OPERATE:
            self.operating, self.next = step, None
        else:
            assert self._search is not None
            trial = Trial(
                self.next.level,
                bool(step.saturated),
                step.goodput.value,
                bool(step.tester),
                step.growth,
                bool(step.saturated) and not step.overload,
                bool(step.undecided),
            )
            try:
                self.next = self._search.send(trial)
            except StopIteration as stop:
                self._end(stop.value)

    def _lost(self, step: Assessed) -> bool:
        """Whether the service is gone: then nothing more is measured."""
        assert self.next is not None
        phase = self.next.phase
        if phase is Phase.WARM:
            return False
        last = phase is Phase.OPERATE
        self._dead = self._dead + 1 if self._is_dead(step) else 0
        if not (step.saturated or step.tester or last):
            self._held = max(self._held, self.next.level)
        times = ""
        if self._dead >= GONE:
            times = f"{GONE} steps in a row"
        elif self._dead and last:
            times = "the last step"
        if times:
            kinds = ", ".join(step.errors)
            self.gone = f"the service is gone: nothing succeeded in {times} ({kinds})"
            self.next = None
        return bool(self.gone)

    def _is_dead(self, step: Assessed) -> bool:
        """Whether nothing succeeded in a step whose load is not the reason."""
        assert self.next is not None
        if not step.errors or step.success != 0:
            return False
        # the operating point lies below the level that held, in another unit perhaps
        bearable = self.next.phase is Phase.OPERATE or self.next.level <= self._held
        return bearable or set(step.errors) <= REFUSED

    def _once_more(self, step: Assessed) -> bool:
        """Whether the same step is measured again, since the tester was late."""
        self._again = self._again + 1 if step.tester else 0
        if 0 < self._again <= MOST_AGAIN:
            return True
        self._again = 0
        if step.tester:
            self.spoilt.append(step)
        return False

    def _joined(self, step: Assessed) -> Assessed:
        """The step with the excess over the latency limit in all steps at its level, if in time."""
        if (
            self.next is None
            or step.alone is None
            or self.next.phase in (Phase.WARM, Phase.OPERATE)
            or step.tester
        ):
            return step
        before = self._exceeded.get(self.next.level)
        joined = self._exceeded[self.next.level] = before + step.alone if before else step.alone
        return replace(step, exceeded=joined)

    def _longer(self, step: Assessed) -> bool:
        """Whether the level is measured on, since more requests may decide its latency limit."""
        assert self.next is not None
        may = False
        if step.undecided and step.exceeded and step.alone and self.next.phase is not Phase.OPERATE:
            left = LONGEST - self._pieces
            may = left > 0 and not step.tester and step.exceeded.decidable(left * step.alone.count)
        self._pieces = self._pieces + 1 if may else 1
        return may

    @property
    def usual_s(self) -> float:
        """Mean latency of one request alone in the probe, in s; 0 when that is unknown."""
        if self.warm:
            return self.warm.latency.mean or 0.0
        return 0.0

    def _begin(self) -> None:
        self._search = search(self.plan, self._start())
        self.next = next(self._search)

    def _start(self) -> float:
        if self.plan.start:
            return self.plan.start
        if not self.plan.open or self.warm is None or not self.warm.goodput.value:
            if not self.plan.open:
                return 1.0
            return UNPROBED_RATE
        return max(LEAST_RATE, PROBED_SHARE * self.warm.goodput.value)

    def _end(self, bracket: Bracket) -> None:
        """End the search and choose the operating point.

        It is an open load, also after a closed search, since a rate is what a service must be
        given.
        """
        self.bracket, self.next = bracket, None
        rate = self.capacity
        if rate and self.plan.mode == Mode.SEARCH:
            self.next = Probe(self.plan.share * rate, Phase.OPERATE)

    @property
    def capacity(self) -> float | None:
        """The saturation point in requests a second, None when there is none yet."""
        if self.bracket is None or self.bracket.low is None:
            return None
        if self.plan.open:
            return self.bracket.low
        return self.bracket.plateau_per_s


def replay(plan: SaturationPlan, steps: Sequence[Assessed]) -> SaturationSequence:
    """The sequence after these steps, in their order.

    Another version may have decided otherwise: `strayed` is then the first such step.
    """
    course = SaturationSequence(plan)
    for step in steps:
        wanted = course.next
        follows = (
            wanted is not None
            and wanted.phase == step.step.phase
            and same(wanted.level, step.step.level)
        )
        if course.strayed is None and not follows:
            course.strayed = step
        if course.strayed is None:
            course.tell(step)
        else:
            course.steps.append(step)
    return course


def same(level: float, other: float) -> bool:
    """Whether two levels are equal: powers and roots of another machine may differ slightly."""
    return math.isclose(level, other, rel_tol=1e-6)


def searched(course: SaturationSequence) -> list[Assessed]:
    """The steps at the levels of the search, without probe and operating point."""
    return [step for step in course.steps if step.step.phase not in (Phase.WARM, Phase.OPERATE)]


def at_level(course: SaturationSequence, level: float) -> list[Assessed]:
    """The steps of a level in which the tester was in time."""
    return [step for step in searched(course) if same(step.step.level, level) and not step.tester]

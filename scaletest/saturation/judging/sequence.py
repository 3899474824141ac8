"""The sequence of steps of a run: probe, search, operating point.

A stored run goes through the same sequence again, so that its report never differs from what was
decided.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from scaletest.saturation.judging.bracket import Bracket, Probe, Search, Trial
from scaletest.saturation.judging.closed_search import closed_search
from scaletest.saturation.judging.exceedance import Exceedance
from scaletest.saturation.judging.open_search import open_search
from scaletest.saturation.judging.step import Assessed
from scaletest.saturation.plan import Phase, SaturationPlan

# The operating point, as a part of the saturation point: services run considerably better there.
OPERATING_SHARE = 0.7
# It is measured for this many lengths of a step.
OPERATING_STEPS = 2
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
# Errors of a service that is not there, however little load it has.
REFUSED = {"refused"}
# Phases that are no part of the search.
OUTSIDE = (Phase.WARM, Phase.OPERATE)


class SaturationSequence:
    """Follows a plan: is told each step that was measured, and chooses the next."""

    def __init__(self, plan: SaturationPlan) -> None:
        self.plan = plan
        self.steps: list[Assessed] = []
        self.bracket: Bracket | None = None
        self.warm: Assessed | None = None
        self.operating: Assessed | None = None
        self.next: Probe | None = None  # None when nothing is left to measure
        self.spoilt: list[Assessed] = []  # steps in which the tester stayed late
        # the first step of a stored run that these rules would not have measured
        self.strayed: Assessed | None = None
        self.gone = ""  # how the service was lost, "" as long as it was not
        self._search: Search | None = None
        self._again = 0  # how often in a row the step was measured again
        self._dead = 0  # steps in a row in which the service seemed gone
        self._pieces = 1  # lengths of a step at this level
        self._exceeded: dict[float, Exceedance] = {}  # by level
        self._held = 0.0  # the highest level that did
        if plan.warm_s:
            self.next = Probe(1.0, Phase.WARM)
        else:
            self._begin()

    def tell(self, step: Assessed) -> None:
        """Take the step that `next` asked for, measured, and choose the next."""
        probe = self.next
        if probe is None:
            self.steps.append(step)
            return
        if step.alone is not None and probe.phase not in OUTSIDE and not step.tester:
            # all steps at a level decide about its latency limit together
            before = self._exceeded.get(probe.level)
            exceeded = self._exceeded[probe.level] = before + step.alone if before else step.alone
            step = replace(step, exceeded=exceeded)
        self.steps.append(step)
        if self._is_lost(probe, step) or self._is_repeated(step) or self._is_extended(probe, step):
            return
        if probe.phase is Phase.WARM:
            self.warm = step
            self._begin()
        elif probe.phase is Phase.OPERATE:
            self.operating, self.next = step, None
        elif self._search:
            trial = Trial(
                probe.level,
                saturated=bool(step.saturated),
                per_s=step.goodput.value,
                unfit=bool(step.tester),
                growth=step.growth,
                slow=bool(step.saturated) and not step.overload,
                undecided=bool(step.undecided),
            )
            try:
                self.next = self._search.send(trial)
            except StopIteration as stop:
                # the operating point is an open load, also after a closed search, since a rate is
                # what a service must be given
                self.bracket = stop.value
                rate = self.capacity
                self.next = Probe(OPERATING_SHARE * rate, Phase.OPERATE) if rate else None

    def _is_lost(self, probe: Probe, step: Assessed) -> bool:
        """Whether the service is gone: then nothing more is measured."""
        if probe.phase is Phase.WARM:
            return False
        is_last = probe.phase is Phase.OPERATE
        # too much load does not count as lost, so that nothing succeeds counts only where nothing
        # listened, or where the level is not above one that held; the operating point lies below
        # that, in another unit perhaps
        bearable = is_last or probe.level <= self._held or set(step.errors) <= REFUSED
        is_dead = bool(step.errors) and step.success == 0 and bearable
        self._dead = self._dead + 1 if is_dead else 0
        if not (step.saturated or step.tester or is_last):
            self._held = max(self._held, probe.level)
        times = ""
        if self._dead >= GONE:
            times = f"{GONE} steps in a row"
        elif self._dead and is_last:
            times = "the last step"
        if times:
            kinds = ", ".join(step.errors)
            self.gone = f"the service is gone: nothing succeeded in {times} ({kinds})"
            self.next = None
        return bool(self.gone)

    def _is_repeated(self, step: Assessed) -> bool:
        """Whether the same step is measured again, since the tester was late."""
        self._again = self._again + 1 if step.tester else 0
        if 0 < self._again <= MOST_AGAIN:
            return True
        self._again = 0
        if step.tester:
            self.spoilt.append(step)
        return False

    def _is_extended(self, probe: Probe, step: Assessed) -> bool:
        """Whether the level is measured on, since more requests may decide its latency limit."""
        may = False
        if step.undecided and step.exceeded and step.alone and probe.phase is not Phase.OPERATE:
            left = LONGEST - self._pieces
            may = left > 0 and not step.tester and step.exceeded.decidable(left * step.alone.count)
        self._pieces = self._pieces + 1 if may else 1
        return may

    @property
    def usual_s(self) -> float:
        """Mean latency of one request alone in the probe, in s; 0 when that is unknown."""
        return (self.warm and self.warm.latency.mean) or 0.0

    @property
    def capacity(self) -> float | None:
        """The saturation point in requests a second, None when there is none yet."""
        if self.bracket is None or self.bracket.low is None:
            return None
        return self.bracket.low if self.plan.open else self.bracket.plateau_per_s

    def _begin(self) -> None:
        """Begin the search at the level that the plan, or else the probe, says."""
        start = 1.0
        if self.plan.open:
            start = UNPROBED_RATE
            if self.warm is not None and self.warm.goodput.value:
                start = max(LEAST_RATE, PROBED_SHARE * self.warm.goodput.value)
        self._search = search(self.plan, self.plan.start or start)
        self.next = next(self._search)


def replay(plan: SaturationPlan, steps: Sequence[Assessed]) -> SaturationSequence:
    """Return the sequence after these steps, in their order.

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
        if follows and course.strayed is None:
            course.tell(step)
        else:
            course.strayed = course.strayed or step
            course.steps.append(step)
    return course


def same(level: float, other: float) -> bool:
    """Whether two levels are equal: powers and roots of another machine may differ slightly."""
    return math.isclose(level, other, rel_tol=1e-6)


def search_steps(course: SaturationSequence) -> list[Assessed]:
    """Return the steps at the levels of the search, without probe and operating point."""
    return [step for step in course.steps if step.step.phase not in OUTSIDE]


def at_level(course: SaturationSequence, level: float) -> list[Assessed]:
    """Return the steps of a level in which the tester was in time."""
    return [
        step for step in search_steps(course) if same(step.step.level, level) and not step.tester
    ]


def search(plan: SaturationPlan, start: float) -> Search:
    """Return the search of a plan. start: its first level."""
    return open_search(plan, start) if plan.open else closed_search(plan, round(start))

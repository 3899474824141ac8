"""The sequence of steps of a run: probe, search, operating point; and how long it takes.

A stored run goes through the same sequence again, so that its report never differs from what was
decided.

The forecast: a search takes as many steps as it needs. The usual number is the median of the
simulated services of tests/unit/simulated.py, and the bound is `most_measured`. Between two steps
requests in flight end, a level that was too much is followed by a pause, and agents need a head
start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from scaletest.model.declared import called
from scaletest.model.writing import Written
from scaletest.saturation.judging.search import (
    CONFIRMATIONS,
    Bracket,
    Probe,
    Search,
    Trial,
    most_measured,
    search,
)
from scaletest.saturation.judging.step import Assessed, Exceedance
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
REFUSED = {"refused"}
# Phases that are no part of the search.
OUTSIDE = (Phase.WARM, Phase.OPERATE)


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
        probe = self.next
        if probe is None:
            self.steps.append(step)
            return
        step = self._joined(probe, step)
        self.steps.append(step)
        if self._lost(probe, step) or self._once_more(step) or self._longer(probe, step):
            return
        if probe.phase is Phase.WARM:
            self.warm = step
            self._begin()
        elif probe.phase is Phase.OPERATE:
            self.operating, self.next = step, None
        elif self._search:
            trial = Trial(
                probe.level,
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

    def _lost(self, probe: Probe, step: Assessed) -> bool:
        """Whether the service is gone: then nothing more is measured."""
        if probe.phase is Phase.WARM:
            return False
        last = probe.phase is Phase.OPERATE
        self._dead = self._dead + 1 if self._is_dead(probe, step) else 0
        if not (step.saturated or step.tester or last):
            self._held = max(self._held, probe.level)
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

    def _is_dead(self, probe: Probe, step: Assessed) -> bool:
        """Whether nothing succeeded in a step whose load is not the reason."""
        if not step.errors or step.success != 0:
            return False
        # the operating point lies below the level that held, in another unit perhaps
        bearable = probe.phase is Phase.OPERATE or probe.level <= self._held
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

    def _joined(self, probe: Probe, step: Assessed) -> Assessed:
        """The step with the excess over the latency limit in all steps at its level, if in time."""
        if step.alone is None or probe.phase in OUTSIDE or step.tester:
            return step
        before = self._exceeded.get(probe.level)
        joined = self._exceeded[probe.level] = before + step.alone if before else step.alone
        return replace(step, exceeded=joined)

    def _longer(self, probe: Probe, step: Assessed) -> bool:
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

    def _begin(self) -> None:
        self._search = search(self.plan, self._start())
        self.next = next(self._search)

    def _start(self) -> float:
        if self.plan.start:
            return self.plan.start
        if not self.plan.open:
            return 1.0
        if self.warm is None or not self.warm.goodput.value:
            return UNPROBED_RATE
        return max(LEAST_RATE, PROBED_SHARE * self.warm.goodput.value)

    def _end(self, bracket: Bracket) -> None:
        """End the search and choose the operating point.

        It is an open load, also after a closed search, since a rate is what a service must be
        given.
        """
        self.bracket, self.next = bracket, None
        rate = self.capacity
        if rate:
            self.next = Probe(OPERATING_SHARE * rate, Phase.OPERATE)

    @property
    def capacity(self) -> float | None:
        """The saturation point in requests a second, None when there is none yet."""
        if self.bracket is None or self.bracket.low is None:
            return None
        return self.bracket.low if self.plan.open else self.bracket.plateau_per_s


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
        if follows and course.strayed is None:
            course.tell(step)
        else:
            course.strayed = course.strayed or step
            course.steps.append(step)
    return course


def same(level: float, other: float) -> bool:
    """Whether two levels are equal: powers and roots of another machine may differ slightly."""
    return math.isclose(level, other, rel_tol=1e-6)


def searched(course: SaturationSequence) -> list[Assessed]:
    """The steps at the levels of the search, without probe and operating point."""
    return [step for step in course.steps if step.step.phase not in OUTSIDE]


def at_level(course: SaturationSequence, level: float) -> list[Assessed]:
    """The steps of a level in which the tester was in time."""
    return [step for step in searched(course) if same(step.step.level, level) and not step.tester]


# Seconds: pause after a saturated step; from a command to its begin, so that all agents read it.
BACK_OFF_S = 0.5
HEAD_START_S = 0.5
# Seconds: for checks before the run; after a step for requests in flight and the pause, on average
# and at most.
SET_UP_S = 1.0
DRAIN_S, LONGEST_DRAIN_S = 0.3, 2.0
# Steps of a search before it is confirmed: the median of simulated services.
USUAL_SEARCH = 7


@dataclass(frozen=True, slots=True)
class SaturationForecast(Written):
    """The forecast of a run."""

    constants: ClassVar = {"extended_up_to": LONGEST, "repeated_up_to": MOST_AGAIN}

    steps: Annotated[
        int,
        called("usual_steps"),
        "that usually lie between probe and operating point, most: of these at most.",
    ]
    most: Annotated[int, called("most_steps")]
    usual_s: Annotated[
        float | None,
        "seconds of the whole run, where ten requests after each other take less than a step; "
        "None where a step has a fixed number of requests of unknown length. longest_s "
        "includes the steps that a latency limit makes longer, and not those that are "
        "repeated since the tester was late.",
    ]
    longest_s: Annotated[
        float | None,
        "seconds of the whole run, where ten requests after each other take less than a step; "
        "None where a step has a fixed number of requests of unknown length. longest_s "
        "includes the steps that a latency limit makes longer, and not those that are "
        "repeated since the tester was late.",
    ]

    def times(self, runs: int) -> SaturationForecast:
        """The forecast of so many runs of the plan."""
        usual, longest = (seconds and runs * seconds for seconds in (self.usual_s, self.longest_s))
        return SaturationForecast(self.steps, self.most, usual, longest)


def forecast(plan: SaturationPlan) -> SaturationForecast:
    """The forecast of a plan."""
    most = most_measured(plan)
    steps = USUAL_SEARCH + 2 * ((1 + CONFIRMATIONS) // 2)
    if plan.count:
        return SaturationForecast(steps, most, None, None)
    head_s = HEAD_START_S if plan.agents > 1 else 0.0
    operate_s = OPERATING_STEPS * plan.step_s + head_s
    fixed_s = SET_UP_S + plan.warm_s + (head_s if plan.warm_s else 0.0) + operate_s
    longer = LONGEST if plan.limit else 1
    return SaturationForecast(
        steps,
        most,
        fixed_s + steps * (plan.step_s + DRAIN_S + head_s),
        fixed_s + longer * most * (plan.step_s + LONGEST_DRAIN_S + head_s),
    )

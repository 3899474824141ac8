"""The sequence of steps of a run: probe, search, operating point, and which of them are repeated.

A stored run goes through the same sequence again, so that its report never differs from what was
decided.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from scaletest.saturation.judging.exceedance import Exceedance
from scaletest.saturation.judging.search_closed_load import search_closed_load
from scaletest.saturation.judging.search_open_load import search_open_load
from scaletest.saturation.judging.step import AssessedStep
from scaletest.saturation.judging.trial import Bracket, Probe, Search, Trial
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
MOST_LENGTHS = 4
# A step in which the tester was late shows nothing; it is measured again this often at most.
MOST_AGAIN = 2
# After this many steps in a row without a success the service is gone: a search would only go down.
GONE_AFTER_STEPS = 3
# Errors of a service that is not there, however little load it has.
REFUSED = {"refused"}
# Phases that are no part of the search: the probe before it, and the operating point after it.
PHASES_BESIDE_SEARCH = (Phase.WARM, Phase.OPERATE)


class SaturationSequence:
    """Follows a plan: is told each step that was measured, and chooses the next."""

    def __init__(self, plan: SaturationPlan) -> None:
        self.plan = plan
        self.steps: list[AssessedStep] = []
        self.bracket: Bracket | None = None  # None until the search has ended
        self.warm: AssessedStep | None = None
        self.operating: AssessedStep | None = None
        self.next: Probe | None = None  # None when nothing is left to measure
        self.spoilt: list[AssessedStep] = []  # steps in which the tester stayed late
        # the first step of a stored run that these rules would not have measured
        self.strayed: AssessedStep | None = None
        self.gone = ""  # how the service was lost, "" as long as it was not
        self._search: Search | None = None
        self._repeats = 0  # how often in a row the step was measured again
        self._dead_steps = 0  # steps in a row in which the service seemed gone
        self._lengths = 1  # lengths of a step that were measured at this level
        self._exceeded: dict[float, Exceedance] = {}  # by level
        self._highest_held = 0.0  # level
        if plan.warm_s:
            self.next = Probe(1.0, Phase.WARM)
        else:
            self._begin_search()

    def add_step(self, step: AssessedStep) -> None:
        """Take the step that `next` asked for, measured, and choose the next."""
        probe = self.next
        assert probe is not None
        if step.alone is not None and probe.phase not in PHASES_BESIDE_SEARCH and not step.tester:
            # all steps at a level decide about its latency limit together
            before = self._exceeded.get(probe.level)
            exceeded = self._exceeded[probe.level] = before + step.alone if before else step.alone
            step = replace(step, exceeded=exceeded)
        self.steps.append(step)
        self._notice_loss(probe, step)
        if self.gone:
            self.next = None
            return
        if self._is_to_repeat(step) or self._is_to_extend(probe, step):
            return  # `next` stays as it is
        if probe.phase is Phase.WARM:
            self.warm = step
            self._begin_search()
        elif probe.phase is Phase.OPERATE:
            self.operating, self.next = step, None
        elif self._search:
            trial = Trial(
                probe.level,
                saturated=bool(step.saturated),
                per_s=step.goodput.value,
                tester_was_late=bool(step.tester),
                backlog_growth=step.growth,
                only_latency_failed=bool(step.saturated) and not step.overload,
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

    def _notice_loss(self, probe: Probe, step: AssessedStep) -> None:
        """Set `gone` when nothing succeeded that must succeed wherever there is a service."""
        if probe.phase is Phase.WARM:
            return
        is_last = probe.phase is Phase.OPERATE
        # too much load does not count as lost, so that nothing succeeds counts only where nothing
        # listened, or where the level is not above one that held; the operating point lies below
        # that, in another unit perhaps
        is_bearable = is_last or probe.level <= self._highest_held or set(step.errors) <= REFUSED
        is_dead = bool(step.errors) and step.success == 0 and is_bearable
        self._dead_steps = self._dead_steps + 1 if is_dead else 0
        if not (step.saturated or step.tester or is_last):
            self._highest_held = max(self._highest_held, probe.level)
        if self._dead_steps >= GONE_AFTER_STEPS or (is_dead and is_last):
            times = (
                f"{GONE_AFTER_STEPS} steps in a row"
                if self._dead_steps >= GONE_AFTER_STEPS
                else "the last step"
            )
            kinds = ", ".join(step.errors)
            self.gone = f"the service is gone: nothing succeeded in {times} ({kinds})"

    def _is_to_repeat(self, step: AssessedStep) -> bool:
        """Whether the same step is measured again, since the tester was late."""
        if not step.tester:
            self._repeats = 0
            return False
        if self._repeats < MOST_AGAIN:
            self._repeats += 1
            return True
        self._repeats = 0
        self.spoilt.append(step)
        return False

    def _is_to_extend(self, probe: Probe, step: AssessedStep) -> bool:
        """Whether the level is measured on, since more requests may decide its latency limit."""
        may_decide = False
        if step.undecided and step.exceeded and step.alone and probe.phase is not Phase.OPERATE:
            further = (MOST_LENGTHS - self._lengths) * step.alone.count
            may_decide = (
                self._lengths < MOST_LENGTHS
                and not step.tester
                and step.exceeded.may_be_decided_by(further)
            )
        self._lengths = self._lengths + 1 if may_decide else 1
        return may_decide

    @property
    def usual_s(self) -> float:
        """Mean latency of one request alone in the probe, in s; 0 when that is unknown."""
        return (self.warm and self.warm.latency.mean) or 0.0

    @property
    def has_held(self) -> bool:
        """Whether a level of the search held so far."""
        return self._highest_held > 0

    @property
    def capacity(self) -> float | None:
        """The saturation point in requests a second, None when there is none yet."""
        if self.bracket is None or self.bracket.low is None:
            return None
        return self.bracket.low if self.plan.open else self.bracket.plateau_per_s

    def _begin_search(self) -> None:
        """Begin the search at the level that the plan, or else the probe, says."""
        start = self.plan.start
        if not self.plan.open:
            self._search = search_closed_load(self.plan, round(start or 1.0))
        else:
            probed_rate = self.warm.goodput.value if self.warm else 0.0
            usual_start = UNPROBED_RATE
            if probed_rate:
                usual_start = max(LEAST_RATE, PROBED_SHARE * probed_rate)
            self._search = search_open_load(self.plan, start or usual_start)
        self.next = next(self._search)


def replay(plan: SaturationPlan, steps: Sequence[AssessedStep]) -> SaturationSequence:
    """Return the sequence after these steps, in their order.

    Another version may have decided otherwise: `strayed` is then the first such step.
    """
    sequence = SaturationSequence(plan)
    for step in steps:
        wanted = sequence.next
        is_expected = (
            wanted is not None
            and wanted.phase == step.step.phase
            and is_same_level(wanted.level, step.step.level)
        )
        if is_expected and sequence.strayed is None:
            sequence.add_step(step)
        else:
            sequence.strayed = sequence.strayed or step
            sequence.steps.append(step)
    return sequence


def is_same_level(level: float, other: float) -> bool:
    """Whether two levels are equal: powers and roots of another machine may differ slightly."""
    return math.isclose(level, other, rel_tol=1e-6)


def search_steps(sequence: SaturationSequence) -> list[AssessedStep]:
    """Return the steps at the levels of the search, without probe and operating point."""
    return [step for step in sequence.steps if step.step.phase not in PHASES_BESIDE_SEARCH]


def steps_at_level(sequence: SaturationSequence, level: float) -> list[AssessedStep]:
    """Return the steps of a level in which the tester was in time."""
    return [
        step
        for step in search_steps(sequence)
        if is_same_level(step.step.level, level) and not step.tester
    ]

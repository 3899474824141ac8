"""How many workers should share one device: the least number that is not worse than the best one.

The step with the highest throughput leads. Another is worse when the interval of its throughput
over the leader's lies below 1. Each of the m - 1 comparisons may be wrong in 5 % / (m - 1) of all
runs (Bonferroni). The best number is the least that is not worse: with fewer workers a device has
memory left, and each request is done sooner. A number may be not worse only since it was measured
too imprecisely, so all such numbers are named, and where the best might do less than 90 % of what
another does, nothing is decided.

The intervals are two-sided, so that all of them hold together in 95 %, and the leader may lead by
chance: of two equal numbers either may be called worse. The least number that truly does most is
kept in 97.5 % of all runs.

A step with failed requests beyond the plan's tolerance, or one that may not be judged, is no
candidate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.causes.steps import SPREAD_BETWEEN_STEPS
from scaletest.model.declared import Positive
from scaletest.model.writing import Written
from scaletest.render.numbers import plural
from scaletest.stats.estimate import Estimate, estimate_within, exact_estimate
from scaletest.stats.student import t_quantile, welch_freedom
from scaletest.validation.judging.steps import Step
from scaletest.validation.plan import Plan

# All comparisons with the leader together are wrong in this part of all runs.
FAMILY_ERROR = 0.05
# Share of throughput that the best number may lose against another, by the intervals' ends.
MOST_LOST = 0.10


@dataclass(frozen=True, slots=True)
class Candidate(Written):
    """One number of workers on each device."""

    per_device: Positive
    relative: Annotated[
        Estimate | None, "throughput over that of the leader; the intervals hold together at 95 %"
    ]
    worse: Annotated[bool, "whether the interval is below 1"]
    excluded: Annotated[str, "why it is no candidate; empty when it is one"] = ""


@dataclass(frozen=True, slots=True)
class Sharing(Written):
    """The best number of workers on each device."""

    description = "null unless the run compares numbers of workers per device"

    best: Annotated[
        Positive | None, "the least number of workers per device that is not worse than the leader"
    ]
    leader: Annotated[Positive | None, "the number with the highest throughput"]
    equals: Annotated[tuple[int, ...], "all that do not differ from the leader beyond chance"]
    candidates: tuple[Candidate, ...]
    sentence: str

    @property
    def doubt(self) -> str:
        """Why the best number is too uncertain to rely on; "" when it is not, or there is none."""
        for candidate in self.candidates:
            relative = candidate.relative
            if not relative or candidate.per_device not in self.equals:
                continue
            is_best = candidate.per_device == self.best
            may_lose = is_best and relative.low < 1 - MOST_LOST
            may_gain = relative.high > 1 / (1 - MOST_LOST)
            if may_lose or may_gain:
                return (
                    f"{candidate.per_device} workers on each device do between {relative.low:.0%}"
                    f" and {relative.high:.0%} of what {self.leader} do, which is too imprecise to"
                    " call a number best"
                )
        return ""


def compare_sharing(plan: Plan, steps: Sequence[Step]) -> Sharing | None:
    """Return the best number of workers per device; None for a run that compares none."""
    if not plan.compares:
        return None
    # why a number is no candidate; "" for one that is
    excluded = {}
    for step in steps:
        reason = "" if step.sound else "not steady, or too few requests to tell"
        if step.failures > plan.tolerate_failures:
            memory = f", {step.memory_hits} at the memory limit" if step.memory_hits else ""
            reason = f"{step.failures} requests failed{memory}"
        excluded[step.per_device] = reason
    compared = [step for step in steps if not excluded[step.per_device]]
    leader = max(compared, key=lambda step: step.throughput.per_s, default=None)

    # each number beside the leader
    candidates = []
    for step in steps:
        relative = None
        if step is leader:
            relative = exact_estimate(1.0)
        elif leader and not excluded[step.per_device]:
            relative = _compare_with_leader(step, leader, comparisons=len(compared) - 1)
        is_worse = relative is not None and relative.high < 1.0
        candidates.append(Candidate(step.per_device, relative, is_worse, excluded[step.per_device]))
    equals = [row.per_device for row in candidates if not (row.worse or row.excluded)]

    if leader is None:
        sentence = "no step may be judged, so no number is best"
        return Sharing(None, None, (), tuple(candidates), sentence)

    # the answer in words
    best = f"{plural(equals[0], 'worker')} on each device"
    sentence = f"{best}: every other number does less"
    if len(equals) > 1:
        most = f"the highest throughput was measured with {leader.per_device}"
        if leader.per_device == equals[0]:
            most = "it had the highest throughput"
        others = ", ".join(map(str, equals[1:]))
        sentence = f"{best}: {most}, but {others} may do as much"
    return Sharing(
        best=equals[0],
        leader=leader.per_device,
        equals=tuple(equals),
        candidates=tuple(candidates),
        sentence=sentence,
    )


def _compare_with_leader(step: Step, leader: Step, comparisons: int) -> Estimate:
    """Return the throughput of a step over the leader's, with an interval for all comparisons."""
    # with what one run alone cannot show, unless there are pairs of passes that do
    errors = []
    for side in (step, leader):
        hidden = 0.0 if side.between else SPREAD_BETWEEN_STEPS
        errors.append(math.hypot(side.throughput.error, hidden))
    freedom = welch_freedom(errors, [step.throughput.freedom, leader.throughput.freedom])
    quantile = t_quantile(1 - FAMILY_ERROR / (2 * comparisons), freedom)
    return estimate_within(
        step.throughput.per_s / leader.throughput.per_s, quantile * math.hypot(*errors)
    )

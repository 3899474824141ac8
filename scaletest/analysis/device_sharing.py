"""How many workers should share one device? The least number that will do, of those that a run compares.

The step with the highest throughput leads. Another is worse when the interval of its throughput over the leader's lies
below 1. Each of the m - 1 comparisons may be wrong in 5 % / (m - 1) of all runs (Bonferroni). The best number is the
least that is not worse: with fewer workers a device has memory left, and each request is done sooner. What is not worse
may only have been measured too roughly, so all such numbers are named, and where the best might do less than 90 % of
what another does, nothing is decided.

The intervals are two-sided, so that all of them hold together in 95 %, and which step leads may be chance: of two equal
numbers either may be called worse. The least number that truly does most is kept in 97.5 % of all runs.

A step with failed requests beyond the plan's tolerance, or one that may not be judged, is no candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.estimate import Estimate, within
from scaletest.analysis.growth import UNSEEN
from scaletest.analysis.steps import Step
from scaletest.analysis.student_t import t95, t_quantile, welch
from scaletest.model import Plan

FAMILY_ERROR = 0.05
# What the best number may lose against another, by the ends of the intervals.
MOST_LOST = 0.10


@dataclass(frozen=True, slots=True)
class Candidate:
    """One number of workers on each device. relative: its throughput over that of the best one, with the interval.

    excluded: why it is no candidate, "" when it is one. worse: whether the interval lies below 1.
    """

    per_device: int
    relative: Estimate | None
    worse: bool
    excluded: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "relative": self.relative.to_dict() if self.relative else None}


@dataclass(frozen=True, slots=True)
class Sharing:
    """best: the least number that is not worse than the leader's, None when no step may be judged.

    equals: all that cannot be told from the leader, which is one of them.
    """

    devices: int
    best: int | None
    leader: int | None
    equals: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    sentence: str

    @property
    def vague(self) -> str:
        """Why the best number is none that anybody should rely on; "" when it is, or when there is none."""
        for one in self.candidates:
            found = one.relative
            if not found or one.per_device not in self.equals:
                continue
            too_low = one.per_device == self.best and found.low < 1 - MOST_LOST
            if too_low or found.high > 1 / (1 - MOST_LOST):
                return (
                    f"{one.per_device} on each device do between {found.low:.0%} and {found.high:.0%} of what "
                    f"{self.leader} do, which is too rough to call a number best"
                )
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = [one.to_dict() for one in self.candidates]
        return {**asdict(self), "equals": list(self.equals), "candidates": rows}


def sharing(plan: Plan, steps: Sequence[Step]) -> Sharing | None:
    """The best number of workers per device; None for a run that compares nothing of the kind."""
    if not plan.compares:
        return None
    why = {step.per_device: _excluded(plan, step) for step in steps}
    able = [step for step in steps if not why[step.per_device]]
    if not able:
        rows = tuple(Candidate(step.per_device, None, False, why[step.per_device]) for step in steps)
        return Sharing(plan.devices, None, None, (), rows, "no step may be judged, so no number is best")
    leader = max(able, key=lambda step: step.throughput.per_s)
    rows = tuple(
        Candidate(step.per_device, None, False, why[step.per_device])
        if why[step.per_device]
        else _compared(step, leader, len(able) - 1)
        for step in steps
    )
    equals = tuple(one.per_device for one in rows if not one.worse and not one.excluded)
    return Sharing(plan.devices, equals[0], leader.per_device, equals, rows, _sentence(equals, leader, plan))


def _excluded(plan: Plan, step: Step) -> str:
    if step.failures > plan.tolerate_failures:
        memory = f", {step.memory_hits} at the memory limit" if step.memory_hits else ""
        return f"{step.failures} requests failed{memory}"
    return "" if step.sound else "not steady, or too few requests to tell"


def _compared(step: Step, leader: Step, comparisons: int) -> Candidate:
    if step is leader:
        return Candidate(step.per_device, Estimate(1.0, 1.0, 1.0), False)
    value = step.throughput.per_s / leader.throughput.per_s
    errors = [_error(one) for one in (step, leader)]
    error = math.hypot(*errors)
    freedom = welch(errors, [float(one.throughput.freedom) for one in (step, leader)])
    spread = t_quantile(1 - FAMILY_ERROR / (2 * comparisons), freedom) * error if error > 0 else 0.0
    estimate = within(value, spread)
    return Candidate(step.per_device, estimate, estimate.high < 1.0)


def _error(step: Step) -> float:
    """Relative standard error of a step's throughput, with what no interval within a run can see."""
    seen = step.throughput.relative / t95(max(1, step.throughput.freedom))
    return seen if step.between else math.hypot(seen, UNSEEN)


def _sentence(equals: Sequence[int], leader: Step, plan: Plan) -> str:
    best = f"{equals[0]} worker{'s' if equals[0] > 1 else ''} on each device"
    if len(equals) == 1:
        return f"{best}: every other number does less"
    others = ", ".join(map(str, equals[1:]))
    sharper = "more --repeats" if plan.repeats > 1 else f"--precision {plan.precision / 2:g}"
    most = f"most was measured with {leader.per_device}" if leader.per_device != equals[0] else "it did most"
    return f"{best}: {most}, but {others} cannot be told from it ({sharper} would tell more)"

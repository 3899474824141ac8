"""How many workers should share one device? The least number that is not worse than the best one.

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

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.cause_text import workers_text
from scaletest.analysis.estimate import Estimate, within
from scaletest.analysis.growth import UNSEEN
from scaletest.analysis.steps import Step
from scaletest.analysis.student_t import t95, t_quantile, welch
from scaletest.model import Plan

FAMILY_ERROR = 0.05
# Share of throughput that the best number may lose against another, by the intervals' ends.
MOST_LOST = 0.10


@dataclass(frozen=True, slots=True)
class Candidate:
    """One number of workers on each device.

    relative: its throughput over that of the best number, with the interval. excluded: why it is
    not a candidate, "" when it is. worse: whether the interval lies below 1.
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
    """The best number of workers on each device.

    best: the least number that is not worse than the leader's, None when no step may be judged.
    equals: all that the data cannot separate from the leader, which is one of them.
    """

    devices: int
    best: int | None
    leader: int | None
    equals: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    sentence: str

    @property
    def vague(self) -> str:
        """Why the best number is too uncertain to rely on; "" when it is not, or there is none."""
        for candidate in self.candidates:
            relative = candidate.relative
            if not relative or candidate.per_device not in self.equals:
                continue
            too_low = candidate.per_device == self.best and relative.low < 1 - MOST_LOST
            if too_low or relative.high > 1 / (1 - MOST_LOST):
                between = f"between {relative.low:.0%} and {relative.high:.0%}"
                return (
                    f"{candidate.per_device} workers on each device do {between} of what"
                    f" {self.leader} do, which is too imprecise to call a number best"
                )
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = [candidate.to_dict() for candidate in self.candidates]
        return {**asdict(self), "equals": list(self.equals), "candidates": rows}


def sharing(plan: Plan, steps: Sequence[Step]) -> Sharing | None:
    """The best number of workers per device; None for a run that compares no such numbers."""
    if not plan.compares:
        return None
    reasons = {step.per_device: _excluded(plan, step) for step in steps}
    able = [step for step in steps if not reasons[step.per_device]]
    if not able:
        excluded = tuple(Candidate(number, None, False, reasons[number]) for number in reasons)
        sentence = "no step may be judged, so no number is best"
        return Sharing(plan.devices, None, None, (), excluded, sentence)
    leader = max(able, key=lambda step: step.throughput.per_s)
    candidates = []
    for step in steps:
        reason = reasons[step.per_device]
        if reason:
            candidates.append(Candidate(step.per_device, None, False, reason))
        else:
            candidates.append(_compared(step, leader, len(able) - 1))
    usable = [candidate for candidate in candidates if not candidate.excluded]
    equals = tuple(candidate.per_device for candidate in usable if not candidate.worse)
    sentence = _sentence(equals, leader, plan)
    return Sharing(plan.devices, equals[0], leader.per_device, equals, tuple(candidates), sentence)


def _excluded(plan: Plan, step: Step) -> str:
    if step.failures > plan.tolerate_failures:
        memory = ""
        if step.memory_hits:
            memory = f", {step.memory_hits} at the memory limit"
        return f"{step.failures} requests failed{memory}"
    if step.sound:
        return ""
    return "not steady, or too few requests to tell"


def _compared(step: Step, leader: Step, comparisons: int) -> Candidate:
    """A candidate by the ratio of its throughput to the leader's. comparisons: of the whole run."""
    if step is leader:
        return Candidate(step.per_device, Estimate(1.0, 1.0, 1.0), False)
    errors = [_error(step), _error(leader)]
    freedoms = [float(step.throughput.freedom), float(leader.throughput.freedom)]
    error = math.hypot(*errors)
    spread = 0.0
    if error > 0:
        quantile = t_quantile(1 - FAMILY_ERROR / (2 * comparisons), welch(errors, freedoms))
        spread = quantile * error
    estimate = within(step.throughput.per_s / leader.throughput.per_s, spread)
    return Candidate(step.per_device, estimate, estimate.high < 1.0)


def _error(step: Step) -> float:
    """Relative standard error of a step's throughput, with what one run alone cannot show."""
    measured = step.throughput.relative / t95(max(1, step.throughput.freedom))
    if step.between:
        return measured
    return math.hypot(measured, UNSEEN)


def _sentence(equals: Sequence[int], leader: Step, plan: Plan) -> str:
    best = f"{workers_text(equals[0])} on each device"
    if len(equals) == 1:
        return f"{best}: every other number does less"
    others = ", ".join(map(str, equals[1:]))
    sharper = f"--precision {plan.precision / 2:g}"
    if plan.repeats > 1:
        sharper = "more --repeats"
    most = "it did most"
    if leader.per_device != equals[0]:
        most = f"most was measured with {leader.per_device}"
    return f"{best}: {most}, but {others} may do as much ({sharper} would separate them)"

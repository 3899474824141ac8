"""The result of a saturation run: saturation point, knee, operating point, verdict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.knee import Knee, kneedle, knees
from scaletest.analysis.saturation import verdict
from scaletest.analysis.saturation.backlog import pooled
from scaletest.analysis.saturation.plateau import PLATEAU_SHARE
from scaletest.analysis.saturation.sequence import SaturationSequence, at_level, replay, searched
from scaletest.analysis.saturation.step import FEWEST, Assessed, assess, machine_full
from scaletest.analysis.scaling import MeasuredThroughput
from scaletest.model import Verdict
from scaletest.model.attempt import Attempt
from scaletest.model.saturation import KIND, LoadKind, Phase, SaturationPlan, SaturationStep
from scaletest.model.wire import SCHEMA_VERSION

APART = 1.1
# The backlog of a level that held may have grown by this many times the bracket's width; 5 s can
# show 2 % at best.
WIDE, NARROWEST = 2.0, 0.02


@dataclass(frozen=True, slots=True)
class SaturationResult:
    """The result of a run.

    point: requests a second, interval from the bracket and the proof of its ends. parallel:
    smallest number in flight that reaches it (closed). operating: the step at the plan's share of
    it, None when not measured, or when the tester was late in it. searched: steps before it was
    confirmed. lost: how a load agent was lost, "" when none was.
    """

    plan: SaturationPlan
    verdict: Verdict
    point: Estimate | None
    parallel: int | None
    warm: Assessed | None
    steps: tuple[Assessed, ...]
    operating: Assessed | None
    knees: tuple[Knee, ...]
    searched: int
    warnings: tuple[str, ...]
    elapsed_s: float
    interrupted: str
    lost: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "plan": self.plan.to_dict(),
            "verdict": self.verdict.to_dict(),
            "saturation_per_s": self.point.to_dict() if self.point else None,
            "saturation_in_flight": self.parallel,
            "operating_point": self.operating.to_dict() if self.operating else None,
            "knees": [knee.to_dict() for knee in self.knees],
            "steps": [step.to_dict() for step in self.steps],
            "steps_before_confirmation": self.searched,
            "warnings": list(self.warnings),
            "elapsed_s": self.elapsed_s,
            "interrupted": self.interrupted,
            "lost": self.lost,
        }


def evaluate(
    plan: SaturationPlan,
    steps: Sequence[SaturationStep],
    samples: Mapping[int, Sequence[Attempt]],
    *,
    interrupted: str = "",
    lost: str = "",
    elapsed_s: float = 0.0,
) -> SaturationResult:
    """Judge a run by its steps and their samples."""
    assessed = [assess(plan, step, samples.get(step.number, ())) for step in steps]
    return conclude(replay(plan, assessed), interrupted=interrupted, lost=lost, elapsed_s=elapsed_s)


def conclude(
    course: SaturationSequence, *, interrupted: str = "", lost: str = "", elapsed_s: float = 0.0
) -> SaturationResult:
    """The result of a sequence as far as it was measured."""
    plan, bracket = course.plan, course.bracket
    point = _point(course)
    parallel, steps_searched = None, len(course.steps)
    if bracket:
        steps_searched = bracket.steps
        if bracket.low and not plan.open:
            parallel = int(bracket.low)
    operating = course.operating
    if operating and operating.tester:
        operating = None
    return SaturationResult(
        plan=plan,
        verdict=verdict.judged(course, point, interrupted, lost),
        point=point,
        parallel=parallel,
        warm=course.warm,
        steps=tuple(course.steps),
        operating=operating,
        knees=_knees(course),
        searched=steps_searched,
        warnings=tuple(_warnings(course)),
        elapsed_s=elapsed_s,
        interrupted=interrupted,
        lost=lost,
    )


def _point(course: SaturationSequence) -> Estimate | None:
    """The saturation point in requests/s. Open: the bracket, as wide as its ends are sure.

    Closed: the plateau, and the mean of all steps on it. The plateau is the best of several, so it
    errs
    upwards: the interval lies around their mean, as wide as the widest.
    """
    bracket, capacity = course.bracket, course.capacity
    if bracket is None or capacity is None:
        return None
    if course.plan.open:
        return Estimate(capacity, _least(course, capacity), _most(course, bracket.high))
    rates = [step.goodput for step in searched(course) if not step.tester]
    on_plateau = [rate for rate in rates if rate.value >= PLATEAU_SHARE * capacity]
    if not on_plateau:
        return Estimate(capacity, 0.0, math.inf)
    middle = statistics.fmean(rate.value for rate in on_plateau)
    half = max(rate.high - rate.value for rate in on_plateau)
    low, high = max(0.0, middle - half), middle + half
    return Estimate(capacity, min(capacity, low), max(capacity, high))


def _least(course: SaturationSequence, level: float) -> float:
    """The rate that a level that held proves: the offered rate less the possible growth of its
    backlog.

    0 where that is unknown.
    """
    steps = [step for step in at_level(course, level) if step.growth]
    grown = [step.growth for step in steps if step.growth]
    if not grown:
        return 0.0
    offered = statistics.fmean(step.offered for step in steps)
    return max(0.0, min(level, offered) - max(0.0, pooled(grown).high))


def _most(course: SaturationSequence, level: float | None) -> float:
    """The rate that a level that failed proves to be too much, unless its throughput was higher.

    Some requests may always fail.
    """
    if level is None:
        return math.inf
    highest = [level]
    for step in at_level(course, level):
        if math.isfinite(step.goodput.high):
            success = 1.0
            if step.errors:
                success = course.plan.success
            highest.append(step.goodput.high / success)
    return max(highest)


def _knees(course: SaturationSequence) -> tuple[Knee, ...]:
    """Knees of closed load by all definitions; of open load by the bend of the curve alone.

    Its throughput follows the offered rate.
    """
    curve = _curve(course)
    if course.plan.open:
        return (kneedle(curve),)
    return knees(curve)


def _curve(course: SaturationSequence) -> list[MeasuredThroughput]:
    """Throughput against requests in flight or the offered rate, each level once."""
    load = course.plan.load
    first_at: dict[int, Assessed] = {}
    for step in searched(course):
        usable = step.step.load == load and not step.tester
        if usable and step.goodput.value > 0 and round(step.step.level) > 0:
            first_at.setdefault(round(step.step.level), step)
    curve: list[MeasuredThroughput] = []
    for level, step in sorted(first_at.items()):
        if load == LoadKind.OPEN and curve and level < APART * curve[-1].workers:
            continue  # levels of the bisection lie so close that noise would bend the curve
        half = step.goodput.high - step.goodput.value
        relative = math.inf
        if math.isfinite(half):
            relative = half / step.goodput.value
        curve.append(MeasuredThroughput(level, step.goodput.value, relative))
    return curve


def _wide(plan: SaturationPlan, level: float, least: float) -> list[str]:
    """A warning that the growth of the backlog is imprecise, so the level may be beyond
    saturation.
    """
    part = 1 - least / level
    if part <= WIDE * max(plan.precision, NARROWEST):
        return []
    return [
        f"at the saturation point the backlog may still have grown by {part:.1%} of the rate: raise"
        " --step-time"
    ]


def _disturbed(course: SaturationSequence) -> list[str]:
    """A warning where other programs took the cores of a service on the tester's machine."""
    for step in searched(course):
        around = step.step.around
        if not (step.saturated and around and around.service):
            continue
        full = machine_full(around)
        if full and around.others > around.service:
            return [f"{full} while the service was saturated: alone it may hold more"]
    return []


def _warnings(course: SaturationSequence) -> list[str]:
    """Warnings, which decide nothing."""
    lines = [*_imprecise(course), *_late(course)]
    operating = course.operating
    if operating and operating.tester:
        lines.append(f"the latency at {operating.step.level:.4g}/s is unknown: {operating.tester}")
    lines += _disturbed(course)
    few = sum(step.few for step in searched(course))
    if few:
        lines.append(f"{few} steps had fewer than {FEWEST} requests: raise --step-time, or --start")
    if operating and operating.saturated and not operating.tester:
        lines.append(f"even the operating point was saturated: {operating.saturated}")
    if course.warm and course.warm.errors:
        lines.append(f"some requests of the probe failed: {', '.join(course.warm.errors)}")
    return lines


def _imprecise(course: SaturationSequence) -> list[str]:
    """Warnings of open load about a wide bracket, or an imprecise lower end."""
    bracket = course.bracket
    if not (bracket and bracket.low and bracket.high and course.plan.open):
        return []
    lines = []
    wide = bracket.high / bracket.low - 1
    if wide > course.plan.precision * 1.5:
        lines.append(f"the bracket is {wide:.1%} wide: raise --most-steps for a narrower one")
    return lines + _wide(course.plan, bracket.low, _least(course, bracket.low))


def _late(course: SaturationSequence) -> list[str]:
    """How many steps were measured again since the tester was late.

    A late operating point has a warning of its own.
    """
    late = [step for step in course.steps if step.tester]
    again = late
    if course.operating and course.operating.tester:
        again = [step for step in late if step.step.phase != Phase.OPERATE]
    if not again or (course.bracket and course.bracket.unfit):
        return []
    reasons = [machine_full(step.step.around) for step in late if step.step.around]
    reason = next(filter(None, reasons), "")
    if reason:
        reason = f" ({reason})"
    return [f"in {len(again)} steps the tester itself was late{reason}; they were measured again"]

"""What a whole run says, made of plan and samples: saturation point and interval, knee, operating point, verdict."""

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
from scaletest.model.sample import Sample
from scaletest.model.saturation import KIND, LoadKind, Phase, SaturationPlan, SaturationStep
from scaletest.model.wire import SCHEMA_VERSION

APART = 1.1
# So many times the bracket's width may the growth of a backlog that "does not grow" be; 2 % are what 5 s tell at best.
WIDE, NARROWEST = 2.0, 0.02


@dataclass(frozen=True, slots=True)
class SaturationResult:
    """point: requests a second, interval from the bracket and what its ends prove.

    parallel: smallest in flight that reaches it (closed). operating: the step at the plan's share of it, None when not
    measured, or when the tester was late in it. searched: steps before it was confirmed. lost: how a load agent was
    lost, "" when none was.
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
            "knees": [one.to_dict() for one in self.knees],
            "steps": [one.to_dict() for one in self.steps],
            "steps_before_confirmation": self.searched,
            "warnings": list(self.warnings),
            "elapsed_s": self.elapsed_s,
            "interrupted": self.interrupted,
            "lost": self.lost,
        }


def evaluate(
    plan: SaturationPlan,
    steps: Sequence[SaturationStep],
    samples: Mapping[int, Sequence[Sample]],
    *,
    interrupted: str = "",
    lost: str = "",
    elapsed_s: float = 0.0,
) -> SaturationResult:
    """Judge a run by its steps and their samples."""
    found = [assess(plan, one, samples.get(one.number, ())) for one in steps]
    return conclude(replay(plan, found), interrupted=interrupted, lost=lost, elapsed_s=elapsed_s)


def conclude(
    course: SaturationSequence, *, interrupted: str = "", lost: str = "", elapsed_s: float = 0.0
) -> SaturationResult:
    """Judge a course as far as it came."""
    plan, bracket = course.plan, course.bracket
    point = _point(course)
    return SaturationResult(
        plan,
        verdict.lost(lost) if lost else verdict.judged(course, point, interrupted),
        point,
        int(bracket.low) if bracket and bracket.low and not plan.open else None,
        course.warm,
        tuple(course.steps),
        course.operating if course.operating and not course.operating.tester else None,
        _knees(course),
        bracket.steps if bracket else len(course.steps),
        tuple(_warnings(course)),
        elapsed_s,
        interrupted,
        lost,
    )


def _point(course: SaturationSequence) -> Estimate | None:
    """Open: the bracket, as wide as its ends are sure. Closed: the plateau, and the mean of all steps on it.

    The plateau is the best of several, so it errs upwards: the interval lies around their mean, as wide as the widest.
    """
    bracket, value = course.bracket, course.capacity
    if bracket is None or value is None:
        return None
    if course.plan.open:
        return Estimate(value, _least(course, value), _most(course, bracket.high))
    fit = [one.goodput for one in searched(course) if not one.tester]
    done = [one for one in fit if one.value >= PLATEAU_SHARE * value]
    if not done:
        return Estimate(value, 0.0, math.inf)
    middle, half = statistics.fmean(one.value for one in done), max(one.high - one.value for one in done)
    return Estimate(value, min(value, max(0.0, middle - half)), max(value, middle + half))


def _least(course: SaturationSequence, level: float) -> float:
    """What a level that held proves: what was offered there, less what its backlog may have grown by.

    Nothing where that is unknown.
    """
    trials = at_level(course, level)
    grown = [one.growth for one in trials if one.growth]
    if not grown:
        return 0.0
    offered = statistics.fmean(one.offered for one in trials if one.growth)
    return max(0.0, min(level, offered) - max(0.0, pooled(grown).high))


def _most(course: SaturationSequence, level: float | None) -> float:
    """What a level that failed proves: it is too much, unless more was done there; some requests may always fail."""
    if level is None:
        return math.inf
    done = [
        one.goodput.high / (course.plan.success if one.errors else 1.0)
        for one in at_level(course, level)
        if math.isfinite(one.goodput.high)
    ]
    return max([level, *done])


def _knees(course: SaturationSequence) -> tuple[Knee, ...]:
    """Closed load: by all definitions. Open load follows what is offered: only the bend of the curve says anything."""
    curve = _curve(course)
    return (kneedle(curve),) if course.plan.open else knees(curve)


def _curve(course: SaturationSequence) -> list[MeasuredThroughput]:
    """Throughput against what was in flight or offered, each level once."""
    load = course.plan.load
    rows: dict[int, Assessed] = {}
    for one in searched(course):
        if one.step.load == load and not one.tester and one.goodput.value > 0 and round(one.step.level) > 0:
            rows.setdefault(round(one.step.level), one)
    made: list[MeasuredThroughput] = []
    for workers, one in sorted(rows.items()):
        if load == LoadKind.OPEN and made and workers < APART * made[-1].workers:
            continue  # levels of the bisection lie so close that noise would bend the curve
        half = one.goodput.high - one.goodput.value
        made.append(
            MeasuredThroughput(
                workers, one.goodput.value, half / one.goodput.value if math.isfinite(half) else math.inf
            )
        )
    return made


def _wide(plan: SaturationPlan, level: float, least: float) -> list[str]:
    """A backlog whose growth is hardly known contains 0 at any level: what held there might be beyond saturation."""
    part = 1 - least / level
    if part <= WIDE * max(plan.precision, NARROWEST):
        return []
    return [f"at the saturation point the backlog may still have grown by {part:.1%} of the rate: raise --step-time"]


def _disturbed(course: SaturationSequence) -> list[str]:
    """Whether others took the cores of a service that shares the tester's machine while it was too slow."""
    for one in searched(course):
        around = one.step.around
        if one.saturated and around and around.service and around.others > around.service and machine_full(around):
            return [f"{machine_full(around)} while the service was saturated: alone it may hold more"]
    return []


def _warnings(course: SaturationSequence) -> list[str]:
    lines = [*_imprecise(course), *_late(course)]
    operating = course.operating
    if operating and operating.tester:
        lines.append(f"the latency at {operating.step.level:.4g}/s is not known: {operating.tester}")
    lines += _disturbed(course)
    few = sum(one.few for one in searched(course))
    if few:
        lines.append(f"{few} steps had fewer than {FEWEST} requests: raise --step-time, or --start")
    if operating and operating.saturated and not operating.tester:
        lines.append(f"even the operating point was saturated: {operating.saturated}")
    if course.warm and course.warm.errors:
        lines.append(f"some requests of the probe failed: {', '.join(course.warm.errors)}")
    return lines


def _imprecise(course: SaturationSequence) -> list[str]:
    """Open load: whether the bracket, or what its lower end proves, is wide."""
    bracket = course.bracket
    if not (bracket and bracket.low and bracket.high and course.plan.open):
        return []
    lines = []
    wide = bracket.high / bracket.low - 1
    if wide > course.plan.precision * 1.5:
        lines.append(f"the bracket is {wide:.1%} wide: raise --most-steps for a narrower one")
    return lines + _wide(course.plan, bracket.low, _least(course, bracket.low))


def _late(course: SaturationSequence) -> list[str]:
    """How many steps were measured again since the tester was late. A late operating point is told by itself."""
    again = [one for one in course.steps if one.tester]
    if course.operating and course.operating.tester:
        again = [one for one in again if one.step.phase != Phase.OPERATE]
    if not again or (course.bracket and course.bracket.unfit):
        return []
    full = [one.step.around for one in course.steps if one.tester and one.step.around]
    why = next((f" ({text})" for text in map(machine_full, full) if text), "")
    return [f"in {len(again)} steps the tester itself was late{why}; they were measured again"]

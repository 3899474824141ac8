"""What a whole run says: saturation point with its interval, knee, operating point, verdict. Made of plan and samples.

PASS      the saturation point was found and confirmed, and reaches what is wanted
FAIL      it surely lies below what is wanted
INVALID   it was not found: not reached, not the same when repeated, or the tester was the bottleneck
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.knee import Knee, kneedle, knees
from scaletest.analysis.saturation.backlog import pooled
from scaletest.analysis.saturation.course import Course, replay, same
from scaletest.analysis.saturation.search import PLATEAU_SHARE
from scaletest.analysis.saturation.step import FEWEST, Assessed, assess
from scaletest.analysis.scaling import Measured
from scaletest.model import Verdict, VerdictKind
from scaletest.model.sample import Sample
from scaletest.model.saturation import KIND, LoadKind, Mode, Phase, SaturationPlan, SaturationStep
from scaletest.model.wire import SCHEMA_VERSION

APART = 1.1
# So many times the bracket's width may the growth of a backlog that "does not grow" be; 2 % are what 5 s tell at best.
WIDE, NARROWEST = 2.0, 0.02
# A point whose interval reaches down by more than this part of it is none.
WIDEST = 0.25


@dataclass(frozen=True, slots=True)
class SaturationResult:
    """point: requests a second, interval from the bracket and what its ends prove.

    parallel: smallest in flight that reaches it (closed). operating: the step at the plan's share of it, None when not
    measured. searched: steps before it was confirmed. lost: how a load agent was lost, "" when none was.
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


def conclude(course: Course, *, interrupted: str = "", lost: str = "", elapsed_s: float = 0.0) -> SaturationResult:
    """Judge a course as far as it came."""
    plan, bracket = course.plan, course.bracket
    point = _point(course)
    return SaturationResult(
        plan,
        _lost(lost) if lost else _verdict(course, point, interrupted),
        point,
        int(bracket.low) if bracket and bracket.low and not plan.open else None,
        course.warm,
        tuple(course.steps),
        course.operating,
        _knees(course),
        bracket.steps if bracket else len(course.steps),
        tuple(_warnings(course)),
        elapsed_s,
        interrupted,
        lost,
    )


def _point(course: Course) -> Estimate | None:
    """Open: the bracket, as wide as its ends are sure. Closed: the plateau, and the mean of all steps on it.

    The plateau is the best of several, so it errs upwards: the interval lies around their mean, as wide as the widest.
    """
    bracket, value = course.bracket, course.capacity
    if bracket is None or value is None:
        return None
    if course.plan.open:
        return Estimate(value, _least(course, value), _most(course, bracket.high))
    fit = [one.goodput for one in _searched(course.steps) if not one.tester]
    done = [one for one in fit if one.value >= PLATEAU_SHARE * value]
    if not done:
        return Estimate(value, 0.0, math.inf)
    middle, half = statistics.fmean(one.value for one in done), max(one.high - one.value for one in done)
    return Estimate(value, min(value, max(0.0, middle - half)), max(value, middle + half))


def _least(course: Course, level: float) -> float:
    """What a level that held proves: what was offered there, less what its backlog may have grown by.

    Nothing where that is unknown.
    """
    trials = _at(course, level)
    grown = [one.growth for one in trials if one.growth]
    if not grown:
        return 0.0
    offered = statistics.fmean(one.offered for one in trials if one.growth)
    return max(0.0, min(level, offered) - max(0.0, pooled(grown).high))


def _most(course: Course, level: float | None) -> float:
    """What a level that failed proves: it is too much, unless more was done there; some requests may always fail."""
    if level is None:
        return math.inf
    done = [
        one.goodput.high / (course.plan.success if one.errors else 1.0)
        for one in _at(course, level)
        if math.isfinite(one.goodput.high)
    ]
    return max([level, *done])


def _at(course: Course, level: float) -> list[Assessed]:
    """The steps of a level in which the tester was in time."""
    return [one for one in _searched(course.steps) if same(one.step.level, level) and not one.tester]


def _searched(steps: Sequence[Assessed]) -> list[Assessed]:
    return [one for one in steps if one.step.phase not in (Phase.WARM, Phase.OPERATE)]


def _knees(course: Course) -> tuple[Knee, ...]:
    """Closed load: by all definitions. Open load follows what is offered: only the bend of the curve says anything."""
    curve = _curve(course.steps, course.plan.load)
    return (kneedle(curve),) if course.plan.open else knees(curve)


def _curve(steps: Sequence[Assessed], load: str) -> list[Measured]:
    """Throughput against what was in flight or offered, each level once."""
    rows: dict[int, Assessed] = {}
    for one in _searched(steps):
        if one.step.load == load and not one.tester and one.goodput.value > 0 and round(one.step.level) > 0:
            rows.setdefault(round(one.step.level), one)
    made: list[Measured] = []
    for workers, one in sorted(rows.items()):
        if load == LoadKind.OPEN and made and workers < APART * made[-1].workers:
            continue  # levels of the bisection lie so close that noise would bend the curve
        half = one.goodput.high - one.goodput.value
        made.append(Measured(workers, one.goodput.value, half / one.goodput.value if math.isfinite(half) else math.inf))
    return made


def _lost(why: str) -> Verdict:
    """What was measured before stays on record, but the course did not come to its end."""
    return Verdict(
        VerdictKind.INVALID,
        why,
        "look why it ended, and run it again; a signal 9 that nobody sent is the kernel's, out of memory",
    )


def _verdict(course: Course, point: Estimate | None, interrupted: str) -> Verdict:
    plan, bracket = course.plan, course.bracket
    invalid = VerdictKind.INVALID
    if interrupted:
        return Verdict(invalid, f"interrupted by {interrupted}", "run it to the end")
    if course.warm and course.warm.success == 0 and course.warm.step.requests:
        return Verdict(invalid, "no request of the probe succeeded", "mend the endpoint, or the request")
    if course.strayed is not None:
        what = f"step {course.strayed.step.number} is none that this version would have measured"
        return Verdict(
            invalid, f"{what}: the run followed other rules", "run it again; its result.json says what it found"
        )
    if course.gone:
        return Verdict(
            invalid, course.gone, "look why it ended, in its log; when it was the load, give a lower --maximum"
        )
    if bracket is None:
        return Verdict(invalid, "the search did not come to its end", "run it again")
    late = next((one.tester for one in _spoilt(course)), "")
    if late and (bracket.unfit or point is None or plan.mode == Mode.SWEEP):
        return Verdict(invalid, late, "give the tester more CPU, use --agents N, or set a lower --maximum")
    if course.operating is not None and course.operating.tester:
        return Verdict(invalid, course.operating.tester, "give the tester more CPU, or use --agents N")
    if plan.mode == Mode.SWEEP:
        return _of_sweep(course)
    if point is None:
        return Verdict(invalid, "even the lowest level was saturated", "give a lower --start, or more --most-steps")
    return _of_search(course, point)


def _spoilt(course: Course) -> list[Assessed]:
    """Steps of the search that the tester spoilt for good."""
    return [one for one in course.spoilt if one.step.phase not in (Phase.WARM, Phase.OPERATE)]


def _of_search(course: Course, point: Estimate) -> Verdict:
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    if plan.wanted and bracket.high is not None and point.high < plan.wanted and bracket.confirmed:
        reason = f"saturated at {point.value:.4g}/s, less than {plan.wanted:.4g}/s wanted"
        return Verdict(VerdictKind.FAIL, reason, "see: scaletest size, for the pods and nodes that it takes")
    if plan.wanted and point.low >= plan.wanted and (bracket.confirmed or bracket.high is None):
        return Verdict(VerdictKind.PASS, f"{point.low:.4g}/s held, {plan.wanted:.4g}/s were wanted")
    reached = bracket.high is not None if plan.open else bracket.confirmed
    if not reached:
        sure = f", {point.low:.4g}/s for sure" if plan.wanted else ""
        held = f"{point.value:.4g}/s held{sure}, and no limit was met" if plan.open else "throughput met no plateau"
        return Verdict(VerdictKind.INVALID, held, "raise --maximum, --max-in-flight or --most-steps")
    if not bracket.confirmed:
        return Verdict(
            VerdictKind.INVALID,
            "repeated, the ends of the bracket did not say the same",
            "measure longer with --step-time, or repeat more with --confirm",
        )
    between = f"between {point.low:.4g} and {point.high:.4g}/s"
    if plan.wanted:
        return Verdict(
            VerdictKind.INVALID,
            f"saturated {between}, {plan.wanted:.4g}/s wanted: undecided",
            "give a smaller --precision and a longer --step-time",
        )
    if point.value - point.low > WIDEST * point.value:
        return Verdict(
            VerdictKind.INVALID,
            f"saturated {between}: completions are too few or too uneven to say where",
            "give a longer --step-time, and let nothing else run beside service and tester",
        )
    return Verdict(VerdictKind.PASS, f"saturated at {point.value:.4g}/s, {between}, and the same when repeated")


def _of_sweep(course: Course) -> Verdict:
    failed = [one for one in course.steps if one.saturated and one.step.phase == Phase.SWEEP]
    if not failed:
        return Verdict(VerdictKind.PASS, "every level held")
    first = failed[0]
    return Verdict(
        VerdictKind.FAIL, f"{first.step.level:g} {course.plan.unit}: {first.saturated}", "stay below this level"
    )


def _wide(plan: SaturationPlan, level: float, least: float) -> list[str]:
    """A backlog whose growth is hardly known contains 0 at any level: what held there might be beyond saturation."""
    part = 1 - least / level
    if part <= WIDE * max(plan.precision, NARROWEST):
        return []
    return [f"at the saturation point the backlog may still have grown by {part:.1%} of the rate: raise --step-time"]


def _warnings(course: Course) -> list[str]:
    lines = []
    bracket = course.bracket
    if bracket and bracket.low and bracket.high and course.plan.open:
        wide = bracket.high / bracket.low - 1
        if wide > course.plan.precision * 1.5:
            lines.append(f"the bracket is {wide:.1%} wide: raise --most-steps for a narrower one")
        lines += _wide(course.plan, bracket.low, _least(course, bracket.low))
    late = sum(bool(one.tester) for one in course.steps)
    if late and not (bracket and bracket.unfit):
        lines.append(f"in {late} steps the tester itself was late; they were measured again")
    few = sum(one.few for one in _searched(course.steps))
    if few:
        lines.append(f"{few} steps had fewer than {FEWEST} requests: raise --step-time, or --start")
    operating = course.operating
    if operating and operating.saturated:
        lines.append(f"even the operating point was saturated: {operating.saturated}")
    if course.warm and course.warm.errors:
        lines.append(f"some requests of the probe failed: {', '.join(course.warm.errors)}")
    return lines

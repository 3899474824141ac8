"""The result of a saturation run: saturation point, knee, operating point, verdict.

PASS      the saturation point was found and confirmed, and reaches the wanted rate
FAIL      it surely lies below the wanted rate
INVALID   it was not found: not reached, not the same when repeated, an undecided latency limit,
          or the tester was late

The operating point is measured after that and decides nothing: its disturbances are warnings.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scaletest.model import Verdict
from scaletest.model.attempt import Attempt
from scaletest.model.declared import INNER, VERSIONED, called
from scaletest.model.writing import Written
from scaletest.render.numbers import plural
from scaletest.saturation.judging.search import PLATEAU_SHARE, Bracket
from scaletest.saturation.judging.sequence import (
    OUTSIDE,
    SaturationSequence,
    at_level,
    replay,
    same,
    searched,
)
from scaletest.saturation.judging.step import (
    FEWEST,
    Assessed,
    assess,
    level_text,
    machine_full,
    pooled,
)
from scaletest.saturation.plan import KIND, LoadKind, Phase, SaturationPlan, SaturationStep
from scaletest.stats.estimate import Estimate
from scaletest.stats.scaling import MeasuredThroughput, kneedle
from scaletest.stats.verdict_order import Ground, Rank, decide

SIZE = "see: scaletest size, for the pods and nodes that it takes"
# A point whose interval reaches down by more than this part of it is too imprecise.
WIDEST = 0.25


def judged(
    course: SaturationSequence, point: Estimate | None, interrupted: str = "", lost: str = ""
) -> Verdict:
    """The verdict on a run. point: the saturation point in requests a second. lost: how a load
    agent was lost, "" when none was; the steps before that stay on record.
    """
    grounds = [_lost(course), _late(course, point), _broken_off(course, interrupted, lost)]
    bracket = course.bracket
    if bracket is None:
        grounds.append(Ground(Rank.OPEN, "the search was not finished", "run it again"))
    else:
        grounds.append(_of_wanted(course, bracket, point) or _of_search(course, bracket, point))
    return decide(grounds)


def _lost(course: SaturationSequence) -> Ground | None:
    """Not the subject where records are missing: a file was cut."""
    for step in course.steps:
        if step.lost:
            return Ground(
                Rank.NOT_THE_SUBJECT,
                f"{step.lost} of {step.step.requests} records of step {step.step.number} are"
                " missing",
                "run it again",
            )
    return None


def _broken_off(course: SaturationSequence, interrupted: str, lost: str) -> Ground | None:
    """Open where the run was not measured to its end; None otherwise."""
    if lost:
        return Ground(
            Rank.OPEN,
            lost,
            "check why it ended, and run it again; a signal 9 that nobody sent is the kernel's, out"
            " of memory",
        )
    if interrupted:
        return Ground(Rank.OPEN, f"interrupted by {interrupted}", "run it to the end")
    if course.warm and course.warm.success == 0 and course.warm.step.requests:
        return Ground(
            Rank.OPEN, "no request of the probe succeeded", "fix the endpoint, or the request"
        )
    if course.strayed is not None:
        number = course.strayed.step.number
        return Ground(
            Rank.OPEN,
            f"this version would not have measured step {number}: the run followed other rules",
            "run it again; its result.json has the former result",
        )
    if course.gone:
        return Ground(
            Rank.OPEN,
            course.gone,
            "check its log for why it ended; if the load was the reason, give a lower <maximum>",
        )
    return None


def _late(course: SaturationSequence, point: Estimate | None) -> Ground | None:
    """Not the subject where the tester stayed late, and what was found depends on that."""
    late = next((step.tester for step in course.spoilt if step.step.phase not in OUTSIDE), "")
    unfit = course.bracket and (course.bracket.unfit or point is None)
    if late and unfit:
        return Ground(Rank.NOT_THE_SUBJECT, late, _undisturbed(late))
    return None


def _undisturbed(late: str) -> str:
    """The remedy for a tester that was late."""
    if late.startswith("the machine was"):
        return "run the tester on a machine of its own, or end the other programs here"
    return (
        "let nothing else run beside the tester, give it more CPU or <agents> N, or set a lower"
        " <maximum>"
    )


def _of_search(course: SaturationSequence, bracket: Bracket, point: Estimate | None) -> Ground:
    if point is None:
        return _of_nothing(course, bracket)
    reached = bracket.high is not None if course.plan.open else bracket.confirmed
    if not reached:
        return _undecided(course, bracket) or _unreached(course, point)
    if not bracket.confirmed:
        return Ground(
            Rank.OPEN,
            "the ends of the bracket differed when they were measured again",
            "measure longer with <step_time>",
        )
    return _of_point(course, bracket, point)


def _unreached(course: SaturationSequence, point: Estimate) -> Ground:
    """INVALID since the search ended before it met a limit of the service."""
    reason = "throughput reached no plateau"
    if course.plan.open:
        sure = f", {point.low:.4g}/s for sure" if course.plan.wanted else ""
        reason = f"{point.value:.4g}/s held{sure}, and no limit was reached"
    return Ground(Rank.OPEN, reason, "raise <start>, <maximum> or <max_in_flight>")


def _of_nothing(course: SaturationSequence, bracket: Bracket) -> Ground:
    """The verdict on a search in which no level held: each was too much, or none was decided."""
    unclear = _undecided(course, bracket)
    counts = [step.exceeded.count for step in _open_steps(course, bracket) if step.exceeded]
    if bracket.high is None or (unclear is not None and any(counts)):
        return unclear or Ground(Rank.OPEN, "no level was measured", "give another <start>")
    reason = (
        f"even {bracket.high:.4g} {course.plan.unit} was saturated: {_failure(course, bracket)}"
    )
    remedy = "give a lower <start>"
    if course.warm and course.warm.saturated:
        remedy = (
            "one request at a time is too slow as well: look at the service, or set a wider"
            " <latency_limit>"
        )
    return Ground(Rank.OPEN, reason, remedy)


def _open_steps(course: SaturationSequence, bracket: Bracket) -> list[Assessed]:
    """The last step of each undecided level."""
    return [at_level(course, level)[-1] for level in bracket.undecided]


def _of_point(course: SaturationSequence, bracket: Bracket, point: Estimate) -> Ground:
    """The verdict on a confirmed point that the wanted rate does not decide: by its precision."""
    plan = course.plan
    between = f"between {point.low:.4g} and {point.high:.4g}/s"
    if plan.wanted:
        return _undecided(course, bracket) or Ground(
            Rank.OPEN,
            f"saturated {between}, {plan.wanted:.4g}/s wanted: undecided",
            "give a smaller <precision> and a longer <step_time>",
        )
    distance = bracket.high - point.value if bracket.high is not None else 0.0
    wide = not plan.open or distance > WIDEST * point.value
    unclear = _undecided(course, bracket) if wide else None
    if unclear is not None:
        return unclear
    if point.value - point.low > WIDEST * point.value:
        return Ground(
            Rank.OPEN,
            f"saturated {between}: completions are too few or too uneven to know where",
            "give a longer <step_time>, and let nothing else run beside service and tester",
        )
    return Ground(Rank.MET, f"saturated {between}{_repeats(course, bracket)}")


def _repeats(course: SaturationSequence, bracket: Bracket) -> str:
    """Whether the steps at the ends of the bracket agree, each alone."""
    if not course.plan.open:
        return ", and the same when repeated"
    low, high = bracket.low or 0.0, bracket.high or 0.0
    steps = [*at_level(course, low), *at_level(course, high)]
    contrary = sum(_contrary(step, same(step.step.level, low)) for step in steps)
    if not contrary:
        return ", and the same when repeated"
    return f", although {contrary} of the {len(steps)} steps at these rates disagree"


def _contrary(step: Assessed, lower_end: bool) -> bool:
    """Whether a step alone shows the contrary of the finding on its level.

    lower_end: whether the level held, as the lower end of the bracket.
    """
    limit = step.alone
    if lower_end:
        return bool(step.overload) or (limit is not None and limit.refuted)
    return not step.overload and (limit is None or limit.shown)


def _of_wanted(
    course: SaturationSequence, bracket: Bracket, point: Estimate | None
) -> Ground | None:
    """PASS or FAIL by the wanted rate; None without one, or where the steps leave it open."""
    if not course.plan.wanted:
        return None
    if point is None:
        # refuted where no level held and the wanted rate is no less than the lowest
        plan = course.plan
        if not plan.open or bracket.unfit or bracket.high is None or bracket.high > plan.wanted:
            return None
        return Ground(
            Rank.REFUTED,
            f"even {bracket.high:.4g}/s was too much: {_failure(course, bracket)}; {_less(course)}",
            SIZE,
        )
    return _passed(course, bracket, point) or _missed(course, bracket, point)


def _passed(course: SaturationSequence, bracket: Bracket, point: Estimate) -> Ground | None:
    """PASS where the rate held."""
    plan = course.plan
    sure = bracket.confirmed or bracket.high is None
    if not sure or point.low < plan.wanted:
        return None
    return Ground(Rank.MET, f"{point.low:.4g}/s held, {plan.wanted:.4g}/s were wanted")


def _missed(course: SaturationSequence, bracket: Bracket, point: Estimate) -> Ground | None:
    """FAIL where the service is saturated below the rate."""
    plan = course.plan
    limited = bracket.confirmed and (bracket.high is not None or not plan.open)
    if limited and point.high < plan.wanted:
        between = f"between {point.low:.4g} and {point.high:.4g}/s"
        return Ground(Rank.REFUTED, f"saturated {between}, {_less(course)}", SIZE)
    return None


def _less(course: SaturationSequence) -> str:
    return f"less than {course.plan.wanted:.4g}/s wanted"


def _failure(course: SaturationSequence, bracket: Bracket) -> str:
    """Why the lowest level that did not hold did not."""
    return next(
        (step.saturated for step in at_level(course, bracket.high or 0.0) if step.saturated), ""
    )


def _undecided(course: SaturationSequence, bracket: Bracket) -> Ground | None:
    """INVALID where the latency limit of a level stayed undecided; None where every level is
    decided.
    """
    if not bracket.undecided:
        return None
    last = _open_steps(course, bracket)[-1]
    limit = last.exceeded
    assert limit is not None
    return Ground(
        Rank.OPEN,
        f"{last.step.level:.4g} {course.plan.unit}: {last.undecided}",
        f"give a longer <step_time>, or limit a lower percentile: {limit.percentile} needs"
        f" {limit.needed} requests of a level at least, and more where some take longer",
    )


APART = 1.1
# The backlog of a level that held may have grown by this many times the bracket's width; 5 s can
# show 2 % at best.
WIDE, NARROWEST = 2.0, 0.02


@dataclass(frozen=True, slots=True)
class SaturationResult(Written):
    """The result of a run."""

    constants: ClassVar = {**VERSIONED, "kind": KIND}

    plan: SaturationPlan
    verdict: Verdict
    point: Annotated[
        Estimate | None,
        called("saturation_per_s"),
        "requests a second, interval from the bracket and the proof of its ends.",
    ]
    parallel: Annotated[
        int | None,
        called("saturation_in_flight"),
        "smallest number in flight that reaches it (closed).",
    ]
    warm: Annotated[Assessed | None, INNER]
    steps: tuple[Assessed, ...]
    operating: Annotated[
        Assessed | None,
        called("operating_point"),
        "the step at 70 % of it, None when not measured, or when the tester was late in it.",
    ]
    knee: Annotated[int | None, "level from which more load brings less, by Kneedle"]
    searched: Annotated[int, called("steps_before_confirmation"), "steps before it was confirmed."]
    warnings: tuple[str, ...]
    elapsed_s: float
    interrupted: str
    lost: Annotated[str, 'how a load agent was lost, "" when none was.'] = ""


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
    point, operating = _point(course), course.operating
    if _late(course, point):
        # it would be a figure of the tester
        point, operating = None, None
    low = bracket.low if bracket and not plan.open else None
    return SaturationResult(
        plan=plan,
        verdict=judged(course, point, interrupted, lost),
        point=point,
        parallel=int(low) if low else None,
        warm=course.warm,
        steps=tuple(course.steps),
        operating=None if operating and operating.tester else operating,
        knee=kneedle(_curve(course)),
        searched=bracket.steps if bracket else len(course.steps),
        warnings=tuple(_warnings(course, known=point is not None)),
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
            success = course.plan.success if step.errors else 1.0
            highest.append(step.goodput.high / success)
    return max(highest)


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
        relative = half / step.goodput.value if math.isfinite(half) else math.inf
        curve.append(MeasuredThroughput(level, step.goodput.value, relative))
    return curve


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


def _warnings(course: SaturationSequence, *, known: bool) -> list[str]:
    """Warnings, which decide nothing. known: whether there is a saturation point."""
    lines = [*(_imprecise(course) if known else ()), *_measured_again(course)]
    operating = course.operating
    if operating and operating.tester:
        lines.append(f"the latency at {operating.step.level:.4g}/s is unknown: {operating.tester}")
    lines += _disturbed(course)
    few = sum(step.few for step in searched(course))
    if few:
        steps = plural(few, "step")
        lines.append(f"{steps} had fewer than {FEWEST} requests: raise <step_time>, or <start>")
    if operating and operating.saturated and not operating.tester:
        lines.append(f"even the operating point was saturated: {operating.saturated}")
    lines += _pod_events(course)
    if course.warm and course.warm.errors:
        lines.append(f"some requests of the probe failed: {', '.join(course.warm.errors)}")
    return lines


def _pod_events(course: SaturationSequence) -> list[str]:
    """A warning of the first level that held although Kubernetes warned about its pods."""
    for assessed in searched(course):
        if assessed.step.pods and assessed.step.pods.events and not assessed.saturated:
            return [
                f"{level_text(assessed.step)} held, but pods were in trouble:"
                f" {assessed.step.pods.events[0]}; give them more CPU, memory or concurrency"
            ]
    return []


def _imprecise(course: SaturationSequence) -> list[str]:
    """Warnings of open load about a wide bracket, or an imprecise lower end."""
    bracket = course.bracket
    if not (bracket and bracket.low and bracket.high and course.plan.open):
        return []
    lines = []
    wide, precision = bracket.high / bracket.low - 1, course.plan.precision
    if wide > precision * 1.5:
        lines.append(
            f"the bracket is {wide:.1%} wide: give a <start> nearer to it for a narrower one"
        )
    grown = 1 - _least(course, bracket.low) / bracket.low
    if grown > WIDE * max(precision, NARROWEST):  # so the level may be beyond saturation
        lines.append(
            f"at the saturation point the backlog may still have grown by {grown:.1%} of the rate:"
            " raise <step_time>"
        )
    return lines


def _measured_again(course: SaturationSequence) -> list[str]:
    """How many steps were measured again since the tester was late.

    A late operating point has a warning of its own.
    """
    late = [step for step in course.steps if step.tester]
    again = late
    if course.operating and course.operating.tester:
        again = [step for step in late if step.step.phase != Phase.OPERATE]
    if not again or (course.bracket and course.bracket.unfit):
        return []
    reason = next(
        filter(None, [machine_full(step.step.around) for step in late if step.step.around]), ""
    )
    if reason:
        reason = f" ({reason})"
    return [f"in {len(again)} steps the tester itself was late{reason}; they were measured again"]

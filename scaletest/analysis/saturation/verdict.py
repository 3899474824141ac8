"""The verdict on a run: what its steps prove, and what to do where they do not.

PASS      the saturation point was found and confirmed, and reaches the wanted rate
FAIL      it surely lies below the wanted rate, or no level of a sweep reaches that
INVALID   it was not found: not reached, not the same when repeated, an undecided latency limit,
          or the tester was late

The operating point is measured after that and decides nothing: its disturbances are warnings.
"""

from __future__ import annotations

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.saturation.sequence import SaturationSequence, at_level, same, searched
from scaletest.analysis.saturation.step import Assessed
from scaletest.analysis.verdict_order import Ground, Rank, decide
from scaletest.model import Verdict
from scaletest.model.saturation import Mode, Phase

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
    if course.bracket is None:
        grounds += [
            _swept(course),
            Ground(Rank.OPEN, "the search was not finished", "run it again"),
        ]
    elif course.plan.mode == Mode.SWEEP:
        grounds.append(_of_sweep(course, point))
    else:
        grounds.append(_of_search(course, point))
    return decide(grounds)


def _lost(course: SaturationSequence) -> Ground | None:
    """Not the subject where records are missing: a file was cut."""
    for step in course.steps:
        if step.lost:
            reason = f"{step.lost} of {step.step.requests} records of step {step.step.number}"
            return Ground(Rank.NOT_THE_SUBJECT, f"{reason} are missing", "run it again")
    return None


def _broken_off(course: SaturationSequence, interrupted: str, lost: str) -> Ground | None:
    """Open where the run was not measured to its end; None otherwise."""
    if lost:
        remedy = (
            "check why it ended, and run it again; a signal 9 that nobody sent is the kernel's,"
        )
        return Ground(Rank.OPEN, lost, f"{remedy} out of memory")
    if interrupted:
        return Ground(Rank.OPEN, f"interrupted by {interrupted}", "run it to the end")
    if course.warm and course.warm.success == 0 and course.warm.step.requests:
        remedy = "fix the endpoint, or the request"
        return Ground(Rank.OPEN, "no request of the probe succeeded", remedy)
    if course.strayed is not None:
        number = course.strayed.step.number
        reason = f"this version would not have measured step {number}: the run followed other rules"
        return Ground(Rank.OPEN, reason, "run it again; its result.json has the former result")
    if course.gone:
        remedy = (
            "check its log for why it ended; if the load was the reason, give a lower --maximum"
        )
        return Ground(Rank.OPEN, course.gone, remedy)
    return None


def _late(course: SaturationSequence, point: Estimate | None) -> Ground | None:
    """Not the subject where the tester stayed late, and what was found depends on that."""
    late = next((step.tester for step in _spoilt(course)), "")
    unfit = course.bracket and (course.bracket.unfit or point is None)
    if late and (unfit or course.plan.mode == Mode.SWEEP):
        return Ground(Rank.NOT_THE_SUBJECT, late, _undisturbed(late))
    return None


def _swept(course: SaturationSequence) -> Ground | None:
    """Refuted where a level of an unfinished sweep did not hold, and all of them should.

    Where the service is gone, the levels before may have failed because it was about to end.
    """
    if course.plan.mode != Mode.SWEEP or course.plan.wanted or course.strayed or course.gone:
        return None
    for step in searched(course):
        if step.saturated and step.success and not step.tester:
            return _too_much(course, step.step.level, step.saturated)
    return None


def _too_much(course: SaturationSequence, level: float, reason: str) -> Ground:
    """Refuted since a level of a sweep did not hold."""
    reason = f"{level:g} {course.plan.unit}: {reason}"
    return Ground(Rank.REFUTED, reason, "stay below this level")


def _undisturbed(late: str) -> str:
    """The remedy for a tester that was late."""
    if late.startswith("the machine was"):
        return "run the tester on a machine of its own, or end the other programs here"
    return (
        "let nothing else run beside the tester, give it more CPU or --agents N, or set a lower"
        " --maximum"
    )


def _spoilt(course: SaturationSequence) -> list[Assessed]:
    """Steps of the search in which the tester stayed late."""
    outside = (Phase.WARM, Phase.OPERATE)
    return [step for step in course.spoilt if step.step.phase not in outside]


def _of_search(course: SaturationSequence, point: Estimate | None) -> Ground:
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    decided = _of_wanted(course, point)
    if decided is not None:
        return decided
    if point is None:
        return _of_nothing(course)
    reached = bracket.confirmed
    if plan.open:
        reached = bracket.high is not None
    if not reached:
        return _undecided(course) or _unreached(course, point)
    if not bracket.confirmed:
        return Ground(
            Rank.OPEN,
            "the ends of the bracket differed when they were measured again",
            "measure longer with --step-time, or repeat more with --confirm",
        )
    return _of_point(course, point)


def _unreached(course: SaturationSequence, point: Estimate) -> Ground:
    """INVALID since the search ended before it met a limit of the service."""
    reason = "throughput reached no plateau"
    if course.plan.open:
        sure = ""
        if course.plan.wanted:
            sure = f", {point.low:.4g}/s for sure"
        reason = f"{point.value:.4g}/s held{sure}, and no limit was reached"
    remedy = "raise --maximum, --max-in-flight or --most-steps"
    return Ground(Rank.OPEN, reason, remedy)


def _of_nothing(course: SaturationSequence) -> Ground:
    """The verdict on a search in which no level held: each was too much, or none was decided."""
    bracket = course.bracket
    assert bracket is not None
    unclear = _undecided(course)
    if bracket.high is None or (unclear is not None and any(map(_counted, _open_steps(course)))):
        return unclear or Ground(Rank.OPEN, "no level was measured", "give more --most-steps")
    reason = f"even {bracket.high:.4g} {course.plan.unit} was saturated: {_failure(course)}"
    if course.warm and course.warm.saturated:
        remedy = (
            "one request at a time is too slow as well: look at the service, or set a wider"
            " --latency-limit"
        )
    else:
        remedy = "give a lower --start, or more --most-steps"
    return Ground(Rank.OPEN, reason, remedy)


def _open_steps(course: SaturationSequence) -> list[Assessed]:
    """The last step of each undecided level."""
    assert course.bracket is not None
    return [at_level(course, level)[-1] for level in course.bracket.undecided]


def _counted(step: Assessed) -> bool:
    """Whether requests were counted at the level of this step."""
    return step.exceeded is not None and step.exceeded.count > 0


def _of_point(course: SaturationSequence, point: Estimate) -> Ground:
    """The verdict on a confirmed point that the wanted rate does not decide: by its precision."""
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    between = f"between {point.low:.4g} and {point.high:.4g}/s"
    if plan.wanted:
        return _undecided(course) or Ground(
            Rank.OPEN,
            f"saturated {between}, {plan.wanted:.4g}/s wanted: undecided",
            "give a smaller --precision and a longer --step-time",
        )
    distance = 0.0
    if bracket.high is not None:
        distance = bracket.high - point.value
    if not plan.open or distance > WIDEST * point.value:
        unclear = _undecided(course)
        if unclear is not None:
            return unclear
    if point.value - point.low > WIDEST * point.value:
        return Ground(
            Rank.OPEN,
            f"saturated {between}: completions are too few or too uneven to know where",
            "give a longer --step-time, and let nothing else run beside service and tester",
        )
    return Ground(Rank.MET, f"saturated at {point.value:.4g}/s, {between}{_repeats(course)}")


def _repeats(course: SaturationSequence) -> str:
    """Whether the steps at the ends of the bracket agree, each alone."""
    bracket = course.bracket
    assert bracket is not None
    if not course.plan.open:
        return ", and the same when repeated"
    steps = [*at_level(course, bracket.low or 0.0), *at_level(course, bracket.high or 0.0)]
    contrary = sum(_contrary(step, same(step.step.level, bracket.low or 0.0)) for step in steps)
    if not contrary:
        return ", and the same when repeated"
    return f", although {contrary} of the {len(steps)} steps at these two rates showed the contrary"


def _contrary(step: Assessed, lower_end: bool) -> bool:
    """Whether a step alone shows the contrary of the finding on its level.

    lower_end: whether the level held, as the lower end of the bracket.
    """
    limit = step.alone
    if lower_end:
        return bool(step.overload) or (limit is not None and limit.refuted)
    return not step.overload and (limit is None or limit.shown)


def _of_wanted(course: SaturationSequence, point: Estimate | None) -> Ground | None:
    """PASS or FAIL by the wanted rate; None without one, or where the steps leave it open.

    A sweep has fixed levels: a rate that none of them reached did not hold.
    """
    if not course.plan.wanted:
        return None
    if point is None:
        return _below_all(course)
    return _passed(course, point) or _missed(course, point)


def _below_all(course: SaturationSequence) -> Ground | None:
    """FAIL where no level held and the wanted rate is no less than the lowest."""
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    lower = (
        plan.open and not bracket.unfit and bracket.high is not None and bracket.high <= plan.wanted
    )
    if not lower:
        return None
    reason = f"even {bracket.high or 0:.4g}/s was too much: {_failure(course)}; {_less(course)}"
    return Ground(Rank.REFUTED, reason, SIZE)


def _passed(course: SaturationSequence, point: Estimate) -> Ground | None:
    """PASS where the rate held."""
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    sure = plan.mode == Mode.SWEEP or bracket.confirmed or bracket.high is None
    if not sure or point.low < plan.wanted:
        return None
    return Ground(Rank.MET, f"{point.low:.4g}/s held, {plan.wanted:.4g}/s were wanted")


def _missed(course: SaturationSequence, point: Estimate) -> Ground | None:
    """FAIL where the service is saturated below the rate, or the highest level of a sweep lies
    below it.
    """
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    swept = plan.mode == Mode.SWEEP
    if (
        swept
        and plan.open
        and bracket.high is None
        and not bracket.undecided
        and point.value < plan.wanted
    ):
        reason = f"the highest level of the sweep, {point.value:.4g}/s, is {_less(course)}"
        return Ground(Rank.REFUTED, reason, "raise --maximum to see whether the service holds more")
    limited = swept or bracket.confirmed
    if limited and (bracket.high is not None or not plan.open) and point.high < plan.wanted:
        return Ground(Rank.REFUTED, f"saturated at {point.value:.4g}/s, {_less(course)}", SIZE)
    return None


def _less(course: SaturationSequence) -> str:
    return f"less than {course.plan.wanted:.4g}/s wanted"


def _failure(course: SaturationSequence) -> str:
    """Why the lowest level that did not hold did not."""
    assert course.bracket is not None and course.bracket.high is not None
    steps = at_level(course, course.bracket.high)
    return next((step.saturated for step in steps if step.saturated), "")


def _undecided(course: SaturationSequence) -> Ground | None:
    """INVALID where the latency limit of a level stayed undecided; None where every level is
    decided.
    """
    assert course.bracket is not None
    if not course.bracket.undecided:
        return None
    last = _open_steps(course)[-1]
    limit = last.exceeded
    assert limit is not None
    return Ground(
        Rank.OPEN,
        f"{last.step.level:.4g} {course.plan.unit}: {last.undecided}",
        f"give a longer --step-time, or limit a lower percentile: {limit.percentile} needs"
        f" {limit.needed} requests of a level at least, and more where some take longer",
    )


def _of_sweep(course: SaturationSequence, point: Estimate | None) -> Ground:
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    decided = _of_wanted(course, point)
    if decided is not None:
        return decided
    if not plan.wanted and bracket.high is not None:
        return _too_much(course, bracket.high, _failure(course))
    unclear = _undecided(course)
    if unclear is not None:
        return unclear
    if not plan.wanted:
        return Ground(Rank.MET, "every level held")
    if point is None:
        reason = (
            f"{bracket.high or 0:g} {plan.unit} is the lowest level and did not hold:"
            f" {_failure(course)}"
        )
        return Ground(Rank.OPEN, reason, "give a lower --start")
    return Ground(
        Rank.OPEN,
        f"between {point.low:.4g} and {point.high:.4g}/s held, {plan.wanted:.4g}/s wanted:"
        " undecided",
        "add levels above the wanted rate (--maximum, --increment), or give a longer --step-time",
    )

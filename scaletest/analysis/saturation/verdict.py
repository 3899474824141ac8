"""The verdict on a course: what its steps prove, and what to do where they do not.

PASS      the saturation point was found and confirmed, and reaches what is wanted
FAIL      it surely lies below what is wanted, or no level of a sweep reaches that
INVALID   it was not found: not reached, not the same when repeated, a latency limit that stayed undecided, or the
          tester was late

The operating point is measured after that and decides nothing: what disturbs it is a warning.
"""

from __future__ import annotations

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.saturation.sequence import SaturationSequence, at_level, same
from scaletest.analysis.saturation.step import Assessed
from scaletest.model import Verdict, VerdictKind
from scaletest.model.saturation import Mode, Phase

SIZE = "see: scaletest size, for the pods and nodes that it takes"
# A point whose interval reaches down by more than this part of it is none.
WIDEST = 0.25


def lost(why: str) -> Verdict:
    """What was measured before stays on record, but the course did not come to its end."""
    return Verdict(
        VerdictKind.INVALID,
        why,
        "look why it ended, and run it again; a signal 9 that nobody sent is the kernel's, out of memory",
    )


def judged(course: SaturationSequence, point: Estimate | None, interrupted: str) -> Verdict:
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
        remedy = "let nothing else run beside the tester, give it more CPU or --agents N, or set a lower --maximum"
        if late.startswith("the machine was"):
            remedy = "run the tester on a machine of its own, or end what else runs here"
        return Verdict(invalid, late, remedy)
    return _of_sweep(course, point) if plan.mode == Mode.SWEEP else _of_search(course, point)


def _spoilt(course: SaturationSequence) -> list[Assessed]:
    """Steps of the search that the tester spoilt for good."""
    return [one for one in course.spoilt if one.step.phase not in (Phase.WARM, Phase.OPERATE)]


def _of_search(course: SaturationSequence, point: Estimate | None) -> Verdict:
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    decided = _of_wanted(course, point)
    if decided is not None:
        return decided
    if point is None:
        return _of_nothing(course)
    reached = bracket.high is not None if plan.open else bracket.confirmed
    if not reached:
        sure = f", {point.low:.4g}/s for sure" if plan.wanted else ""
        held = f"{point.value:.4g}/s held{sure}, and no limit was met" if plan.open else "throughput met no plateau"
        return _undecided(course) or Verdict(
            VerdictKind.INVALID, held, "raise --maximum, --max-in-flight or --most-steps"
        )
    if not bracket.confirmed:
        return Verdict(
            VerdictKind.INVALID,
            "repeated, the ends of the bracket did not say the same",
            "measure longer with --step-time, or repeat more with --confirm",
        )
    return _of_point(course, point)


def _of_nothing(course: SaturationSequence) -> Verdict:
    """Of a search in which no level held: was each too much, or was none decided?"""
    bracket = course.bracket
    assert bracket is not None
    unclear = _undecided(course)
    if bracket.high is None or (unclear is not None and any(map(_counted, _open_steps(course)))):
        return unclear or Verdict(VerdictKind.INVALID, "no level was measured", "give more --most-steps")
    reason = f"even {bracket.high:.4g} {course.plan.unit} was saturated: {_failure(course)}"
    if course.warm and course.warm.saturated:
        remedy = "one request at a time is too slow as well: look at the service, or set a wider --latency-limit"
    else:
        remedy = "give a lower --start, or more --most-steps"
    return Verdict(VerdictKind.INVALID, reason, remedy)


def _open_steps(course: SaturationSequence) -> list[Assessed]:
    """The last step of each undecided level."""
    assert course.bracket is not None
    return [at_level(course, level)[-1] for level in course.bracket.undecided]


def _counted(found: Assessed) -> bool:
    """Whether requests were counted at the level of this step."""
    return found.exceeded is not None and found.exceeded.count > 0


def _of_point(course: SaturationSequence, point: Estimate) -> Verdict:
    """Of a point that was confirmed, where what is wanted decides nothing: is it known well enough?"""
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    between = f"between {point.low:.4g} and {point.high:.4g}/s"
    if plan.wanted:
        return _undecided(course) or Verdict(
            VerdictKind.INVALID,
            f"saturated {between}, {plan.wanted:.4g}/s wanted: undecided",
            "give a smaller --precision and a longer --step-time",
        )
    wide = plan.open and bracket.high is not None and bracket.high - point.value > WIDEST * point.value
    unclear = _undecided(course) if wide or not plan.open else None
    if unclear is not None:
        return unclear
    if point.value - point.low > WIDEST * point.value:
        return Verdict(
            VerdictKind.INVALID,
            f"saturated {between}: completions are too few or too uneven to say where",
            "give a longer --step-time, and let nothing else run beside service and tester",
        )
    return Verdict(VerdictKind.PASS, f"saturated at {point.value:.4g}/s, {between}{_repeats(course)}")


def _repeats(course: SaturationSequence) -> str:
    """Whether the steps at the ends of the bracket agree, each alone."""
    bracket = course.bracket
    assert bracket is not None
    if not course.plan.open:
        return ", and the same when repeated"
    steps = [*at_level(course, bracket.low or 0.0), *at_level(course, bracket.high or 0.0)]
    contrary = sum(_contrary(one, same(one.step.level, bracket.low or 0.0)) for one in steps)
    if not contrary:
        return ", and the same when repeated"
    return f", although {contrary} of the {len(steps)} steps at these two rates said the contrary"


def _contrary(found: Assessed, held: bool) -> bool:
    """Whether a step alone says the contrary of what its level was taken for."""
    limit = found.alone
    if held:
        return bool(found.overload) or (limit is not None and limit.refuted)
    return not found.overload and (limit is None or limit.shown)


def _of_wanted(course: SaturationSequence, point: Estimate | None) -> Verdict | None:
    """PASS or FAIL by the rate that is wanted; None where none is, or where the steps leave it open.

    A sweep has fixed levels: what none of them reached is not held.
    """
    if not course.plan.wanted:
        return None
    return _below_all(course) if point is None else _held(course, point) or _missed(course, point)


def _below_all(course: SaturationSequence) -> Verdict | None:
    """FAIL where no level held and what is wanted is no less than the lowest."""
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    lower = plan.open and not bracket.unfit and bracket.high is not None and bracket.high <= plan.wanted
    if not lower:
        return None
    reason = f"even {bracket.high or 0:.4g}/s was too much: {_failure(course)}; {_less(course)}"
    return Verdict(VerdictKind.FAIL, reason, SIZE)


def _held(course: SaturationSequence, point: Estimate) -> Verdict | None:
    """PASS where the rate held."""
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    sure = plan.mode == Mode.SWEEP or bracket.confirmed or bracket.high is None
    if not sure or point.low < plan.wanted:
        return None
    return Verdict(VerdictKind.PASS, f"{point.low:.4g}/s held, {plan.wanted:.4g}/s were wanted")


def _missed(course: SaturationSequence, point: Estimate) -> Verdict | None:
    """FAIL where the service is saturated below the rate, or the highest level of a sweep lies below it."""
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    swept = plan.mode == Mode.SWEEP
    if swept and plan.open and bracket.high is None and not bracket.undecided and point.value < plan.wanted:
        reason = f"the highest level of the sweep, {point.value:.4g}/s, is {_less(course)}"
        return Verdict(VerdictKind.FAIL, reason, "raise --maximum to see whether the service holds more")
    limited = swept or bracket.confirmed
    if limited and (bracket.high is not None or not plan.open) and point.high < plan.wanted:
        return Verdict(VerdictKind.FAIL, f"saturated at {point.value:.4g}/s, {_less(course)}", SIZE)
    return None


def _less(course: SaturationSequence) -> str:
    return f"less than {course.plan.wanted:.4g}/s wanted"


def _failure(course: SaturationSequence) -> str:
    """Why the lowest level that did not hold did not."""
    assert course.bracket is not None and course.bracket.high is not None
    return next((one.saturated for one in at_level(course, course.bracket.high) if one.saturated), "")


def _undecided(course: SaturationSequence) -> Verdict | None:
    """INVALID where the latency limit of a level stayed undecided; None where every level is decided."""
    assert course.bracket is not None
    if not course.bracket.undecided:
        return None
    last = _open_steps(course)[-1]
    limit = last.exceeded
    assert limit is not None
    return Verdict(
        VerdictKind.INVALID,
        f"{last.step.level:.4g} {course.plan.unit}: {last.undecided}",
        f"give a longer --step-time, or limit a lower percentile: {limit.percentile} needs {limit.needed} requests "
        "of a level at least, and more where some take longer",
    )


def _of_sweep(course: SaturationSequence, point: Estimate | None) -> Verdict:
    plan, bracket = course.plan, course.bracket
    assert bracket is not None
    decided = _of_wanted(course, point)
    if decided is not None:
        return decided
    if not plan.wanted and bracket.high is not None:
        reason = f"{bracket.high:g} {plan.unit}: {_failure(course)}"
        return Verdict(VerdictKind.FAIL, reason, "stay below this level")
    unclear = _undecided(course)
    if unclear is not None:
        return unclear
    if not plan.wanted:
        return Verdict(VerdictKind.PASS, "every level held")
    if point is None:
        reason = f"{bracket.high or 0:g} {plan.unit} is the lowest level and did not hold: {_failure(course)}"
        return Verdict(VerdictKind.INVALID, reason, "give a lower --start")
    return Verdict(
        VerdictKind.INVALID,
        f"between {point.low:.4g} and {point.high:.4g}/s held, {plan.wanted:.4g}/s wanted: undecided",
        "add levels above what is wanted (--maximum, --increment), or give a longer --step-time",
    )

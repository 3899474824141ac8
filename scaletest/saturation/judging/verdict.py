"""The verdict on a saturation run.

PASS      the saturation point was found and confirmed, and reaches the wanted rate
FAIL      it surely lies below the wanted rate
INVALID   it was not found: not reached, not the same when repeated, an undecided latency limit,
          or the tester was late
"""

from scaletest.model import Verdict
from scaletest.saturation.judging.bracket import Bracket
from scaletest.saturation.judging.sequence import OUTSIDE, SaturationSequence, at_level, same
from scaletest.saturation.judging.step import Assessed
from scaletest.stats.estimate import Estimate
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds

SIZE = "see: scaletest size, for the pods and nodes that it takes"
# A point whose interval reaches down by more than this part of it is too imprecise.
WIDEST = 0.25


def judge(
    course: SaturationSequence, point: Estimate | None, interrupted: str = "", lost: str = ""
) -> Verdict:
    """Return the verdict on a run.

    point: the saturation point in requests a second. lost: how a load agent was lost, "" when none
    was; the steps before that stay on record.
    """
    grounds: list[Ground | None] = []
    # something else than the service was measured
    for step in course.steps:
        if step.lost:  # a file was cut
            records = f"{step.lost} of {step.step.requests} records of step {step.step.number}"
            grounds.append(Ground(Rank.NOT_THE_SUBJECT, f"{records} are missing", "run it again"))
    late = lateness_that_matters(course, point)
    if late:
        remedy = (
            "let nothing else run beside the tester, give it more CPU or <agents> N, or set a lower"
            " <maximum>"
        )
        if late.startswith("the machine was"):
            remedy = "run the tester on a machine of its own, or end the other programs here"
        grounds.append(Ground(Rank.NOT_THE_SUBJECT, late, remedy))
    # the run was not measured to its end
    bracket, warm, strayed = course.bracket, course.warm, course.strayed
    number = strayed.step.number if strayed else 0
    for applies, reason, remedy in (
        (
            lost,
            lost,
            "check why it ended, and run it again; a signal 9 that nobody sent is the kernel's, out"
            " of memory",
        ),
        (interrupted, f"interrupted by {interrupted}", "run it to the end"),
        (
            warm and warm.success == 0 and warm.step.requests,
            "no request of the probe succeeded",
            "fix the endpoint, or the request",
        ),
        (
            strayed,
            f"this version would not have measured step {number}: the run followed other rules",
            "run it again; its result.json has the former result",
        ),
        (
            course.gone,
            course.gone,
            "check its log for why it ended; if the load was the reason, give a lower <maximum>",
        ),
        (bracket is None, "the search was not finished", "run it again"),
    ):
        if applies:
            grounds.append(Ground(Rank.OPEN, reason, remedy))
    # what was found
    if bracket is not None:
        grounds.append(
            _judge_wanted(course, bracket, point) or _judge_search(course, bracket, point)
        )
    return verdict_of_grounds(grounds)


def lateness_that_matters(course: SaturationSequence, point: Estimate | None) -> str:
    """Return how the tester stayed late, where what was found depends on that; else ""."""
    unfit = course.bracket and (course.bracket.unfit or point is None)
    late = (step.tester for step in course.spoilt if step.step.phase not in OUTSIDE)
    return next(late, "") if unfit else ""


def _judge_wanted(
    course: SaturationSequence, bracket: Bracket, point: Estimate | None
) -> Ground | None:
    """PASS or FAIL by the wanted rate; None without one, or where the steps leave it open."""
    plan, high = course.plan, bracket.high
    if not plan.wanted:
        return None
    less = f"less than {plan.wanted:.4g}/s wanted"
    if point is None:
        # refuted where no level held and the wanted rate is no less than the lowest
        if not plan.open or bracket.unfit or high is None or high > plan.wanted:
            return None
        reason = f"even {high:.4g}/s was too much: {_failure(course, bracket)}; {less}"
        return Ground(Rank.REFUTED, reason, SIZE)
    if (bracket.confirmed or high is None) and point.low >= plan.wanted:
        return Ground(Rank.MET, f"{point.low:.4g}/s held, {plan.wanted:.4g}/s were wanted")
    limited = bracket.confirmed and (high is not None or not plan.open)
    if limited and point.high < plan.wanted:
        between = f"between {point.low:.4g} and {point.high:.4g}/s"
        return Ground(Rank.REFUTED, f"saturated {between}, {less}", SIZE)
    return None


def _judge_search(course: SaturationSequence, bracket: Bracket, point: Estimate | None) -> Ground:
    """PASS where the point is known well enough; else what leaves it open."""
    plan = course.plan
    if point is None:
        return _no_level_held(course, bracket)
    undecided = _undecided_ground(course, bracket)
    reached = bracket.high is not None if plan.open else bracket.confirmed
    if not reached:
        # the search ended before it met a limit of the service
        reason = "throughput reached no plateau"
        if plan.open:
            sure = f", {point.low:.4g}/s for sure" if plan.wanted else ""
            reason = f"{point.value:.4g}/s held{sure}, and no limit was reached"
        return undecided or Ground(Rank.OPEN, reason, "raise <start>, <maximum> or <max_in_flight>")
    if not bracket.confirmed:
        return Ground(
            Rank.OPEN,
            "the ends of the bracket differed when they were measured again",
            "measure longer with <step_time>",
        )
    between = f"between {point.low:.4g} and {point.high:.4g}/s"
    if plan.wanted:
        return undecided or Ground(
            Rank.OPEN,
            f"saturated {between}, {plan.wanted:.4g}/s wanted: undecided",
            "give a smaller <precision> and a longer <step_time>",
        )
    # how precise it is
    distance = bracket.high - point.value if bracket.high is not None else 0.0
    if undecided is not None and (not plan.open or distance > WIDEST * point.value):
        return undecided
    if point.value - point.low > WIDEST * point.value:
        return Ground(
            Rank.OPEN,
            f"saturated {between}: completions are too few or too uneven to know where",
            "give a longer <step_time>, and let nothing else run beside service and tester",
        )
    return Ground(Rank.MET, f"saturated {between}{_agreement(course, bracket)}")


def _agreement(course: SaturationSequence, bracket: Bracket) -> str:
    """Say whether the steps at the ends of the bracket agree, each alone."""
    low, contrary = bracket.low or 0.0, 0
    steps = []
    if course.plan.open:
        steps = [*at_level(course, low), *at_level(course, bracket.high or 0.0)]
    for step in steps:
        limit = step.alone
        if same(step.step.level, low):
            contrary += bool(step.overload) or (limit is not None and limit.refuted)
        else:
            contrary += not step.overload and (limit is None or limit.shown)
    if not contrary:
        return ", and the same when repeated"
    return f", although {contrary} of the {len(steps)} steps at these rates disagree"


def _no_level_held(course: SaturationSequence, bracket: Bracket) -> Ground:
    """Return the ground where each level was too much, or none was decided."""
    unclear = _undecided_ground(course, bracket)
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
    """Return the last step of each undecided level."""
    return [at_level(course, level)[-1] for level in bracket.undecided]


def _failure(course: SaturationSequence, bracket: Bracket) -> str:
    """Return why the lowest level that did not hold did not."""
    return next(
        (step.saturated for step in at_level(course, bracket.high or 0.0) if step.saturated), ""
    )


def _undecided_ground(course: SaturationSequence, bracket: Bracket) -> Ground | None:
    """Return the ground where the latency limit of a level stayed undecided; else None."""
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

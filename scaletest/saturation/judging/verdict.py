"""The verdict on a saturation run.

PASS      the saturation point was found and confirmed, and reaches the wanted rate
FAIL      it surely lies below the wanted rate
INVALID   it was not found: not reached, not the same when repeated, an undecided latency limit,
          or the tester was late
"""

from scaletest.model import Verdict
from scaletest.render.numbers import with_interval
from scaletest.saturation.judging.step import AssessedStep
from scaletest.saturation.judging.step_sequence import (
    PHASES_BESIDE_SEARCH,
    SaturationSequence,
    steps_at_level,
)
from scaletest.saturation.judging.trial import Bracket
from scaletest.stats.estimate import Estimate
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds

SIZE = "see: scaletest size, for the pods and nodes that it takes"
# A point whose interval reaches down by more than this part of it is too imprecise.
MOST_IMPRECISION = 0.25


def judge_sequence(
    sequence: SaturationSequence, point: Estimate | None, interrupted: str = "", lost: str = ""
) -> Verdict:
    """Return the verdict on a run.

    point: the saturation point in requests a second. lost: how a load agent was lost, "" when none
    was; the steps before that stay on record.
    """
    grounds: list[Ground | None] = []
    # the tester was measured, and not the service
    late = lateness_that_matters(sequence, point)
    if late:
        remedy = (
            "run nothing else beside the load generator, give it more CPU or <agents> N, or set a"
            " lower <maximum>"
        )
        if late.startswith("the machine was"):
            remedy = "run the load generator on its own machine, or stop the other programs here"
        grounds.append(Ground(Rank.NOT_THE_SUBJECT, late, remedy))
    # the run was not measured to its end
    bracket, warm, strayed = sequence.bracket, sequence.warm, sequence.strayed
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
            sequence.gone,
            sequence.gone,
            "check its log for why it ended; if the load was the reason, give a lower <maximum>",
        ),
        (bracket is None, "the search was not finished", "run it again"),
    ):
        if applies:
            grounds.append(Ground(Rank.OPEN, reason, remedy))
    # what was found
    if bracket is not None:
        grounds.append(
            _judge_wanted(sequence, bracket, point) or _judge_search(sequence, bracket, point)
        )
    return verdict_of_grounds(grounds)


def lateness_that_matters(sequence: SaturationSequence, point: Estimate | None) -> str:
    """Return how the tester stayed late, where what was found depends on that; else ""."""
    matters = sequence.bracket and (sequence.bracket.tester_was_late or point is None)
    late = (step.tester for step in sequence.spoilt if step.step.phase not in PHASES_BESIDE_SEARCH)
    return next(late, "") if matters else ""


def _judge_wanted(
    sequence: SaturationSequence, bracket: Bracket, point: Estimate | None
) -> Ground | None:
    """Return PASS or FAIL by the wanted rate; None without one, or where steps leave it open."""
    plan, high = sequence.plan, bracket.high
    if not plan.wanted:
        return None
    too_little = f"less than {plan.wanted:.4g}/s wanted"
    if point is None:
        # refuted where no level held and the wanted rate is no less than the lowest
        if not plan.open or bracket.tester_was_late or high is None or high > plan.wanted:
            return None
        reason = (
            f"even {high:.4g}/s was too much: {_failure_reason(sequence, bracket)}; {too_little}"
        )
        return Ground(Rank.REFUTED, reason, SIZE)
    if (bracket.confirmed or high is None) and point.low >= plan.wanted:
        return Ground(Rank.MET, f"{point.low:.4g}/s held, {plan.wanted:.4g}/s were wanted")
    limited = bracket.confirmed and (high is not None or not plan.open)
    if limited and point.high < plan.wanted:
        between = f"between {point.low:.4g} and {point.high:.4g}/s"
        return Ground(Rank.REFUTED, f"saturates {between}, {too_little}", SIZE)
    return None


def _judge_search(sequence: SaturationSequence, bracket: Bracket, point: Estimate | None) -> Ground:
    """Return PASS where the point is known well enough; else what leaves it open."""
    plan = sequence.plan
    if point is None:
        return _ground_without_point(sequence, bracket)
    undecided = _undecided_ground(sequence, bracket)
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
            f"saturates {between}, {plan.wanted:.4g}/s wanted: undecided",
            "give a smaller <precision> and a longer <step_time>",
        )
    # how precise it is
    above = bracket.high - point.value if bracket.high is not None else 0.0
    if undecided is not None and (not plan.open or above > MOST_IMPRECISION * point.value):
        return undecided
    if point.value - point.low > MOST_IMPRECISION * point.value:
        return Ground(
            Rank.OPEN,
            f"saturates {between}: completions are too few or too uneven to know where",
            "give a longer <step_time>, and run nothing else beside service and load generator",
        )
    rate = with_interval(point.value, point.low, point.high)
    return Ground(Rank.MET, f"saturates at {rate} requests/s")


def _ground_without_point(sequence: SaturationSequence, bracket: Bracket) -> Ground:
    """Return the ground where each level was too much, or none was decided."""
    unclear = _undecided_ground(sequence, bracket)
    counts = [step.exceeded.count for step in _undecided_steps(sequence, bracket) if step.exceeded]
    if bracket.high is None or (unclear is not None and any(counts)):
        return unclear or Ground(Rank.OPEN, "no level was measured", "give another <start>")
    level = f"{bracket.high:.4g} {sequence.plan.unit}"
    reason = f"even {level} was saturated: {_failure_reason(sequence, bracket)}"
    remedy = "give a lower <start>"
    if sequence.warm and sequence.warm.saturated:
        remedy = (
            "one request at a time is too slow as well: look at the service, or set a wider"
            " <latency_limit>"
        )
    return Ground(Rank.OPEN, reason, remedy)


def _undecided_steps(sequence: SaturationSequence, bracket: Bracket) -> list[AssessedStep]:
    """Return the last step of each undecided level."""
    return [steps_at_level(sequence, level)[-1] for level in bracket.undecided]


def _failure_reason(sequence: SaturationSequence, bracket: Bracket) -> str:
    """Return why the lowest level that did not hold did not."""
    return next(
        (
            step.saturated
            for step in steps_at_level(sequence, bracket.high or 0.0)
            if step.saturated
        ),
        "",
    )


def _undecided_ground(sequence: SaturationSequence, bracket: Bracket) -> Ground | None:
    """Return the ground where the latency limit of a level stayed undecided; else None."""
    if not bracket.undecided:
        return None
    last = _undecided_steps(sequence, bracket)[-1]
    limit = last.exceeded
    assert limit is not None
    return Ground(
        Rank.OPEN,
        f"{last.step.level:.4g} {sequence.plan.unit}: {last.undecided}",
        f"give a longer <step_time>, or limit a lower percentile: {limit.percentile} needs"
        f" {limit.needed_count} requests of a level at least, and more where some take longer",
    )

"""Verdict of a search for saturation."""

from dataclasses import replace

import pytest

from scaletest.model import VerdictKind
from scaletest.saturation.judging.evaluation import conclude
from scaletest.saturation.judging.step import assess_step
from scaletest.saturation.judging.step_sequence import MOST_LENGTHS, SaturationSequence
from scaletest.saturation.plan import SaturationPlan
from tests.unit.simulated import PLAN, Simulated, run, step

# Requests a second of which 5 % take longer than 11 ms: 8 slots of 10 ms, simulated for ten
# minutes.
LIMIT_11MS = 430.0


def test_closed_load_below_what_is_wanted_fails() -> None:
    result = run(replace(PLAN, load="closed", wanted=100.0), Simulated(slots=4, service_s=0.1), 1)
    assert result.point is not None and result.point.high < 100
    assert result.verdict.kind is VerdictKind.FAIL, result.verdict
    # and one whose plateau was not reached decides nothing
    short = run(
        replace(PLAN, load="closed", wanted=100.0, maximum=2.0),
        Simulated(slots=4, service_s=0.1),
        1,
    )
    assert short.verdict.kind is VerdictKind.INVALID


@pytest.mark.parametrize(("wanted", "kind"), [(700.0, "PASS"), (1000.0, "FAIL"), (0.0, "PASS")])
def test_the_wanted_rate_decides_the_verdict(wanted: float, kind: str) -> None:
    assert run(replace(PLAN, wanted=wanted), Simulated(), 1).verdict.kind == kind


def test_a_service_that_is_never_saturated_is_undecided() -> None:
    result = run(replace(PLAN, maximum=400.0), Simulated(), 1)
    assert result.verdict.kind is VerdictKind.INVALID
    assert "400" in result.verdict.reason
    assert (
        run(replace(PLAN, maximum=400.0, wanted=300.0), Simulated(), 1).verdict.kind
        is VerdictKind.PASS
    )


def test_a_latency_limit_saturates_too() -> None:
    # given M/D/8, of which 5 % take longer than 11 ms at LIMIT_11MS requests a second
    within = 0
    for seed in range(10):
        result = run(replace(PLAN, limit="p95<11ms"), Simulated(), seed)
        assert result.point is not None and result.verdict.kind is VerdictKind.PASS, result.verdict
        within += result.point.low <= LIMIT_11MS <= result.point.high
    assert within >= 9


def test_few_requests_that_are_all_too_slow_refute_a_latency_limit_at_once() -> None:
    # given a service of 100 ms, and steps of fewer requests than the percentile itself needs
    plan = SaturationPlan("simulated", step_s=5.0, warm_s=0.5, limit="p99<50ms")
    result = run(plan, Simulated(1, 0.1), 1)
    searched = [step for step in result.steps if step.step.phase == "ramp" and step.latency.count]
    assert searched and all(step.saturated and not step.undecided for step in searched)
    assert result.point is None and result.verdict.kind is VerdictKind.INVALID
    assert "took longer than 50 ms" in result.verdict.reason
    # and where a rate is wanted, that is an answer
    assert run(replace(plan, wanted=100.0), Simulated(1, 0.1), 1).verdict.kind is VerdictKind.FAIL


@pytest.mark.parametrize("load", ["open", "closed"])
def test_a_latency_limit_that_too_few_requests_meet_stays_undecided(load: str) -> None:
    # given levels at which four steps together have fewer requests than show p99, none of them too
    # slow
    ends = {"start": 2.0, "maximum": 8.0} if load == "open" else {"start": 1.0, "maximum": 1.0}
    plan = SaturationPlan(
        "simulated", load, step_s=2.0, warm_s=0.5, limit="p99<500ms", wanted=0.0, **ends
    )  # type: ignore[arg-type]
    result = run(plan, Simulated(1, 0.05), 1)
    assert all(step.undecided for step in result.steps if step.step.phase != "warm")
    assert (
        result.verdict.kind is VerdictKind.INVALID
        and "neither refuted nor shown" in result.verdict.reason
    )
    assert "<step_time>" in result.verdict.remedy and "percentile" in result.verdict.remedy


def test_a_step_is_extended_until_its_latency_limit_is_decided() -> None:
    # given 30 requests a second, of which a step counts about 96, and p99 needs 299
    plan = replace(PLAN, start=30.0, maximum=30.0, limit="p99<50ms")
    result = run(plan, Simulated(), 1)
    steps = [step for step in result.steps if step.step.phase == "ramp"]
    assert len(steps) == MOST_LENGTHS
    assert [bool(step.undecided) for step in steps] == [True, True, True, False]
    assert steps[-1].exceeded is not None and steps[-1].exceeded.count >= 299


def test_a_repeat_that_contradicts_a_step_decides_with_the_others() -> None:
    # given a step that held by chance at the rate that was too much
    plan = replace(PLAN, warm_s=0.0, start=100.0, maximum=125.0, precision=0.25)
    course = SaturationSequence(plan)
    turn = iter(range(100))
    while course.next is not None:
        level = course.next.level
        per_s = 100.0 if level > 100 and next(turn) != 1 else level
        rows = Simulated(slots=1, service_s=1 / per_s).open(
            [n / level for n in range(int(level * 4))]
        )
        course.add_step(assess_step(plan, step(level, 4.0, phase=course.next.phase), rows))
    result = conclude(course)
    assert result.verdict.kind is VerdictKind.PASS, result.verdict

"""Assessment of one step of a search for saturation, and growth of the backlog in it."""

import math
import random
from dataclasses import replace

import pytest
from msgspec import structs

from scaletest.load import pace
from scaletest.model import VerdictKind
from scaletest.model.attempt import OK, UNSENT, Attempt
from scaletest.saturation.judging.backlog import (
    backlog_growth,
    completion_rate,
    mean_backlog,
    scarce_backlog_growth,
)
from scaletest.saturation.judging.evaluation import conclude
from scaletest.saturation.judging.step import assess_step
from scaletest.saturation.judging.step_sequence import MOST_AGAIN, SaturationSequence
from scaletest.saturation.plan import SaturationStep
from tests.unit.simulated import PLAN, Simulated, step


def test_errors_are_counted_by_kind() -> None:
    rows = []
    for number in range(1000):
        at = number / 100
        kind = "503" if number % 10 == 0 else "refused" if number % 10 == 1 else OK
        rows.append(Attempt(number, at, at, at, at + 0.02, kind))
    assessed = assess_step(PLAN, step(), rows)
    assert assessed.errors == {"503": 90, "refused": 90}
    assert assessed.saturated.startswith("80.0% succeeded")


def test_requests_never_sent_count_as_backlog_and_not_as_errors() -> None:
    rows = [Attempt(n, n / 100, n / 100, n / 100, n / 100 + 0.01, OK) for n in range(900)]
    rows += [Attempt(900 + n, 9 + n / 100, 9.0, 30.0, 30.0, UNSENT) for n in range(100)]
    assessed = assess_step(PLAN, step(), rows)
    assert assessed.errors == {} and assessed.success == 1.0


@pytest.mark.parametrize(("per_s", "saturated"), [(600, False), (1000, True)])
def test_a_fixed_number_of_requests_saturates_by_its_backlog_too(
    per_s: int, saturated: bool
) -> None:
    # given 2,000 requests, evenly, for a service that does 800 a second; the step ends when the
    # last one has
    rows = Simulated().open([n / per_s for n in range(2000)])
    whole = step(per_s, max(attempt.ended_s for attempt in rows))
    assessed = assess_step(replace(PLAN, count=2000), whole, rows)
    assert bool(assessed.saturated) is saturated
    assert assessed.growth is not None and assessed.growth.value == pytest.approx(
        max(0, per_s - 800), abs=5
    )
    assert assessed.latency.count == 2000


def test_a_late_tester_is_named_and_the_step_measured_again() -> None:
    rows = [
        Attempt(n, n / 100, n / 100 + 0.08, n / 100 + 0.08, n / 100 + 0.09, OK) for n in range(1000)
    ]
    assessed = assess_step(PLAN, step(cpu=0.2, throttled_periods=0.4), rows)
    assert "it was the bottleneck" in assessed.tester and "CPU limit" in assessed.tester
    course = SaturationSequence(replace(PLAN, warm_s=0.0, start=100.0))
    asked = course.next
    for _ in range(MOST_AGAIN):
        course.add_step(assessed)
        assert course.next == asked
    for _ in range(1000):
        if course.next is None:
            break
        course.add_step(assessed)
    result = conclude(course)
    assert result.verdict.kind is VerdictKind.INVALID
    assert "it was the bottleneck" in result.verdict.reason


def test_where_the_tester_is_the_limit_there_is_no_saturation_point() -> None:
    # given a service that holds 800/s, and a tester that is late from 300/s on
    course, chance = SaturationSequence(replace(PLAN, warm_s=0.0, start=100.0)), random.Random(1)
    while course.next is not None:
        probe = course.next
        late_s = 0.08 if probe.level > 300 else 0.0
        rows = Simulated().open(list(pace.exact_poisson(probe.level, 4.0, chance)))
        late = [
            structs.replace(
                attempt, noticed_s=attempt.due_s + late_s, sent_s=attempt.due_s + late_s
            )
            for attempt in rows
        ]
        course.add_step(assess_step(PLAN, step(probe.level, 4.0, phase=probe.phase), late))
    result = conclude(course)
    # expect no figure that is the tester's own, and no warning about its precision
    assert result.verdict.kind is VerdictKind.INVALID
    assert "the load generator sent" in result.verdict.reason
    assert (result.point, result.operating) == (None, None)
    assert not any("bracket" in line or "backlog" in line for line in result.warnings)


def test_a_disturbed_operating_point_is_a_warning_beside_the_saturation_point() -> None:
    # given a run whose point was found and confirmed, and a tester that was late at 70 % of it in
    # every try
    plan = replace(PLAN, step_s=10.0)
    course, chance = SaturationSequence(plan), random.Random(1)
    while course.next is not None:
        probe = course.next
        late_s = 0.08 if probe.phase == "operate" else 0.0
        if probe.phase == "warm":
            rows, kind = Simulated().closed(1, 10.0), "closed"
        else:
            rows, kind = (
                Simulated().open(list(pace.exact_poisson(probe.level, 10.0, chance))),
                "open",
            )
        late = [
            structs.replace(
                attempt, noticed_s=attempt.due_s + late_s, sent_s=attempt.due_s + late_s
            )
            for attempt in rows
        ]
        course.add_step(
            assess_step(
                plan, SaturationStep(0, probe.phase, kind, probe.level, 10.0, 0, 1.0, cpu=0.1), late
            )
        )
    result = conclude(course)
    assert result.verdict.kind is VerdictKind.PASS, result.verdict
    assert result.operating is None
    (warning,) = result.warnings
    # who uses a tenth of a core is not what was too slow
    assert (
        "is unknown" in warning and "kept it from a core" in warning and "bottleneck" not in warning
    )


def test_the_backlog_of_an_overload_grows_by_what_is_too_much() -> None:
    due = [index / 900 for index in range(9000)]
    ended = [index / 800 for index in range(8000)]
    backlog = backlog_growth(due, ended, 1.0, 10.0)
    assert backlog is not None and backlog.low > 0
    assert backlog.value == pytest.approx(100, rel=0.02)
    assert mean_backlog([0.0, 1.0], [1.5], 0.0, 2.0) == pytest.approx((2 + 1 - 0.5) / 2)


def test_a_steady_backlog_does_not_grow() -> None:
    chance = random.Random(1)
    due = sorted(chance.uniform(0, 10) for _ in range(5000))
    backlog = backlog_growth(due, sorted(at + 0.5 for at in due), 1.0, 10.0)
    assert backlog is not None and backlog.low < 0 < backlog.high


def test_few_completions_of_many_that_were_due_say_that_the_backlog_grows() -> None:
    due = [index / 4 for index in range(40)]
    backlog = scarce_backlog_growth(due, [float(index) for index in range(10)], 2.0, 10.0)
    assert backlog is not None and backlog.value == 3.0 and 0 < backlog.low < 3.0 < backlog.high
    # of many slots that take long, all is due and ended alike
    steady = scarce_backlog_growth(
        [index / 2 for index in range(40)], [index / 1.4 for index in range(20)], 2.0, 10.0
    )
    assert steady is not None and steady.low < 0 < steady.high
    assert scarce_backlog_growth(due[:15], [], 0.0, 10.0) is None


def test_too_few_completions_give_no_growth_of_the_backlog() -> None:
    assert backlog_growth([0.0, 1.0], [0.5, 1.5], 0.0, 2.0) is None
    assert completion_rate([0.5, 1.5], 0.0, 2.0).high == math.inf

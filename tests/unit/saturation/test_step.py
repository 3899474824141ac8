"""Assessment of one step of a search for saturation."""

import random
from dataclasses import replace

import pytest
from msgspec import structs

from scaletest.load import pace
from scaletest.model import VerdictKind
from scaletest.model.attempt import OK, UNSENT, Attempt
from scaletest.saturation.judging.evaluation import conclude
from scaletest.saturation.judging.sequence import MOST_AGAIN, SaturationSequence
from scaletest.saturation.judging.step import assess
from scaletest.saturation.plan import SaturationStep
from tests.unit.simulated import PLAN, Simulated, step


def test_errors_are_counted_by_kind() -> None:
    rows = []
    for number in range(1000):
        at = number / 100
        kind = "503" if number % 10 == 0 else "refused" if number % 10 == 1 else OK
        rows.append(Attempt(number, at, at, at, at + 0.02, kind))
    assessed = assess(PLAN, step(), rows)
    assert assessed.errors == {"503": 90, "refused": 90}
    assert assessed.saturated.startswith("80.0% succeeded")


def test_requests_never_sent_count_as_backlog_and_not_as_errors() -> None:
    rows = [Attempt(n, n / 100, n / 100, n / 100, n / 100 + 0.01, OK) for n in range(900)]
    rows += [Attempt(900 + n, 9 + n / 100, 9.0, 30.0, 30.0, UNSENT) for n in range(100)]
    assessed = assess(PLAN, step(), rows)
    assert assessed.errors == {} and assessed.success == 1.0


@pytest.mark.parametrize(("per_s", "saturated"), [(600, False), (1000, True)])
def test_a_fixed_number_of_requests_saturates_by_its_backlog_too(
    per_s: int, saturated: bool
) -> None:
    # given 2,000 requests, evenly, for a service that does 800 a second; the step ends when the
    # last one has
    rows = Simulated().open([n / per_s for n in range(2000)])
    whole = step(per_s, max(attempt.ended_s for attempt in rows))
    assessed = assess(replace(PLAN, count=2000), whole, rows)
    assert bool(assessed.saturated) is saturated
    assert assessed.growth is not None and assessed.growth.value == pytest.approx(
        max(0, per_s - 800), abs=5
    )
    assert assessed.latency.count == 2000


def test_a_late_tester_is_named_and_the_step_measured_again() -> None:
    rows = [
        Attempt(n, n / 100, n / 100 + 0.08, n / 100 + 0.08, n / 100 + 0.09, OK) for n in range(1000)
    ]
    assessed = assess(PLAN, step(cpu=0.2, throttled_s=3.0, throttled_periods=0.4), rows)
    assert "the tester was the bottleneck" in assessed.tester and "CPU limit" in assessed.tester
    course = SaturationSequence(replace(PLAN, warm_s=0.0, start=100.0))
    asked = course.next
    for _ in range(MOST_AGAIN):
        course.tell(assessed)
        assert course.next == asked
    for _ in range(1000):
        if course.next is None:
            break
        course.tell(assessed)
    result = conclude(course)
    assert result.verdict.kind is VerdictKind.INVALID
    assert "the tester was the bottleneck" in result.verdict.reason


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
        course.tell(assess(PLAN, step(probe.level, 4.0, phase=probe.phase), late))
    result = conclude(course)
    # expect no figure that is the tester's own, and no warning about its precision
    assert result.verdict.kind is VerdictKind.INVALID
    assert "the tester was" in result.verdict.reason
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
        course.tell(
            assess(
                plan, SaturationStep(0, probe.phase, kind, probe.level, 10.0, 0, 1.0, cpu=0.1), late
            )
        )
    result = conclude(course)
    assert result.verdict.kind is VerdictKind.PASS, result.verdict
    assert result.operating is None
    (warning,) = result.warnings
    # who uses a tenth of a core is not what was too slow
    assert "is unknown" in warning and "disturbed" in warning and "bottleneck" not in warning

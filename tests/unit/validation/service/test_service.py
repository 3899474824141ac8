"""A validation of a service: what is measured, and what is said about it."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaletest.model.attempt import Attempt
from scaletest.model.errors import InvalidValue, WaitTimeout
from scaletest.model.labels import UNLABELLED
from scaletest.model.verdict import VerdictKind
from scaletest.runs.folder import RunFolder
from scaletest.runs.stopping import StopRequest
from scaletest.validation.imported.plan import TOKENS
from scaletest.validation.imported.run_type import ImportedRun
from scaletest.validation.service.course import VisitCourse, progress
from scaletest.validation.service.judging import (
    ServiceEvaluation,
    evaluate_service,
    throughput_of_windows,
)
from scaletest.validation.service.plan import ServicePlan
from scaletest.validation.service.replicas import PodLook
from scaletest.validation.service.run_type import RUN_TYPE
from scaletest.validation.service.runner import ServiceRunner, validate_service
from scaletest.validation.service.visit import ServiceVisit
from tests.unit.told import telling
from tests.unit.validation.service.simulated import Service, pod_look

PLAN = ServicePlan((1, 2, 4), in_flight=12, step_s=8.0)


def validated(service: Service, plan: ServicePlan = PLAN) -> ServiceEvaluation:
    """The result of a run."""
    stop = StopRequest()
    runner = ServiceRunner(
        plan,
        service,
        service.work,
        telling([]),
        stop,
        ready_s=5.0,
        clock=service.clock,
        sleep=lambda seconds: setattr(service, "now", service.now + seconds),
    )
    runner.run(lambda visit: None)
    return evaluate_service(plan, runner.visits, random.Random(1), stop.reason)


def visits_of(result: ServiceEvaluation) -> list[ServiceVisit]:
    """Its visits, by their step."""
    return [row for step in result.steps for row in step.results if isinstance(row, ServiceVisit)]


def test_replicas_that_share_nothing_double() -> None:
    service = Service()
    result = validated(service)
    assert result.verdict.kind is VerdictKind.PASS, result.verdict
    assert service.asked == [1, 2, 4, 4, 2, 1]
    for step in result.steps[1:]:
        assert step.ratio is not None
        assert 1.94 < step.ratio.low < step.ratio.value < step.ratio.high < 2.06
    assert result.steps[0].throughput.value == pytest.approx(10.0, rel=0.02)


def test_without_a_number_in_flight_it_is_found_with_one_replica() -> None:
    result = validated(Service(), ServicePlan((1, 2), step_s=4.0))
    # four slots are full with four, and eight serve no more
    assert [visit.in_flight for visit in visits_of(result)] == [8.0, 8.0, 16.0, 16.0]
    assert result.verdict.kind is VerdictKind.PASS, result.verdict


@pytest.mark.parametrize(
    ("refuses", "found"),
    [
        (lambda number, parallel: parallel == 12 and number == 90, 12),
        (lambda number, parallel: parallel > 8 and number % 10 == 0, 8),
        (lambda number, parallel: parallel > 4, 4),
    ],
)
def test_the_number_found_is_the_last_that_a_replica_does_not_refuse(
    refuses: Callable[[int, int], bool], found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.validation.service.plan.MOST_IN_FLIGHT_FOUND", 12)
    result = validated(Service(slots=16, refuses=refuses), ServicePlan((1, 2), step_s=8.0))
    assert visits_of(result)[0].in_flight == found


def test_runs_that_found_other_numbers_in_flight_are_of_different_workloads() -> None:
    plan = ServicePlan((1, 2), step_s=4.0)
    base, alike, other = (
        ImportedRun("", "", validated(Service(slots=slots), plan)) for slots in (4, 4, 16)
    )
    assert RUN_TYPE.contrast(base, alike).differences == ()
    assert RUN_TYPE.contrast(base, other).foreign == ["in_flight: 8 and 32"]
    given = ImportedRun("", "", validated(Service(), replace(plan, in_flight=8)))
    assert RUN_TYPE.contrast(base, given).differences == ()


def test_pinned_connections_are_told_from_a_slow_replica_by_an_even_load() -> None:
    pinned = Service(choose=lambda number, count: 0, are_addresses_known=True)
    verdict = validated(pinned).verdict
    assert verdict.kind is VerdictKind.FAIL
    assert "over their own addresses, they served 2.0 times as much" in verdict.reason
    avoided = Service(
        choose=lambda number, count: 0 if number % 3 else count - 1,
        slowness=lambda replica, now: 1.0 + replica,
        are_addresses_known=True,
    )
    verdict = validated(avoided, ServicePlan((1, 2), in_flight=12, step_s=4.0)).verdict
    assert verdict.kind is VerdictKind.INVALID
    assert "r1 is slow" in verdict.reason


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (pod_look(2, "10:00"), "r1 on node-1 was restarted 2 times"),
        (pod_look(0, "10:01"), "r1 on node-1 did not stay ready"),
        (pod_look(0, ""), "r1 on node-1 did not stay ready"),
    ],
)
def test_a_pod_that_ends_or_is_not_ready_under_load_is_named(look: PodLook, words: str) -> None:
    sound, looked = pod_look(0, "10:00"), set[int]()

    def look_at(replica: int, now: float) -> PodLook:
        is_first = replica not in looked
        looked.add(replica)
        return sound if is_first or replica == 0 else look

    verdict = validated(Service(look=look_at)).verdict
    assert verdict.kind is VerdictKind.INVALID
    assert words in verdict.reason


def test_cpu_limits_that_stop_more_pods_than_before_are_the_cause() -> None:
    def look_at(replica: int, now: float) -> PodLook:
        periods = 10 * now
        share = 0.5 if service.count > 1 else 0.1
        return pod_look(0, "10:00", periods, share * periods)

    service = Service(look=look_at, least_gap_s=0.08)
    verdict = validated(service).verdict
    assert verdict.kind is VerdictKind.FAIL
    assert "CPU limits, which stop the replicas for 50% of their time, and" in verdict.reason


def test_a_router_in_front_is_named_when_the_replicas_get_equal_parts() -> None:
    verdict = validated(Service(least_gap_s=0.04)).verdict
    assert verdict.kind is VerdictKind.FAIL
    assert "router or proxy" in verdict.reason


def test_requests_that_stay_at_one_replica_are_named_as_balance() -> None:
    verdict = validated(Service(choose=lambda number, count: 0)).verdict
    assert verdict.kind is VerdictKind.FAIL
    assert "cause: balance" in verdict.reason
    assert "1 of 2 replicas" in verdict.reason


def test_without_names_of_replicas_the_remedy_is_to_name_them() -> None:
    verdict = validated(Service(choose=lambda number, count: 0, name_replicas=False)).verdict
    assert verdict.kind is VerdictKind.FAIL
    assert "<replica_header>" in verdict.remedy


def test_tokens_out_of_a_buffer_say_nothing_about_a_replica() -> None:
    result = validated(Service(buffered_s=lambda replica: 20e-6 * (1 + replica)))
    assert result.verdict.kind is VerdictKind.PASS
    visits = [visit for step in result.steps for visit in step.results]
    assert not any("tpot.mean" in visit.latencies for visit in visits)


def test_a_slow_replica_is_named_and_nothing_is_judged() -> None:
    verdict = validated(Service(slowness=lambda replica, now: 2.0 if replica == 1 else 1.0)).verdict
    assert verdict.kind is VerdictKind.INVALID
    assert "r1 is slow" in verdict.reason


@pytest.mark.parametrize("cold_s", [2.0, 6.0, 12.0])
def test_cold_replicas_are_not_measured(cold_s: float) -> None:
    result = validated(Service(slowness=lambda replica, now: 4.0 if now < cold_s else 1.0))
    assert result.verdict.kind is VerdictKind.PASS, result.verdict
    assert all(row.warm_s >= cold_s for step in result.steps for row in step.results)  # type: ignore[attr-defined]


def test_a_service_that_never_settles_is_cold() -> None:
    plan = ServicePlan((1, 2), in_flight=12, step_s=4.0, warm_limit_s=10.0)
    verdict = validated(Service(slowness=lambda replica, now: 1.0 + now), plan).verdict
    assert verdict.kind is VerdictKind.INVALID
    assert "not warm" in verdict.reason


def test_answers_of_different_lengths_are_judged_by_their_tokens() -> None:
    result = validated(Service(tokens=lambda number: 4 + number % 9))
    assert result.plan.measure == TOKENS
    assert result.verdict.kind is VerdictKind.PASS, result.verdict


def test_a_latency_limit_that_is_broken_fails() -> None:
    plan = ServicePlan((1, 2), in_flight=12, step_s=4.0, latency_limit="p95<500ms")
    verdict = validated(Service(), plan).verdict
    assert verdict.kind is VerdictKind.FAIL
    assert "p95<500ms" in verdict.reason
    with pytest.raises(InvalidValue):
        ServicePlan((1, 2), latency_limit="p95>500ms")


def test_a_service_that_answers_nothing_ends_the_run_with_the_likely_cause() -> None:
    with pytest.raises(WaitTimeout, match="429"):
        validated(Service(outcome="429"))
    with pytest.raises(WaitTimeout, match="nothing at this path"):
        validated(Service(outcome="404"))


def test_a_service_of_which_all_requests_fail_is_not_loaded_for_long() -> None:
    course = VisitCourse(10.0, 120.0)
    course.attempts += [Attempt(number, 0.0, 0.0, 0.0, 1.0, "503") for number in range(10)]
    assert not course.look(4.0)
    assert course.look(6.0)


def test_requests_count_by_the_part_that_lies_in_a_window() -> None:
    rows = [Attempt(0, 0.0, 0.0, 0.0, 4.0, "ok", tokens=8), Attempt(1, 0.0, 0.0, 0.0, 2.0, "503")]
    assert progress(rows, [1.0, 2.0, 3.0, 9.0]) == [0.25, 0.25, 0.25]
    assert progress(rows, [1.0, 3.0], tokens=True) == [4.0]


@pytest.mark.parametrize(
    ("windows", "is_wide"), [([10.0, 10.1] * 6, False), ([10.0] * 6 + [10.1] * 6, True)]
)
def test_windows_that_follow_each_other_alike_widen_the_interval(
    windows: list[float], is_wide: bool
) -> None:
    rate = throughput_of_windows(windows, 100)
    assert rate.per_s == pytest.approx(10.05)
    assert (rate.half_width > 0.06) is is_wide
    assert not throughput_of_windows([0.0] * 6, 0).enough


def test_an_interrupted_run_is_judged_as_such() -> None:
    service: Any = Service()
    result = validated(service, ServicePlan((1, 2), in_flight=4, step_s=4.0))
    visits = [row for step in result.steps for row in step.results]
    part: Callable[..., ServiceEvaluation] = evaluate_service
    verdict = part(result.plan, visits[:3], random.Random(1), "Ctrl-C").verdict
    assert verdict.kind is VerdictKind.INVALID
    assert "Ctrl-C" in verdict.reason


def test_failures_are_told_by_their_kinds_and_measure_nothing() -> None:
    flaky = Service()
    plan = ServicePlan((1, 2), in_flight=12, step_s=4.0)
    result = validated(flaky, plan)
    visits = [row for step in result.steps for row in step.results]
    failing = [replace(visits[0], outcomes={"429": 50}, errors=50.0), *visits[1:]]
    verdict = evaluate_service(plan, failing, random.Random(1)).verdict  # type: ignore[arg-type]
    assert verdict.kind is VerdictKind.INVALID
    assert "50 x 429" in verdict.reason
    assert "limit" in verdict.remedy


def test_a_step_in_which_the_client_was_disturbed_is_measured_once_more() -> None:
    disturbed: list[float] = []

    def late_s(began: float) -> float:
        if began > 20.0 and not disturbed:
            disturbed.append(began)
            return 0.5
        return 0.001

    assert validated(Service(late_s=late_s)).verdict.kind is VerdictKind.PASS
    assert disturbed
    always = validated(Service(late_s=lambda began: 0.5)).verdict
    assert always.kind is VerdictKind.INVALID and "timers fired 500 ms late" in always.reason


def test_a_replica_that_was_slow_on_one_way_only_is_not_called_slow() -> None:
    plan = ServicePlan((1, 2), in_flight=12, step_s=4.0)
    visits = [
        replace(
            visit,
            replicas={
                name: replace(share, per_token_s=0.1 if name == "r1" and visit.repeat else 0.05)
                for name, share in visit.replicas.items()
            },
        )
        for visit in visits_of(validated(Service(), plan))
    ]
    assert evaluate_service(plan, visits, random.Random(1)).verdict.kind is VerdictKind.PASS


@pytest.mark.parametrize(("late_s", "kind"), [(0.2, VerdictKind.PASS), (0.4, VerdictKind.INVALID)])
def test_late_timers_of_the_client_count_by_the_latency(late_s: float, kind: VerdictKind) -> None:
    plan = ServicePlan((1, 2), in_flight=12, step_s=4.0)
    visits = [replace(visit, beat_s=late_s) for visit in visits_of(validated(Service(), plan))]
    assert visits[0].latencies["latency.p50"] == pytest.approx(1.2, rel=0.05)
    verdict = evaluate_service(plan, visits, random.Random(1)).verdict
    assert verdict.kind is kind
    assert kind is VerdictKind.PASS or "timers fired 400 ms late" in verdict.reason


def test_long_answers_and_few_requests_in_flight_are_warm_in_time() -> None:
    plan = ServicePlan((1, 2), in_flight=1, step_s=10.0, warm_limit_s=20.0)
    result = validated(Service(serve_s=8.0), plan)
    visits: list[Any] = [row for step in result.steps for row in step.results]
    assert all(visit.is_warm for visit in visits)
    assert all(visit.seconds >= 75.0 for visit in visits)


def test_what_was_measured_before_an_error_is_kept_and_replicas_are_put_back(
    tmp_path: Path,
) -> None:
    class Stuck(Service):
        def scale(self, count: int) -> None:
            super().scale(count)
            if count == 2:
                raise WaitTimeout("2 replicas did not become ready", hint="look at them")

    stuck = Stuck()
    with pytest.raises(WaitTimeout, match="did not become ready"):
        validate_service(
            ServicePlan((1, 2), in_flight=4, step_s=0.5),
            stuck,
            stuck.work,
            telling([]),
            run_dir=str(tmp_path / "run"),
            labels=UNLABELLED,
            ready_s=5.0,
            clock=stuck.clock,
        )
    assert stuck.asked[-2:] == [2, 1]
    judged = RUN_TYPE.judge(RunFolder(tmp_path / "run"))
    assert judged.verdict.kind is VerdictKind.INVALID
    assert "did not become ready" in judged.verdict.reason
    assert [step.workers for step in judged.result.steps] == [1]

"""Rules are simulated event by event."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.capacity.autoscale.load import (
    PATTERNS,
    Requests,
    draw_requests,
    draw_run_times,
)
from scaletest.capacity.autoscale.rule import RULES, parse_rule
from scaletest.capacity.autoscale.simulation import (
    SimulatedPod,
    SimulationResult,
    choose_victims,
    count_direction_changes,
    simulate,
)


def test_pods_are_removed_in_the_order_of_the_replica_set_controller() -> None:
    starting, new, old, busy = (
        SimulatedPod(0.9, 95),
        SimulatedPod(0.1, 0, ready_s=90),
        SimulatedPod(0.2, 0, ready_s=10),
        SimulatedPod(0.3, 0, ready_s=99),
    )
    busy.request = 1
    pods = [old, busy, new, starting]
    assert choose_victims(pods, 4, 100) == [starting, busy, new, old]


def small(seed: int = 1, run_s: float = 240.0) -> Requests:
    chance = random.Random(seed)
    return draw_requests("poisson", chance, draw_run_times(chance, run_s, 0.2), 2 / 60, 1800)


def play(rule: str) -> SimulationResult:
    return simulate(small(), parse_rule(rule), 20.0, random.Random(1))


@pytest.mark.parametrize("name", RULES)
def test_every_rule_accounts_for_every_request_and_repeats_itself(name: str) -> None:
    result = play(name)
    assert result == play(name)
    assert len(result.waits_s) == result.ended <= result.requests
    assert result.makespan_s is None or result.ended == result.requests
    assert all(wait >= 0 for wait in result.waits_s)
    assert result.peak_pods <= 2 * RULES[name].maximum
    # pods worked at least as long as the requests that ended took
    if result.ended == result.requests:
        assert result.pod_s >= sum(small().runs_s) - 1e-6
    assert json.loads(json.dumps(result.to_dict()))["rule"] == name


def test_one_worker_and_constant_runs_by_hand() -> None:
    # three requests at 0, 10 s each, on one pod that is ready after 20 s
    work = Requests((0.0, 0.0, 0.0), (10.0, 10.0, 10.0))
    result = simulate(work, parse_rule("demand:max=1"), 20.0, random.Random(1))
    assert (result.waits_s, result.makespan_s, result.pod_s) == ((20.0, 30.0, 40.0), 50.0, 50.0)
    assert (result.changes, result.killed, result.peak_pods) == (0, 0, 1)


def test_the_desired_rule_avoids_the_direction_changes_and_kills_of_the_original_rule() -> None:
    # the original's way: too few, too late, then everybody away
    fast, wide, right = play("waiting-fast"), play("demand"), play("desired:window=600,grace=600")
    assert fast.killed > 20
    assert fast.direction_changes > 5 * wide.direction_changes
    assert wide.mean_wait_s is not None
    assert fast.mean_wait_s is not None
    assert wide.mean_wait_s < fast.mean_wait_s / 3
    assert (right.direction_changes, right.killed) == (0, 0)


def test_drain_kills_no_request() -> None:
    assert play("demand-fast").killed > 0
    assert play("demand-fast:grace=3000").killed == 0


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.floats(0, 500), st.floats(0.1, 200)), min_size=1, max_size=40),
    st.sampled_from(sorted(RULES)),
    st.floats(0, 60),
    st.floats(0, 100),
)
def test_no_simulated_request_is_lost(
    rows: list[tuple[float, float]], name: str, start_s: float, grace_s: float
) -> None:
    times = tuple(sorted(at for at, _ in rows))
    work = Requests(times, tuple(run for _, run in rows))
    result = simulate(work, parse_rule(name, grace_s=grace_s), start_s, random.Random(1))
    assert result.ended <= result.requests == len(rows)
    assert result.pod_s >= 0
    assert all(point.running <= result.peak_pods for point in result.course)
    assert all(0 <= point.waiting + point.running <= len(rows) for point in result.course)


def test_changes_of_direction_of_the_replicas_are_counted() -> None:
    courses = ([], [1], [1, 2], [1, -1], [1, -1, -2, 3])
    assert [count_direction_changes(course) for course in courses] == [0, 0, 0, 1, 2]


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_have_their_rate(name: str) -> None:
    chance = random.Random(5)
    drawn = draw_requests(name, chance, draw_run_times(chance, 2.0, 0.5), 0.5, 10_000)
    assert len(drawn.arrivals_s) == pytest.approx(5000, rel=0.05)
    assert list(drawn.arrivals_s) == sorted(drawn.arrivals_s)
    assert sum(drawn.runs_s) / len(drawn.runs_s) == pytest.approx(2.0, rel=0.05)
    assert 0 <= drawn.arrivals_s[0] <= drawn.arrivals_s[-1] < 10_000

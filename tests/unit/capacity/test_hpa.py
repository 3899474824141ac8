"""An HPA computes as its controller does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.capacity.autoscale.hpa import (
    Behavior,
    Hpa,
    HpaSpec,
    ScalingPolicy,
    ScalingRules,
    TargetType,
    propose,
)
from tests.unit.capacity.simulations import syncs

AVERAGE_5 = HpaSpec(0, 100, TargetType.AVERAGE_VALUE, 5000)


VALUE_2 = HpaSpec(0, 100, TargetType.VALUE, 2000)


@pytest.mark.parametrize(
    ("total", "replicas"),
    [(8.9, 2), (9, 2), (10, 2), (11, 2), (11.1, 3), (0, 0), (50, 10), (14.9, 3), (15.1, 4)],
)
def test_an_average_value_target_gives_replicas_by_the_total(total: float, replicas: int) -> None:
    assert propose(AVERAGE_5, 2, 2, 2, round(total * 1000)) == replicas


@pytest.mark.parametrize(
    ("total", "replicas", "wanted"),
    [
        (2, 4, 4),
        (2.2, 4, 4),
        (2.3, 4, 5),
        (20, 4, 40),
        (0, 4, 0),
        (1.7, 4, 4),
        (1.5, 4, 3),
        (5, 0, 3),
    ],
)
def test_value_multiplies_the_replicas(total: float, replicas: int, wanted: int) -> None:
    assert propose(VALUE_2, replicas, replicas, replicas, round(total * 1000)) == wanted


def test_inside_the_tolerance_average_value_goes_by_the_status() -> None:
    # given a change to 4 that is not carried out: 2 pods are there, and 10 is what 2 pods should
    # have
    assert propose(AVERAGE_5, 4, 2, 2, 10_000) == 2
    assert propose(VALUE_2, 4, 2, 2, 2_000) == 4


def test_the_first_recommendation_is_the_first_number_of_replicas_also_zero() -> None:
    slow = Behavior(up=ScalingRules(60, (ScalingPolicy("Percent", 100, 15),)))
    hpa = Hpa(HpaSpec(1, 10, TargetType.AVERAGE_VALUE, 1000, slow))
    assert hpa.sync(0, 0, 0, 0, 5000) == 0
    # when something else makes the first replica, expect the 0 to hold it back until it is older
    # than the window
    assert [hpa.sync(at, 1, 1, 1, 5000) for at in (15, 30, 45)] == [1, 1, 1]
    assert hpa.sync(60, 1, 1, 1, 5000) == 2


def test_replicas_rise_as_fast_as_the_policies_allow() -> None:
    assert syncs(None, [50] * 5) == [4, 8, 16, 32, 50]
    assert syncs(Behavior(), [50] * 5) == [5, 10, 20, 40, 50]


def test_replicas_fall_only_after_the_stabilisation_window() -> None:
    # nothing shrinks while a larger recommendation is younger than five minutes
    course = syncs(None, [50] * 5 + [10] * 22)
    assert course[4:25] == [50] * 21
    assert course[25] == 10
    # with `behavior` a recommendation exactly as old as the window is forgotten already
    course = syncs(Behavior(), [50] * 5 + [10] * 22)
    assert course[4:24] == [50] * 20
    assert course[24] == 10


def test_policies_limit_the_way_down() -> None:
    pods = ScalingRules(0, (ScalingPolicy("Pods", 2, 60), ScalingPolicy("Percent", 10, 60)))
    assert syncs(Behavior(down=pods), [10] + [1] * 9, 10) == [10, 8, 8, 8, 8, 6, 6, 6, 6, 4]


def test_an_upward_window_waits_for_a_lasting_need() -> None:
    slow = Behavior(up=ScalingRules(60, (ScalingPolicy("Percent", 100, 15),)))
    assert syncs(slow, [2, 8, 8, 8, 8, 8, 8], 2) == [2, 2, 2, 2, 4, 8, 8]
    assert syncs(slow, [2, 8, 2, 8, 2, 8, 2], 2) == [2] * 7


def test_replicas_follow_bounds_and_zero() -> None:
    assert syncs(None, [50], 200) == [100]
    assert syncs(None, [50], 1, minimum=5) == [5]
    assert syncs(None, [50], 0) == [0]  # scaling is off while replicas are 0 and minReplicas is not
    assert syncs(None, [50], 0, minimum=0) == [4]


@given(st.lists(st.floats(0, 200), min_size=1, max_size=60), st.booleans(), st.integers(0, 120))
def test_replicas_stay_within_bounds_and_hold_still_when_demand_does(
    demands: list[float], ruled: bool, replicas: int
) -> None:
    course = syncs(
        Behavior() if ruled else None, demands + [20] * 60, replicas, minimum=1, maximum=100
    )
    if replicas == 0:
        assert set(course) == {0}
    else:
        assert all(1 <= number <= 100 for number in course)
        assert 18 <= course[-1] <= 23

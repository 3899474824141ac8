"""KEDA computes as its operator does."""

import pytest

from scaletest.capacity.autoscale.keda import ScaledObject, jobs_to_create
from scaletest.capacity.autoscale.rule import Rule


@pytest.mark.parametrize(
    ("length", "running", "pending", "created"),
    [(10, 4, 2, 8), (18, 4, 1, 16), (0, 4, 2, 0)],
)
def test_a_scaled_job_creates_jobs_by_length_running_and_pending(
    length: int, running: int, pending: int, created: int
) -> None:
    rule = Rule("jobs", "", minimum=0, maximum=20)
    assert jobs_to_create(rule, length, running, pending) == created


def test_jobs_are_never_fewer_than_the_minimum() -> None:
    rule = Rule("jobs", "", minimum=3, maximum=20)
    assert jobs_to_create(rule, 0, 1, 0) == 2
    assert jobs_to_create(rule, 5, 4, 1) == 4


def test_keda_wakes_at_once_and_sleeps_after_its_cooldown() -> None:
    keda = ScaledObject(minimum=0)
    assert [
        keda.poll(at, value, replicas)
        for at, value, replicas in ((0, 0, 0), (30, 1, 0), (60, 0, 3))
    ] == [0, 1, 3]
    assert keda.poll(330, 0, 3) == 3
    assert keda.poll(331, 0, 3) == 0
    assert ScaledObject(minimum=2).poll(9999, 0, 5) == 5

"""Durations between the milestones of a lifecycle."""

import pytest

from scaletest.lifecycle.judging.timeline import duration_between, timeline_of
from scaletest.lifecycle.records import LifecycleObject, LifecyclePod, Stamp, TimeSource
from tests.unit.lifecycles import of, workload


def test_both_ends_come_from_one_clock_where_one_saw_both() -> None:
    start, end = Stamp(10.0, 110.2), Stamp(15.0, 113.7)
    assert duration_between(start, end) == (pytest.approx(3.5), TimeSource.WATCH, False)
    assert duration_between(Stamp(watch_s=9.5), Stamp(api_s=12.0)) == (2.5, TimeSource.MIXED, False)
    assert duration_between(Stamp(), end) is None


@pytest.mark.parametrize(("back", "value", "clipped"), [(0.4, 0.0, True), (1.5, -1.5, False)])
def test_a_little_below_zero_is_zero_and_counted(back: float, value: float, clipped: bool) -> None:
    duration = duration_between(Stamp(watch_s=100.0), Stamp(watch_s=100.0 - back))
    assert (
        duration is not None and duration[0] == pytest.approx(value) and duration.clipped is clipped
    )


def test_missing_values_are_counted_and_are_no_zero() -> None:
    whole, half = workload("j-1"), workload("j-2")
    del half.pods["j-2-0"].stamps["ready"]
    ready = of(whole, half).step("ready")
    assert (ready.spread.count, ready.missing, ready.values[1]) == (1, 1, None)


def test_a_failed_pod_keeps_no_workload_of_unknown_size_from_finishing() -> None:
    # given a workload that does not say how many pods it has, one of which finished while the other
    # failed
    pods = {
        "uid-0": LifecyclePod("uid-0", "j-0", stamps={"finished": Stamp(9.0)}),
        "uid-1": LifecyclePod("uid-1", "j-1", stamps={"evicted": Stamp(8.0)}, failed=True),
    }
    times = timeline_of(LifecycleObject("j", kind="PodGroup", pods=pods))
    assert "finished" in times.passed
    assert times.stamp("finished") == Stamp(9.0)
    # and one whose pods have all failed has not finished
    pods["uid-0"].failed = True
    assert "finished" not in timeline_of(LifecycleObject("j", kind="PodGroup", pods=pods)).passed

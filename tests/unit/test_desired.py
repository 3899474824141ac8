"""How many workers a queue needs, and the windows that it is computed from."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.desired_workers import (
    QueueDemand,
    RecentWindow,
    Targets,
    desired,
    over,
    wanted,
)
from scaletest.model.errors import InvalidValue
from scaletest.model.queue_counts import TimeSlot, read, unpack

TARGETS = Targets()


@pytest.mark.parametrize(
    ("demand", "workers"),
    [
        (QueueDemand(0, 0), 0),
        (QueueDemand(0, 0, 0.0, 5.0), 0),
        (QueueDemand(7, 3), 10),  # no run time known: waiting + running
        (QueueDemand(1, 0, 0.0, 0.001), 1),  # never below 1 while anything waits
        (QueueDemand(0, 1, 0.0, 0.001), 1),  # or runs
        (QueueDemand(0, 7, 0.7, 10.0), 10),  # 10 * 0.7 / 0.7
        (QueueDemand(60, 0, 0.0, 5.0), 10),  # 5 * 60 / 30
        (QueueDemand(60, 7, 0.7, 10.0), 30),  # both
        (QueueDemand(0, 1, 0.7, 10.1), 11),
    ],
)
def test_wanted_workers_follow_demand_and_targets(demand: QueueDemand, workers: int) -> None:
    assert wanted(demand, TARGETS) == workers


def test_wanted_workers_are_bounded() -> None:
    assert (
        wanted(QueueDemand(10**9, 0), TARGETS)
        == wanted(QueueDemand(10**9, 0, 1e6, 1e6), TARGETS)
        == 1_000_000
    )


@pytest.mark.parametrize(
    "bad", [{"utilisation": 0.0}, {"utilisation": 1.1}, {"wait_s": 0.0}, {"window_s": 1e4}]
)
def test_targets_are_checked(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        Targets(**bad)


@given(
    st.integers(0, 10**6), st.integers(0, 1000), st.floats(0, 1e4), st.none() | st.floats(1e-6, 1e5)
)
def test_more_demand_never_wants_fewer_workers(
    waiting: int, running: int, rate: float, run_s: float | None
) -> None:
    less, more = (
        QueueDemand(waiting, running, rate, run_s),
        QueueDemand(waiting + 1, running, rate * 1.1, run_s),
    )
    assert wanted(less, TARGETS) <= wanted(more, TARGETS)
    assert wanted(less, TARGETS) >= (1 if waiting + running else 0)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 50)), min_size=1, max_size=60),
    st.floats(1, 200),
)
def test_desired_is_the_maximum_of_the_window(
    samples: list[tuple[float, int]], window_s: float
) -> None:
    history: tuple[tuple[float, int], ...] = ()
    now, values = 0.0, []
    for step, value in samples:
        now += step
        values.append((now, value))
        number, history = desired(now, value, history, window_s)
        assert number == max(old for at, old in values if at > now - window_s)


def test_a_window_adds_up_its_slots() -> None:
    slots = [
        TimeSlot(90, 100, 10, 1000.0, 50.0, 50.0, 50.0, "old"),
        TimeSlot(100, 14, 2, 8.0, 1.0, 5.0, 6.0, "n\np\n"),
        TimeSlot(105, 7, 4, 4.0, 3.0, 2.0, 4.0, "m"),
    ]
    # 1064 - 60 lies in slot 100, so the window reaches back to 1000
    assert over(slots, 1064.0, 60.0) == RecentWindow(21 / 64, 6, 2.0, 3.0, 5.0, 6.0, "n", "p")


def test_an_empty_window_knows_the_last_run_time() -> None:
    slots = [TimeSlot(1, ended=2, run_sum_s=3.0), TimeSlot(2, ended=2, run_sum_s=8.0)]
    assert over(slots, 5000.0, 60.0) == RecentWindow(mean_run_s=4.0)
    assert over([], 5000.0, 60.0) == RecentWindow()


@given(st.dictionaries(st.binary(max_size=4), st.binary(max_size=80)))
def test_a_ring_of_anything_is_read_without_an_error(fields: dict[bytes, bytes]) -> None:
    assert all(math.isfinite(slot.number) for slot in unpack(fields))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=5, max_size=5), st.floats())
def test_wanted_workers_are_computed_for_any_number_in_a_slot(
    ended: list[int], came: float
) -> None:
    # given a slot of now with numbers that anybody may have written
    numbers = [0] * 1000
    numbers[107:700:100] = [7, *ended]
    slots = read(struct.pack(">1000q", *numbers)).slots
    window = over(unpack({b"a7": struct.pack("<dd", 7, came)}, slots), 75.0, 60.0)
    # expect a number
    assert wanted(QueueDemand(1, 1, window.submitted_per_s, window.mean_run_s), Targets()) >= 1
    assert math.isfinite(window.max_run_s)

"""Three knees, kneed as oracle of the first."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scaletest.analysis.law import Law
from scaletest.analysis.scaling import (
    MeasuredThroughput,
    efficiency_knee,
    kneedle,
    knees,
    marginal_knee,
)
from tests.unit.oracle import oracle

DOUBLINGS = (1, 2, 4, 8, 16)
HARD = Law("capped", 2.0, ceiling=8.0)
LINEAR = Law("linear", 2.0)


def measured(
    law: Law, workers: Sequence[int] = DOUBLINGS, noise: float = 0.0, seed: int = 0
) -> list[MeasuredThroughput]:
    chance = random.Random(seed)
    return [
        MeasuredThroughput(n, law.at(n) * math.exp(chance.gauss(0, noise)), 1.96 * noise)
        for n in workers
    ]


@pytest.fixture(scope="module")
def locator() -> Any:
    """Imported before hypothesis starts its clock."""
    return oracle("kneed").KneeLocator


def expected(locator: Any, rows: Sequence[MeasuredThroughput]) -> int | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        knee = locator([row.workers for row in rows], [row.per_s for row in rows], S=1.0).knee
    return None if knee is None else int(knee)


@given(
    st.sampled_from(
        [
            HARD,
            LINEAR,
            Law("amdahl", 1.0, 0.08),
            Law("usl", 1.0, 0.02, 0.01),
            Law("usl", 1.0, 0.0, 0.002),
        ]
    ),
    st.sampled_from(
        [(1, 2, 4, 8), DOUBLINGS, (1, 2, 4, 8, 16, 32, 64), tuple(range(1, 9)), tuple(range(1, 17))]
    ),
    st.floats(0.001, 0.1),
    st.integers(0, 10**6),
)
def test_kneedle_is_that_of_kneed(
    locator: Any, law: Law, workers: tuple[int, ...], noise: float, seed: int
) -> None:
    rows = measured(law, workers, noise, seed)
    # kneed takes the first point itself for a knee when the curve begins below its chord; an end is
    # no knee here
    first, second, last = rows[0], rows[1], max(rows, key=lambda row: row.per_s)
    slope = (last.per_s - first.per_s) / (workers[-1] - first.workers)
    assume((second.per_s - first.per_s) / (second.workers - first.workers) > slope)
    assert kneedle(rows).workers == expected(locator, rows)


def test_published_example_of_kneedle() -> None:
    # Satopaa et al., figure 2: y = 5 - 1 / (x + 0.1) at ten x from 0 to 1 has its knee at the
    # third, x = 0.22
    rows = [
        MeasuredThroughput(number, 11 - 1 / ((number - 1) / 9 + 0.1), 0.0)
        for number in range(1, 11)
    ]
    assert kneedle(rows).workers == 3


def test_a_straight_line_has_no_knee() -> None:
    assert kneedle(measured(LINEAR)).workers is None
    for seed in range(200):
        rows = measured(LINEAR, (1, 2, 3, 4, 5, 6, 7, 8), 0.03, seed)
        first, second, third = knees(rows)
        assert first.workers is None
        assert second.high == 8
        assert third.workers is None


@pytest.mark.parametrize("workers", [(1, 2, 3, 4, 5, 6, 7, 8), DOUBLINGS])
def test_a_hard_ceiling_is_found(workers: tuple[int, ...]) -> None:
    first, second, third = knees(measured(HARD, workers))
    assert (first.workers, third.workers) == (4, 4)
    assert second.workers == (5 if 5 in workers else 4)
    assert first.reached
    assert second.reached
    assert third.reached


def test_the_three_definitions_of_a_knee_give_different_knees() -> None:
    soft = Law("usl", 1.0, 0.02, 0.0392)
    assert [knee.workers for knee in knees(measured(soft, range(1, 9)))] == [4, 2, 3]
    assert [knee.method for knee in knees([])] == ["kneedle", "efficiency", "marginal"]


def test_efficiency_that_holds_to_the_last_step_gives_a_knee_not_reached() -> None:
    knee = efficiency_knee(measured(LINEAR, noise=0.01))
    assert (knee.workers, knee.low, knee.high, knee.reached) == (16, 16, 16, False)


def test_intervals_say_between_which_steps_the_efficiency_falls() -> None:
    # given 81 % at 4 and 79 % at 8 with 5 % half-widths each, expect 4, surely 2, at most 8
    rows = [
        MeasuredThroughput(n, n * share, 0.05)
        for n, share in ((1, 1.0), (2, 0.95), (4, 0.81), (8, 0.79), (16, 0.5))
    ]
    knee = efficiency_knee(rows)
    assert (knee.workers, knee.low, knee.high, knee.reached) == (4, 2, 8, True)


def test_a_gain_that_is_not_surely_below_half_is_no_marginal_knee() -> None:
    rows = [
        MeasuredThroughput(1, 1.0, 0.05),
        MeasuredThroughput(2, 1.45, 0.05),
        MeasuredThroughput(4, 1.6, 0.05),
    ]
    knee = marginal_knee(rows)
    assert (knee.workers, knee.low) == (2, 1)
    assert marginal_knee(rows[:2]).workers is None


@pytest.mark.parametrize(
    "rows",
    [[], [MeasuredThroughput(1, 1.0, 0.0)], [MeasuredThroughput(n, 1.0, 0.0) for n in (1, 2)]],
)
def test_too_few_points_have_no_kneedle(rows: list[MeasuredThroughput]) -> None:
    assert kneedle(rows).workers is None
    assert kneedle([MeasuredThroughput(n, 3.0, 0.0) for n in DOUBLINGS]).workers is None


def test_a_knee_is_written_with_method_workers_and_interval() -> None:
    assert kneedle(measured(HARD)).to_dict() == {
        "method": "kneedle", "workers": 4, "low": None, "high": None, "reached": True,
    }  # fmt: skip

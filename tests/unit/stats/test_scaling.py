"""Speed-up and efficiency, and the knee, with kneed as oracle."""

import json
import math
import random
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scaletest.stats.law import Law
from scaletest.stats.scaling import MeasuredThroughput, find_knee, scaling_figures, usable_steps
from tests.unit.oracle import oracle

USL = Law("usl", 2.0, 0.03, 0.005)
HARD = Law("capped", 2.0, ceiling=8.0)
LINEAR = Law("linear", 2.0)
DOUBLINGS = (1, 2, 4, 8, 16)


def measured(
    law: Law, workers: Sequence[int] = DOUBLINGS, noise: float = 0.0, seed: int = 0
) -> list[MeasuredThroughput]:
    """One run of the law with relative noise, and the half-widths that belong to it."""
    chance = random.Random(seed)
    return [
        MeasuredThroughput(n, law.at(n) * math.exp(chance.gauss(0, noise)), 1.96 * noise)
        for n in workers
    ]


def test_speedup_and_efficiency_match_figures_computed_by_hand() -> None:
    base, two = scaling_figures(
        usable_steps([MeasuredThroughput(2, 6.0, 0.04), MeasuredThroughput(1, 4.0, 0.03)])
    )
    assert (base.speedup.value, base.efficiency.low, base.efficiency.high) == (1, 1, 1)
    assert two.speedup.value == 1.5
    assert two.speedup.high == pytest.approx(1.5 * math.exp(0.05))
    assert two.efficiency.low == pytest.approx(0.75 * math.exp(-0.05))


def test_another_base_than_one_worker_counts_as_one() -> None:
    rows = scaling_figures([MeasuredThroughput(4, 8.0, 0.0), MeasuredThroughput(8, 12.0, 0.0)])
    assert rows[1].speedup.value == 1.5
    assert rows[1].efficiency.value == 0.75


def test_steps_without_throughput_are_left_out_and_unknown_widths_are_null() -> None:
    measured_steps = [MeasuredThroughput(1, 2.0), MeasuredThroughput(2, 0.0)]
    rows = scaling_figures(usable_steps([*measured_steps, MeasuredThroughput(4, 6.0)]))
    assert [row.workers for row in rows] == [1, 4]
    row = json.loads(json.dumps(rows[1].to_dict(), allow_nan=False))
    assert row["speedup"] == {"value": 3, "low": 0, "high": None}
    assert scaling_figures([]) == []


def test_repeats_must_be_joined_first() -> None:
    with pytest.raises(ValueError, match="join the repeats"):
        usable_steps([MeasuredThroughput(1, 1.0), MeasuredThroughput(1, 1.1)])


def test_intervals_of_the_speedup_cover_the_truth() -> None:
    covered = 0
    for seed in range(400):
        row = scaling_figures(measured(USL, noise=0.03, seed=seed))[-1]
        covered += row.speedup.low <= USL.at(16) / USL.at(1) <= row.speedup.high
    assert 0.925 * 400 <= covered <= 0.975 * 400


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
    assert find_knee(rows) == expected(locator, rows)


def test_published_example_of_kneedle() -> None:
    # Satopaa et al., figure 2: y = 5 - 1 / (x + 0.1) at ten x from 0 to 1 has its knee at the
    # third, x = 0.22
    rows = [
        MeasuredThroughput(number, 11 - 1 / ((number - 1) / 9 + 0.1), 0.0)
        for number in range(1, 11)
    ]
    assert find_knee(rows) == 3


def test_a_straight_line_has_no_knee() -> None:
    assert find_knee(measured(LINEAR)) is None
    for seed in range(200):
        assert find_knee(measured(LINEAR, (1, 2, 3, 4, 5, 6, 7, 8), 0.03, seed)) is None


@pytest.mark.parametrize("workers", [(1, 2, 3, 4, 5, 6, 7, 8), DOUBLINGS])
def test_a_hard_ceiling_is_found(workers: tuple[int, ...]) -> None:
    assert find_knee(measured(HARD, workers)) == 4


@pytest.mark.parametrize(
    "rows",
    [[], [MeasuredThroughput(1, 1.0, 0.0)], [MeasuredThroughput(n, 1.0, 0.0) for n in (1, 2)]],
)
def test_too_few_points_have_no_kneedle(rows: list[MeasuredThroughput]) -> None:
    assert find_knee(rows) is None
    assert find_knee([MeasuredThroughput(n, 3.0, 0.0) for n in DOUBLINGS]) is None

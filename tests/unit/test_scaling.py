"""Speed-up, efficiency, the serial fraction and its course."""

from __future__ import annotations

import json
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.law import Law
from scaletest.analysis.scaling import (
    FractionTrend,
    MeasuredThroughput,
    scaling,
    serial_trend,
    usable,
)

LINEAR, AMDAHL, USL = Law("linear", 2.0), Law("amdahl", 2.0, 0.05), Law("usl", 2.0, 0.03, 0.005)
DOUBLINGS = (1, 2, 4, 8, 16)


def measured(law: Law, noise: float, seed: int) -> list[MeasuredThroughput]:
    """One run of the law with relative noise, and the half-widths that belong to it."""
    chance = random.Random(seed)
    return [
        MeasuredThroughput(n, law.at(n) * math.exp(chance.gauss(0, noise)), 1.96 * noise)
        for n in DOUBLINGS
    ]


def test_speedup_and_efficiency_match_figures_computed_by_hand() -> None:
    base, two = scaling(
        usable([MeasuredThroughput(2, 6.0, 0.04), MeasuredThroughput(1, 4.0, 0.03)])
    )
    assert (
        base.speedup.value,
        base.efficiency.low,
        base.efficiency.high,
        base.serial_fraction,
    ) == (1, 1, 1, None)
    assert two.speedup.value == 1.5
    assert two.speedup.high == pytest.approx(1.5 * math.exp(0.05))
    assert two.efficiency.low == pytest.approx(0.75 * math.exp(-0.05))
    assert two.serial_fraction is not None
    assert two.serial_fraction.value == pytest.approx((1 / 1.5 - 1 / 2) / (1 - 1 / 2))
    assert two.serial_fraction.low == pytest.approx(2 / (1.5 * math.exp(0.05)) - 1)


@given(st.floats(0, 0.5), st.floats(0, 0.01), st.integers(2, 200))
def test_the_serial_fraction_under_the_universal_law_is_a_line(
    a: float, b: float, workers: int
) -> None:
    law = Law("usl", 3.0, a, b)
    row = scaling(
        [MeasuredThroughput(1, law.at(1), 0.0), MeasuredThroughput(workers, law.at(workers), 0.0)]
    )[1]
    assert row.serial_fraction is not None
    assert row.serial_fraction.value == pytest.approx(a + b * workers, abs=1e-9)


def test_another_base_than_one_worker_counts_as_one() -> None:
    rows = scaling([MeasuredThroughput(4, 8.0, 0.0), MeasuredThroughput(8, 12.0, 0.0)])
    assert rows[1].speedup.value == 1.5
    assert rows[1].efficiency.value == 0.75


def test_steps_without_throughput_are_left_out_and_unknown_widths_are_null() -> None:
    measured_steps = [MeasuredThroughput(1, 2.0), MeasuredThroughput(2, 0.0)]
    rows = scaling(usable([*measured_steps, MeasuredThroughput(4, 6.0)]))
    assert [row.workers for row in rows] == [1, 4]
    row = json.loads(json.dumps(rows[1].to_dict(), allow_nan=False))
    assert row["speedup"] == {"value": 3, "low": 0, "high": None}
    assert row["serial_fraction"]["high"] is None
    assert scaling([]) == []


def test_repeats_must_be_joined_first() -> None:
    with pytest.raises(ValueError, match="join the repeats"):
        usable([MeasuredThroughput(1, 1.0), MeasuredThroughput(1, 1.1)])


def test_intervals_of_the_speedup_cover_the_truth() -> None:
    covered = 0
    for seed in range(400):
        row = scaling(measured(USL, 0.03, seed))[-1]
        covered += row.speedup.low <= USL.at(16) / USL.at(1) <= row.speedup.high
    assert 0.925 * 400 <= covered <= 0.975 * 400


def courses(law: Law, noise: float) -> Counter[FractionTrend]:
    return Counter(serial_trend(measured(law, noise, seed)).course for seed in range(200))


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.05])
def test_noise_gives_no_class_of_scaling(noise: float) -> None:
    # given a truth without overhead that grows, over 200 seeds, expect it to be called growing in 5
    # % at most
    for law in (LINEAR, AMDAHL):
        trend = courses(law, noise)
        assert trend[FractionTrend.RISING] <= 10
        assert trend[FractionTrend.FALLING] <= 10


def test_a_serial_part_and_a_growing_overhead_are_told_apart() -> None:
    assert courses(LINEAR, 0.02)[FractionTrend.NONE] >= 180
    assert courses(AMDAHL, 0.005)[FractionTrend.FLAT] >= 180
    assert courses(USL, 0.02)[FractionTrend.RISING] == 200


@pytest.mark.parametrize(
    ("law", "course", "sentence"),
    [
        (LINEAR, FractionTrend.NONE, "no serial part stands out"),
        (AMDAHL, FractionTrend.FLAT, "stays at 5.0% from 2 to 16 workers"),
        (USL, FractionTrend.RISING, "rises by 7.0 points from 2 to 16 workers"),
        (Law("usl", 1.0, 0.1, -0.005), FractionTrend.FALLING, "falls by 7.0 points"),
    ],
)
def test_without_noise_the_course_is_exact(law: Law, course: FractionTrend, sentence: str) -> None:
    trend = serial_trend([MeasuredThroughput(n, law.at(n), 0.0) for n in DOUBLINGS])
    assert trend.course is course
    assert sentence in trend.sentence


def test_too_few_steps_give_a_sentence_that_says_so() -> None:
    trend = serial_trend([MeasuredThroughput(1, 1.0, 0.0), MeasuredThroughput(2, 1.5, 0.0)])
    assert trend.course is FractionTrend.UNCLEAR
    assert "three steps" in trend.sentence
    assert trend.to_dict()["rise"] is None
    unknown = serial_trend([MeasuredThroughput(n, USL.at(n)) for n in DOUBLINGS])
    assert unknown.course is FractionTrend.UNCLEAR
    assert json.loads(json.dumps(unknown.to_dict(), allow_nan=False))["rise"]["high"] is None

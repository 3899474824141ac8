"""Speed-up and efficiency."""

import json
import math
import random
from collections.abc import Sequence

import pytest

from scaletest.stats.law import Law
from scaletest.stats.scaling import MeasuredThroughput, scaling_over

USL = Law("usl", 2.0, 0.03, 0.005)
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
    one = MeasuredThroughput(1, 4.0, 0.03)
    base = scaling_over(one, one)
    two = scaling_over(MeasuredThroughput(2, 6.0, 0.04), one)
    assert (base.speedup.value, base.efficiency.low, base.efficiency.high) == (1, 1, 1)
    assert two.speedup.value == 1.5
    assert two.speedup.high == pytest.approx(1.5 * math.exp(0.05))
    assert two.efficiency.low == pytest.approx(0.75 * math.exp(-0.05))


def test_another_base_than_one_worker_counts_as_one() -> None:
    row = scaling_over(MeasuredThroughput(8, 12.0, 0.0), MeasuredThroughput(4, 8.0, 0.0))
    assert row.speedup.value == 1.5
    assert row.efficiency.value == 0.75


def test_unknown_widths_are_null() -> None:
    scaled = scaling_over(MeasuredThroughput(4, 6.0), MeasuredThroughput(1, 2.0))
    row = json.loads(json.dumps(scaled.to_dict(), allow_nan=False))
    assert row["speedup"] == {"value": 3, "low": 0, "high": None}


def test_intervals_of_the_speedup_cover_the_truth() -> None:
    covered = 0
    for seed in range(400):
        base, *_, last = measured(USL, noise=0.03, seed=seed)
        row = scaling_over(last, base)
        covered += row.speedup.low <= USL.at(16) / USL.at(1) <= row.speedup.high
    assert 0.925 * 400 <= covered <= 0.975 * 400

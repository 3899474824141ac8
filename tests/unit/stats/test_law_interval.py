"""Intervals of a fitted law and of its peak: they cover the truth, and claim no more than the data
carry.
"""

import json
import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from scaletest.stats.law import Law, choose_law, fit_law
from scaletest.stats.law_interval import LawInterval, law_interval
from scaletest.stats.peak import Peak, find_peak
from scaletest.stats.scaling import MeasuredThroughput

RUNS, DRAWS = 30, 80
LINEAR, AMDAHL = Law("linear", 2.0), Law("amdahl", 2.0, 0.05)
USL, CAPPED = Law("usl", 2.0, 0.03, 0.005), Law("capped", 2.0, ceiling=9.0)
FALLING = Law("usl", 2.0, 0.03, 0.0388)
FOUR, FIVE = (1, 2, 4, 8), (1, 2, 4, 8, 16)
Points = list[tuple[float, float]]


def points(
    law: Law, workers: Sequence[int], repeats: int, noise: float, chance: random.Random
) -> Points:
    return [
        (float(n), law.at(n) * (1 + chance.gauss(0, noise)))
        for n in workers
        for _ in range(repeats)
    ]


def intervals(
    law: Law, workers: Sequence[int], repeats: int, noise: float, known: float
) -> list[LawInterval]:
    """Of many runs; known: how much of the noise the spreads of the points tell, 0 for none."""
    simulated = []
    for seed in range(RUNS):
        chance = random.Random(seed)
        rows = points(law, workers, repeats, noise, chance)
        spreads = [noise * known] * len(rows) if known else None
        interval = law_interval(fit_law(law.name, rows), rows, chance, spreads=spreads, draws=DRAWS)
        assert interval is not None
        simulated.append(interval)
    return simulated


@pytest.mark.parametrize(
    ("law", "workers", "repeats", "known", "noise"),
    [
        (USL, FOUR, 3, 0.0, 0.02), (USL, FIVE, 5, 0.0, 0.02), (USL, FIVE, 1, 0.0, 0.02),
        (USL, FOUR, 3, 0.0, 0.05), (USL, FIVE, 5, 0.0, 0.05), (USL, FIVE, 1, 0.0, 0.05),
        (USL, FIVE, 1, 1.0, 0.05), (USL, FIVE, 1, 0.4, 0.05),
        (AMDAHL, FOUR, 3, 0.0, 0.05), (AMDAHL, FOUR, 1, 0.0, 0.05), (AMDAHL, FOUR, 1, 1.0, 0.05),
        (AMDAHL, FOUR, 1, 0.4, 0.05), (CAPPED, FOUR, 3, 0.0, 0.05), (CAPPED, FOUR, 1, 1.0, 0.05),
        (LINEAR, FOUR, 1, 0.0, 0.05), (LINEAR, FOUR, 1, 1.0, 0.05),
    ],
)  # fmt: skip
def test_intervals_cover_the_truth(
    law: Law, workers: Sequence[int], repeats: int, known: float, noise: float
) -> None:
    simulated = intervals(law, workers, repeats, noise, known)
    for name in ("rate", "contention", "coherency", "ceiling", "peak"):
        estimates = [getattr(interval, name) for interval in simulated]
        if estimates[0] is None:
            continue
        truth = getattr(law, name)
        covered = sum(estimate.low <= truth <= estimate.high for estimate in estimates)
        assert covered >= 0.83 * RUNS, name


@pytest.mark.parametrize(("repeats", "known", "error"), [(5, 0.0, 0.00026), (1, 1.0, 0.00059)])
def test_intervals_are_no_wider_than_the_noise_makes_them(
    repeats: int, known: float, error: float
) -> None:
    # given the standard error of the coherency that theory gives, expect a width of about four of
    # them
    widths = sorted(
        row.coherency.high - row.coherency.low
        for row in intervals(USL, FIVE, repeats, 0.02, known)
        if row.coherency
    )
    assert 3 * error < widths[RUNS // 2] < 5 * error


def test_each_law_has_its_own_coefficients() -> None:
    def names(law: Law) -> set[str]:
        rows = points(law, FIVE, 2, 0.02, random.Random(1))
        interval = law_interval(fit_law(law.name, rows), rows, random.Random(1), draws=20)
        row = json.loads(json.dumps(interval.to_dict(), allow_nan=False))
        return {name for name, value in row.items() if value}

    assert names(LINEAR) == {"rate_per_s"}
    assert names(AMDAHL) == {"rate_per_s", "contention"}
    assert names(CAPPED) == {"rate_per_s", "ceiling_per_s"}
    assert names(USL) == {"rate_per_s", "contention", "coherency", "peak_workers"}


def test_the_same_seed_gives_the_same_interval() -> None:
    rows = points(USL, FIVE, 2, 0.02, random.Random(1))
    law = fit_law("usl", rows)
    assert law_interval(law, rows, random.Random(5)) == law_interval(law, rows, random.Random(5))


def test_as_many_parameters_as_points_give_no_interval() -> None:
    rows = points(USL, (1, 2, 4), 1, 0.0, random.Random(1))
    assert law_interval(fit_law("usl", rows), rows, random.Random(1)) is None


def peak_of(law: Law, workers: Sequence[int], repeats: int, noise: float, seed: int) -> Peak:
    """The peak of one run, by the law that was chosen."""
    chance = random.Random(seed)
    rows = points(law, workers, repeats, noise, chance)
    choice = choose_law(rows)
    interval = law_interval(choice.law, rows, chance, spreads=[noise] * len(rows), draws=DRAWS)
    joined = [
        MeasuredThroughput(
            n, sum(x for m, x in rows if m == n) / repeats, 1.96 * noise / math.sqrt(repeats)
        )
        for n in workers
    ]
    return find_peak(joined, choice.law, interval)


def test_a_throughput_that_fell_has_its_peak_found() -> None:
    # given a truth that peaks at 5 and steps up to 16, expect a peak inside in every run, and the
    # truth enclosed
    enclosed = 0
    for seed in range(30):
        interval = peak_of(FALLING, FIVE, 1, 0.02, seed)
        assert interval.workers is not None
        assert not interval.extrapolated
        enclosed += (interval.low or 0) <= 5 <= (interval.high or math.inf)
    assert enclosed >= 28


def test_a_peak_beyond_the_steps_is_marked() -> None:
    interval = [peak_of(USL, FOUR, 5, 0.01, seed) for seed in range(20)]
    named = [row for row in interval if row.workers is not None]
    assert len(named) >= 15
    assert all(row.extrapolated and "at most 8 workers were tested" in row.reason for row in named)


@pytest.mark.parametrize("law", [LINEAR, AMDAHL, CAPPED])
def test_a_law_without_a_peak_gives_no_peak(law: Law) -> None:
    interval = Counter(peak_of(law, FIVE, 3, 0.03, seed).workers is None for seed in range(40))
    assert interval[True] >= 38


def test_a_peak_beyond_twice_the_steps_is_refused() -> None:
    law = Law("usl", 1.0, 0.05, 0.0001)
    rows = points(law, FIVE, 3, 0.00001, random.Random(1))
    interval = find_peak(
        [MeasuredThroughput(n, law.at(n), 0.0) for n in FIVE],
        fit_law("usl", rows),
        law_interval(law, rows, random.Random(1)),
    )
    assert interval.workers is None
    assert interval.reason == "it would be beyond twice the 16 workers tested"


def test_a_missing_peak_has_its_reason() -> None:
    steps = [MeasuredThroughput(n, LINEAR.at(n), 0.01) for n in FOUR]
    assert find_peak(steps, None, None).reason == "no law was chosen"
    assert find_peak([], None, None).workers is None
    rows = points(AMDAHL, FIVE, 3, 0.05, random.Random(2))
    assert "amdahl" in find_peak(steps, AMDAHL, law_interval(AMDAHL, rows, random.Random(1))).reason
    unsure = fit_law("usl", rows)
    assert (
        "includes 0"
        in find_peak(steps, unsure, law_interval(unsure, rows, random.Random(1))).reason
    )


def test_a_measured_peak_needs_no_law_and_no_fall_within_the_noise() -> None:
    rows = [
        MeasuredThroughput(1, 2.0, 0.02),
        MeasuredThroughput(2, 3.9, 0.02),
        MeasuredThroughput(4, 5.0, 0.02),
        MeasuredThroughput(8, 4.9, 0.02),
    ]
    assert find_peak(rows, None, None).workers is None
    interval = find_peak([*rows, MeasuredThroughput(16, 3.0, 0.02)], None, None)
    assert (interval.workers, interval.low, interval.high, interval.measured) == (4, 2, 16, True)
    assert interval.to_dict()["reason"] == "measured: 16 workers do less than 4"

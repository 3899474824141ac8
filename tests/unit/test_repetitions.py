"""Statistics over repetitions, against scipy; and comparisons, against what is known to be true."""

from __future__ import annotations

import random

import pytest
from scipy import stats

from scaletest.analysis.compare import Change
from scaletest.analysis.repetitions import RepeatedPair, compare, gathered, summarise
from scaletest.model import VerdictKind

BASE = (10.0, 10.4, 9.8, 10.1, 10.2)


def test_the_interval_of_the_mean_is_students() -> None:
    comparison = summarise(BASE)
    low, high = stats.t.interval(0.95, len(BASE) - 1, loc=comparison.mean, scale=stats.sem(BASE))
    assert comparison.mean - comparison.half_width == pytest.approx(low)
    assert comparison.mean + comparison.half_width == pytest.approx(high)
    assert summarise([3.0]).to_dict()["half_width"] is None


def pair(values: tuple[float, ...], higher: bool = True) -> RepeatedPair:
    return RepeatedPair("x", "bandwidth", higher, BASE, values)


@pytest.mark.parametrize(
    ("factor", "higher", "change"),
    [
        (0.5, True, Change.REGRESSION),
        (2.0, True, Change.IMPROVEMENT),
        (2.0, False, Change.REGRESSION),
        (0.5, False, Change.IMPROVEMENT),
        (1.0, True, Change.EQUIVALENT),
        (1.0, False, Change.EQUIVALENT),
    ],
)
def test_the_better_side_follows_the_direction_of_the_headline(
    factor: float, higher: bool, change: Change
) -> None:
    comparison = compare([pair(tuple(factor * value for value in BASE), higher)])
    row = comparison.rows[0]
    assert row.change is change
    assert row.ratio is not None and row.ratio.low <= row.ratio.value <= row.ratio.high
    assert row.ratio.value == pytest.approx(factor), (
        "the ratio is candidate over base, whichever side is better"
    )
    wanted = VerdictKind.FAIL if change is Change.REGRESSION else VerdictKind.PASS
    assert comparison.verdict.kind is wanted


def test_too_little_is_invalid_and_says_what_is_missing() -> None:
    for pairs, reason in (
        ([pair((10.0,))], "two repetitions"),
        ([pair((0.0, 1.0))], "not above 0"),
        ([], "nothing in common"),
    ):
        comparison = compare(pairs)
        assert (
            comparison.verdict.kind is VerdictKind.INVALID and reason in comparison.verdict.reason
        )
        assert comparison.verdict.remedy
    assert compare([pair(BASE)], only_base=["y"]).verdict.kind is VerdictKind.INVALID


def test_equal_runs_are_seldom_called_worse_however_many_numbers_they_have() -> None:
    chance = random.Random(3)

    def values() -> tuple[float, ...]:
        return tuple(chance.lognormvariate(0, 0.05) for _ in range(4))

    wrong = 0
    for _ in range(200):
        pairs = [RepeatedPair(str(n), "h", True, values(), values()) for n in range(8)]
        wrong += any(
            row.change in (Change.REGRESSION, Change.IMPROVEMENT)
            for row in compare(pairs, 0.0).rows
        )
    # 5 % of 200 is 10; more than 20 would be seen once in a thousand
    assert wrong <= 20


def test_values_are_gathered_by_permutation_and_headline() -> None:
    rows = [(0, {"a": 1.0}), (1, {"a": 2.0, "b": 3.0}), (0, {"a": 4.0})]
    assert gathered(rows) == {0: {"a": [1.0, 4.0]}, 1: {"a": [2.0], "b": [3.0]}}

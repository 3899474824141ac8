"""Statistics over repetitions, against scipy."""

import pytest
from scipy import stats

from scaletest.stats.repetitions import group_by_permutation, summarise_repetitions

BASE = (10.0, 10.4, 9.8, 10.1, 10.2)


def test_the_interval_of_the_mean_is_students() -> None:
    comparison = summarise_repetitions(BASE)
    low, high = stats.t.interval(0.95, len(BASE) - 1, loc=comparison.mean, scale=stats.sem(BASE))
    assert comparison.mean - comparison.half_width == pytest.approx(low)
    assert comparison.mean + comparison.half_width == pytest.approx(high)
    assert summarise_repetitions([3.0]).to_dict()["half_width"] is None


def test_values_are_gathered_by_permutation_and_headline() -> None:
    rows = [(0, {"a": 1.0}), (1, {"a": 2.0, "b": 3.0}), (0, {"a": 4.0})]
    assert group_by_permutation(rows) == {0: {"a": [1.0, 4.0]}, 1: {"a": [2.0], "b": [3.0]}}

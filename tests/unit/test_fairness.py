"""Shares between groups."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.steps import fairness


def test_shares_are_sorted_and_the_ratio_is_most_over_least() -> None:
    shares = fairness({"a": 10, "b": 30, "c": 20})
    assert [(row.name, row.amount, row.share) for row in shares.shares] == [
        ("b", 30, 0.5),
        ("c", 20, pytest.approx(1 / 3)),
        ("a", 10, pytest.approx(1 / 6)),
    ]
    assert shares.ratio == 3


def test_a_group_that_did_nothing_makes_the_ratio_infinite_and_null_in_json() -> None:
    shares = fairness({"a": 4, "b": 0})
    assert math.isinf(shares.ratio)
    row = json.loads(json.dumps(shares.to_dict(), allow_nan=False))
    assert row["ratio"] is None
    assert row["groups"][1] == {"name": "b", "amount": 0, "share": 0}


def test_no_amounts_give_no_fairness() -> None:
    assert fairness({}) is None
    assert fairness({"a": 0, "b": 0}) is None


@given(st.dictionaries(st.text(max_size=3), st.floats(0.001, 1e9), min_size=1, max_size=20))
def test_shares_sum_to_one_and_ratios_stay_within_bounds(amounts: dict[str, float]) -> None:
    shares = fairness(amounts)
    assert sum(row.share for row in shares.shares) == pytest.approx(1)
    assert shares.ratio >= 1

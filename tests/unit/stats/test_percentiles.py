"""Percentiles and their intervals: numpy and scipy as oracles, coverage by simulation."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.stats.percentiles import find_percentile, quantile, samples_needed, summarise_samples
from tests.unit.oracle import oracle

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
values = st.lists(st.floats(0, 1e6), min_size=1, max_size=80).map(sorted)


def normal(count: int, seed: int) -> list[float]:
    chance = random.Random(seed)
    return sorted(chance.gauss(0, 1) for _ in range(count))


@pytest.fixture(scope="module")
def numpy() -> Any:
    """Imported before hypothesis starts its clock."""
    return oracle("numpy")


@given(values, st.floats(0.01, 0.99))
def test_quantiles_are_those_of_numpy(numpy: Any, ordered: list[float], p: float) -> None:
    assert quantile(ordered, p) == pytest.approx(numpy.quantile(ordered, p), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("p", "needed"), [(0.5, 5), (0.9, 29), (0.95, 59), (0.99, 299), (0.999, 2995), (0.1, 29)]
)
def test_a_percentile_is_given_from_the_sample_size_on_that_carries_it(
    p: float, needed: int
) -> None:
    assert samples_needed(p) == needed
    assert find_percentile(normal(needed - 1, 1), p) is None
    assert find_percentile(normal(needed, 1), p) is not None


def test_five_values_have_a_median_and_no_interval() -> None:
    # given 5 values, all on one side of the median in 1 of 16 samples, expect no 95 % interval, and
    # one from 6 on
    five = find_percentile([1, 2, 3, 4, 5], 0.5)
    assert (five.value, five.low, five.high) == (3, None, None)
    six = find_percentile([1, 2, 3, 4, 5, 6], 0.5)
    assert (six.low, six.high) == (1, 6)


@pytest.mark.parametrize("count", [60, 300, 1000, 12_345, 200_000])
@pytest.mark.parametrize("p", [*SHARES, 0.05])
def test_ranks_are_those_of_the_binomial_distribution(count: int, p: float) -> None:
    # given the ranks themselves as values, expect ends that enclose the quantile with 95 %, and
    # none narrower by one
    binom = oracle("scipy.stats").binom
    estimate = find_percentile(range(1, count + 1), p)
    if count < samples_needed(p):
        assert estimate is None
        return

    def sure(low: float, high: float) -> float:
        return float(binom.cdf(high - 1, count, p) - binom.cdf(low - 1, count, p))

    assert sure(estimate.low, estimate.high) >= 0.95 - 1e-9
    assert sure(estimate.low + 1, estimate.high - 1) < 0.95
    if estimate.high < count and estimate.low > 1:
        assert estimate.low == binom.ppf(0.025, count, p)
        assert estimate.high == binom.ppf(0.975, count, p) + 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400).map(sorted), st.floats(0.01, 0.99))
def test_the_value_lies_in_its_interval_and_the_interval_in_the_sample(
    ordered: list[float], p: float
) -> None:
    estimate = find_percentile(ordered, p)
    if estimate is not None and estimate.low is not None and estimate.high is not None:
        assert ordered[0] <= estimate.low <= estimate.high <= ordered[-1]
        assert estimate.low - 1e-6 <= estimate.value <= estimate.high + 1e-6


def test_a_summary_is_json_and_says_what_it_has_too_few_values_for() -> None:
    row = json.loads(json.dumps(summarise_samples(reversed(range(300))).to_dict()))
    assert list(row) == ["count", "mean", "min", "p50", "p90", "p95", "p99", "p99_9", "max"]
    assert (row["count"], row["mean"], row["min"], row["max"]) == (300, 149.5, 0, 299)
    assert row["p50"]["value"] == 149.5
    assert row["p99"] == {"value": pytest.approx(296.01), "low": 289, "high": 299}
    assert row["p99_9"] is None


def test_a_summary_of_nothing_is_empty() -> None:
    assert set(summarise_samples([]).to_dict().values()) == {0, None}

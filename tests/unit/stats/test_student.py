"""Quantiles of Student's t, with scipy as oracle."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.stats.student import t95, t_quantile
from tests.unit.oracle import oracle

LEVELS = (0.55, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9995)
FREEDOMS = (1, 1.001, 1.01, 1.3, 1.5, 1.99, 2, 2.01, 2.5, 3, 3.7, 5, 7.3, 10, 29.5, 100, 1e4, 1e9)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_are_those_of_scipy(freedom: float) -> None:
    t = oracle("scipy.stats").t
    for p in LEVELS:
        assert t_quantile(p, freedom) == pytest.approx(t.ppf(p, freedom), rel=2e-5), p


@given(st.floats(0.5001, 0.9999), st.floats(1, 1e6), st.floats(1.01, 4))
def test_quantiles_rise_with_the_level_and_fall_with_freedom(
    p: float, freedom: float, more: float
) -> None:
    value = t_quantile(p, freedom)
    assert t_quantile(p, freedom * more) <= value * (1 + 2e-5)
    assert t_quantile((p + 1) / 2, freedom) > value


def test_quantiles_at_the_limits_of_freedom() -> None:
    assert t95(0) == t95(0.99) == math.inf
    assert t95(math.inf) == pytest.approx(1.959964)
    assert t95(1e12) == pytest.approx(1.959964)

"""Scaling laws: what was put in comes out."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.stats.law import LAWS, Law, choose_law, fit_law, missing_steps

WORKERS = (1, 2, 4, 8, 16)


def noisy(law: Law, noise: float, repeats: int, seed: int) -> list[tuple[float, float]]:
    chance = random.Random(seed)
    return [(n, law.at(n) * (1 + chance.gauss(0, noise))) for n in WORKERS for _ in range(repeats)]


@given(
    st.floats(0.1, 1e4),
    st.floats(0, 0.5),
    st.floats(0, 0.05),
)
def test_usl_comes_back_exactly_without_noise(
    rate: float, contention: float, coherency: float
) -> None:
    truth = Law("usl", rate, contention, coherency)
    law = fit_law("usl", [(n, truth.at(n)) for n in WORKERS])
    assert law.rate == pytest.approx(rate, rel=1e-6)
    assert law.contention == pytest.approx(contention, abs=1e-6)
    assert law.coherency == pytest.approx(coherency, abs=1e-6)


TRUTHS = {
    "linear": Law("linear", 2.0),
    "amdahl": Law("amdahl", 2.0, 0.08),
    "usl": Law("usl", 2.0, 0.03, 0.008),
    "capped": Law("capped", 2.0, ceiling=9.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_right_law_is_chosen_nearly_always(name: str) -> None:
    hits = 0
    for seed in range(100):
        choice = choose_law(noisy(TRUTHS[name], 0.02, 5, seed))
        hits += choice.law.name == name
    assert hits >= 85, hits


def test_coefficients_are_never_negative() -> None:
    for seed in range(200):
        law = fit_law("usl", noisy(TRUTHS["linear"], 0.05, 3, seed))
        assert law.contention >= 0
        assert law.coherency >= 0


def test_too_few_points_give_a_reason_instead_of_a_law() -> None:
    assert choose_law([(1, 1.0), (2, 2.0), (4, 4.0)]) is None
    choice = choose_law([(1, 1.0), (2, 2.0), (4, 4.0), (8, 8.0)])
    assert choice.law.name == "linear"


def test_the_peak_is_where_throughput_is_highest() -> None:
    law = Law("usl", 1.0, 0.05, 0.01)
    assert law.peak == pytest.approx((0.95 / 0.01) ** 0.5)
    best = max(range(1, 40), key=law.at)
    assert abs(best - law.peak) <= 1
    assert Law("amdahl", 1.0, 0.1).peak is None


def test_a_loss_of_one_per_cent_at_the_last_step_is_no_ceiling() -> None:
    # given two exact repeats of linear growth that falls 1 % short at the end, expect no ceiling
    points = [
        (n, g * n * (0.99 if n == 5 else 1.0)) for g in (9.80, 9.82) for n in (1.0, 2.0, 4.0, 5.0)
    ]
    choice = choose_law(points)
    assert choice.law.name != "capped"
    # and one that falls 20 % short is one
    capped = choose_law([(n, min(x, 9.8 * 4)) for n, x in points])
    assert capped.law.name == "capped"


def test_single_points_ask_for_more_steps() -> None:
    assert missing_steps([1, 2, 4, 8]) == {"usl": 1}
    assert missing_steps([1, 2, 4]) == {"amdahl": 1, "usl": 2, "capped": 1}
    assert missing_steps([1, 2, 4, 8, 16]) == {}


def test_repeats_do_not_replace_steps() -> None:
    assert missing_steps([1, 2] * 10) == {"usl": 1, "capped": 1}
    choice = choose_law([(1, 1.0), (1, 1.1), (2, 1.6), (2, 1.5), (2, 1.55)])
    assert choice is not None and choice.criteria.keys() == {"linear", "amdahl"}

"""When open load starts its requests."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load import pace
from scaletest.model.errors import InvalidValue


def test_a_constant_pace_has_even_gaps() -> None:
    assert list(itertools.islice(pace.constant(4), 5)) == [0, 0.25, 0.5, 0.75, 1]


def test_poisson_arrivals_have_the_rate_and_variance_of_a_poisson_process() -> None:
    times = list(itertools.islice(pace.poisson(10, random.Random(1)), 20_000))
    gaps = [late - early for early, late in itertools.pairwise(times)]
    assert statistics.fmean(gaps) == pytest.approx(0.1, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(0.1, rel=0.03)
    # and the same seed gives the same times
    assert times == list(itertools.islice(pace.poisson(10, random.Random(1)), 20_000))


def test_steps_end_and_pause() -> None:
    times = list(pace.steps(pace.parse_steps("2:1,0:5,4:0.5")))
    assert times == [0, 0.5, 6, 6.25]


@pytest.mark.parametrize(
    "text", ["", "10", "10:", ":5", "a:b", "10:0", "-1:5", "10:5,", "nan:5", "5:inf", "1e9:1"]
)
def test_wrong_steps_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        pace.parse_steps(text)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_wrong_rates_are_refused(rate: float) -> None:
    with pytest.raises(InvalidValue):
        pace.constant(rate)
    with pytest.raises(InvalidValue):
        pace.poisson(rate, random.Random(1))


def test_a_schedule_may_have_comments_and_must_be_sorted() -> None:
    assert pace.parse_schedule(["# start\n", "0\n", "0.5 # half\n", "\n", "2\n"]) == [0, 0.5, 2]
    for wrong in (["1", "0.5"], ["x"], ["-1"], ["inf"], ["nan"], [], ["# nothing"]):
        with pytest.raises(InvalidValue):
            pace.parse_schedule(wrong)


@given(st.text(max_size=40))
def test_no_text_makes_the_parsers_fail_otherwise(text: str) -> None:
    for parse in (pace.parse_steps, lambda schedule: pace.parse_schedule([schedule])):
        try:
            parse(text)
        except InvalidValue:
            pass


@given(st.integers(1, 500), st.floats(0.1, 5.0))
def test_an_exact_poisson_process_has_the_rate_that_was_asked(rate_per_s: int, long: float) -> None:
    times = list(pace.exact_poisson(rate_per_s, long, random.Random(1)))
    assert len(times) == max(1, round(rate_per_s * long))
    assert times == sorted(times) and times[0] >= 0 and times[-1] < long

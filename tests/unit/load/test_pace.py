"""When open load starts its requests."""

import itertools
import math
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


CHANGES = st.lists(
    st.tuples(st.floats(0, 5), st.sampled_from([0.0, 0.5, 1.0, 7.0, 100.0])), max_size=8
)


@given(CHANGES, st.sampled_from([0.5, 3.0, 20.0]), st.booleans())
def test_no_change_of_the_rate_loses_a_start_or_makes_one_twice(
    changes: list[tuple[float, float]], rate: float, is_random: bool
) -> None:
    # given a rate that changes after these times
    follows = pace.poisson(rate, random.Random(1)) if is_random else pace.constant(rate)
    due, now, expected = [next(follows)], 0.0, 0.0
    for gap_s, new_rate in changes:
        expected += gap_s * rate
        now += gap_s
        while due[-1] <= now:
            due.append(next(follows))
        follows.change(new_rate, now)
        due[-1] = follows.due_s
        rate = new_rate
    # expect as many starts as the rates amount to, in order
    assert due == sorted(due)
    gone = sum(at <= now for at in due)
    if is_random:
        chance = random.Random(1)
        units = itertools.accumulate(chance.expovariate(1) for _ in itertools.count())
        exact = sum(1 for _ in itertools.takewhile(lambda at: at <= expected, units))
    else:
        exact = math.floor(expected) + 1
    # a start that is due at the very time of a change may round to either side of it
    assert abs(gone - exact) <= 1


@pytest.mark.parametrize(
    ("text", "rate"), [("20/s", 20.0), ("600/min", 10.0), (" 5 ", 5.0), ("0", 0.0), ("0/s", 0.0)]
)
def test_rates_have_units(text: str, rate: float) -> None:
    assert pace.parse_rate(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["", "x", "-1", "20/h", "nan", "inf", "1e9", "2 s", "1" * 999])
def test_wrong_texts_of_rates_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        pace.parse_rate(text)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_wrong_rates_are_refused(rate: float) -> None:
    with pytest.raises(InvalidValue):
        pace.constant(rate)
    with pytest.raises(InvalidValue):
        pace.poisson(rate, random.Random(1))


@given(st.integers(1, 500), st.floats(0.1, 5.0))
def test_an_exact_poisson_process_has_the_rate_that_was_asked(rate_per_s: int, long: float) -> None:
    times = list(pace.exact_poisson(rate_per_s, long, random.Random(1)))
    assert len(times) == max(1, round(rate_per_s * long))
    assert times == sorted(times) and times[0] >= 0 and times[-1] < long

"""Growth of the backlog in a step."""

import math
import random

import pytest

from scaletest.saturation.judging.backlog import growth, mean_backlog, rate, scarce_growth


def test_the_backlog_of_an_overload_grows_by_what_is_too_much() -> None:
    due = [index / 900 for index in range(9000)]
    ended = [index / 800 for index in range(8000)]
    backlog = growth(due, ended, 1.0, 10.0)
    assert backlog is not None and backlog.low > 0
    assert backlog.value == pytest.approx(100, rel=0.02)
    assert mean_backlog([0.0, 1.0], [1.5], 0.0, 2.0) == pytest.approx((2 + 1 - 0.5) / 2)


def test_a_steady_backlog_does_not_grow() -> None:
    chance = random.Random(1)
    due = sorted(chance.uniform(0, 10) for _ in range(5000))
    backlog = growth(due, sorted(at + 0.5 for at in due), 1.0, 10.0)
    assert backlog is not None and backlog.low < 0 < backlog.high


def test_few_completions_of_many_that_were_due_say_that_the_backlog_grows() -> None:
    due = [index / 4 for index in range(40)]
    backlog = scarce_growth(due, [float(index) for index in range(10)], 2.0, 10.0)
    assert backlog is not None and backlog.value == 3.0 and 0 < backlog.low < 3.0 < backlog.high
    # of many slots that take long, all is due and ended alike
    steady = scarce_growth(
        [index / 2 for index in range(40)], [index / 1.4 for index in range(20)], 2.0, 10.0
    )
    assert steady is not None and steady.low < 0 < steady.high
    assert scarce_growth(due[:15], [], 0.0, 10.0) is None


def test_too_few_completions_give_no_growth_of_the_backlog() -> None:
    assert growth([0.0, 1.0], [0.5, 1.5], 0.0, 2.0) is None
    assert rate([0.5, 1.5], 0.0, 2.0).high == math.inf

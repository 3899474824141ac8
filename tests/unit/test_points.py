"""How many points a law needs."""

from __future__ import annotations

from scaletest.analysis.law import choose, missing_steps


def test_single_points_ask_for_more_steps() -> None:
    assert missing_steps([1, 2, 4, 8]) == {"usl": 1}
    assert missing_steps([1, 2, 4]) == {"amdahl": 1, "usl": 2, "capped": 1}
    assert missing_steps([1, 2, 4, 8, 16]) == {}


def test_repeats_do_not_replace_steps() -> None:
    assert missing_steps([1, 2] * 10) == {"usl": 1, "capped": 1}
    choice = choose([(1, 1.0), (1, 1.1), (2, 1.6), (2, 1.5), (2, 1.55)])
    assert choice.too_few == ("usl", "capped")

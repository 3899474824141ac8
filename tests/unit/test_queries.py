"""SQL queries of a saturation run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scaletest.archive.sql import answers
from scaletest.model.saturation import OK, Attempt
from tests.unit.simulated import step


def test_the_five_queries_tell_the_seconds_of_different_steps_apart() -> None:
    # given two steps, the second of which began a minute after the first
    first = [
        Attempt(0, 1, True, 0.0, 0.0, 0.0, 0.5, OK, agent="1"),
        Attempt(1, 1, True, 0.0, 0.0, 0.0, 1.5, OK, agent="2"),
    ]
    second = [
        Attempt(0, 1, True, 0.0, 0.0, 0.0, 0.75, OK, agent="2"),
        Attempt(1, 1, True, 0.0, 0.0, 0.0, 1.9, "503", agent="2"),
    ]
    steps = [
        replace(step(began="1970-01-01T00:01:40.000+00:00"), number=0),
        replace(step(began="1970-01-01T00:02:40.000+00:00"), number=1),
    ]
    total, errors, seconds, clients, messages = answers("me", steps, {0: first, 1: second})
    assert total.rows == [(4,)]
    assert errors.rows == [("me-2", "503", 1)]
    assert seconds.columns == ("second", "messages", "mean_latency_s")
    assert seconds.rows == [(100, 1, 0.5), (101, 1, 1.5), (160, 1, 0.75)]
    assert clients.rows[0] == ("me-1", 100.5, 100.5, None, None, 1, 0, 1.0, 0.0)
    assert clients.rows[1] == (
        "me-2",
        101.5,
        160.75,
        161.9,
        161.9,
        2,
        1,
        pytest.approx(2 / 3),
        pytest.approx(60.4),
    )
    assert messages.rows == [("me-1", 1), ("me-2", 3)]

"""Times of a service in response headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.http_call import server_time


@given(st.text(max_size=40))
def test_any_header_is_a_time_or_none(text: str) -> None:
    value = server_time(text)
    assert value is None or 0 <= value < 1e9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0.012", 0.012),
        ("12", 0.012),
        ("12ms", 0.012),
        ("0.5s", 0.5),
        ("800us", 0.0008),
        ("app;dur=12.5, db", 0.0125),
    ],
)
def test_times_of_services_are_understood(text: str, seconds: float) -> None:
    assert server_time(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["0" * 100_000 + "x", "1." + "0" * 100_000, "dur=" + "9" * 100_000]
)
def test_a_number_that_is_too_long_is_none_at_once(text: str) -> None:
    assert server_time(text) is None

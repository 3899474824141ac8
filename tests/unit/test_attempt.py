"""Attempts of a load test as lines of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model.errors import InvalidValue
from scaletest.model.saturation import Attempt, from_json, to_json

SAMPLES = st.builds(
    Attempt,
    st.integers(0, 1 << 40),
    *[st.floats(0, 1e6).map(lambda value: round(value, 6))] * 4,
    st.text(min_size=1, max_size=20),
    st.integers(0, 1 << 40),
    st.none() | st.floats(0, 1e6),
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(0, 1 << 40),
)


@given(SAMPLES, st.integers(0, 1 << 30))
def test_a_written_attempt_is_read_back(sample: Attempt, number: int) -> None:
    try:
        line = to_json(sample, number)
        line.encode()
    except UnicodeEncodeError:
        return
    assert from_json(line) == (number, sample)


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_line_is_read_as_an_attempt_or_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidValue):
        from_json(text)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("due_s", 10**400, "^due_s in the record is 1000"),
        ("ended_s", 1e308, r"^ended_s in the record is 1e\+308"),
        ("server_s", 10**400, "^server_s in the record is 1000"),
        ("request", 10**400, "^request in the record is 1000"),
        ("payload", 2**63, f"^payload in the record is {2**63}"),
    ],
)
def test_numbers_that_nothing_can_hold_are_refused(field: str, value: float, problem: str) -> None:
    row = json.loads(to_json(Attempt(1, 0.0, 0.0, 0.0, 1.0, "ok"), 1)) | {field: value}
    with pytest.raises(InvalidValue, match=problem):
        from_json(json.dumps(row))

"""Plans and steps of a search for saturation as documents, and attempts as lines of JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model.attempt import Attempt, from_json, to_json
from scaletest.model.errors import InvalidValue
from scaletest.saturation.plan import SaturationPlan, SaturationStep, latency_limit
from tests.unit.simulated import PLAN


@given(
    st.dictionaries(
        st.sampled_from(["step", "request", "final", "due_s", "outcome", "x"]),
        st.integers() | st.text(),
    )
)
def test_any_step_on_disk_is_read_or_an_error(row: dict[str, Any]) -> None:

    with pytest.raises(InvalidValue):
        SaturationStep.from_json(json.dumps(row))


@given(
    st.dictionaries(
        st.text(max_size=12), st.integers() | st.text(max_size=8) | st.none(), max_size=6
    )
)
def test_any_plan_on_disk_is_read_or_an_error(row: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        SaturationPlan.from_dict({**row, "target": 3})


def test_a_plan_survives_its_file() -> None:
    assert SaturationPlan.from_dict(PLAN.to_dict()) == PLAN


@given(st.text(max_size=30))
def test_any_latency_limit_is_read_or_an_error(text: str) -> None:
    try:
        name, limit_s = latency_limit(text)
    except InvalidValue:
        return
    assert name in ("p50", "p90", "p95", "p99") and limit_s >= 0


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

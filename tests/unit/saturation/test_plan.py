"""Plans and steps of a search for saturation, as documents."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

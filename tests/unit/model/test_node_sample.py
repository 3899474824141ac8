"""Samples of nodes: what is written is read again, and what is wrong is refused."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import NodeSample
from scaletest.model.errors import InvalidValue

NAMES = st.text(max_size=20).filter(str.isprintable)
FIGURES = st.dictionaries(NAMES, st.floats(0, 1e30), max_size=5)


def sample(**changes: Any) -> NodeSample:
    fields: dict[str, Any] = {
        "node": "n1",
        "worker": "w1",
        "at_s": 10.0,
        "interval_s": 1.0,
        "resources": {
            "cpu": {"cores": 2.0, "user": 1.5},
            "disk:sda": {"busy": 0.5},
            "disk:sdb": {"busy": 0.1},
        },
    }
    return NodeSample(**{**fields, **changes})


@given(st.dictionaries(NAMES, FIGURES, max_size=5))
def test_a_written_sample_is_read_back(resources: dict[str, dict[str, float]]) -> None:
    written = sample(resources=resources)
    assert NodeSample.from_dict(written.to_dict()) == written


def test_figures_are_found_by_kind_and_by_name() -> None:
    assert sample().value("cpu", "user") == 1.5
    assert sample().value("cpu", "steal") is None
    assert sample().value("memory", "total") is None
    assert sample().of_kind("disk") == {"sda": {"busy": 0.5}, "sdb": {"busy": 0.1}}
    assert sample().of_kind("cpu") == {"": {"cores": 2.0, "user": 1.5}}


def test_figures_below_zero_are_unknown_but_for_temperatures() -> None:
    row = sample(
        resources={"cpu": {"cores": -1.0, "user": 0.0}, "device:x": {"temperature": -4.0}}
    ).to_dict()
    read = NodeSample.from_dict(row)
    assert read.resources == {"cpu": {"user": 0.0}, "device:x": {"temperature": -4.0}}


@pytest.mark.parametrize(
    "changes",
    [
        {"resources": {"cpu": {"user": "1"}}},
        {"resources": {"cpu": {"user": math.nan}}},
        {"resources": {"cpu": {"user": 1e308}}},  # the sum of two is no number any more
        {"resources": {"cpu": {"user": -math.inf}}},
        {"at_s": 10**400},
        {"resources": {"cpu": 1.0}},
        {"resources": {f"disk:{number}": {} for number in range(65)}},
        {"resources": {"cpu": {str(number): 1.0 for number in range(41)}}},
        {"interval_s": -1.0},
        {"node": 1},
    ],
)
def test_an_invalid_sample_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        NodeSample.from_dict({**sample().to_dict(), **changes})


def test_a_sample_that_lacks_a_field_is_refused_and_unknown_fields_are_dropped() -> None:
    row = sample().to_dict()
    assert NodeSample.from_dict({**row, "later": 1}) == sample()
    with pytest.raises(InvalidValue, match="lacks node"):
        NodeSample.from_dict({name: value for name, value in row.items() if name != "node"})

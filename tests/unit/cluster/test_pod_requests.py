"""What pods request, and their limits, as numbers."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cluster.pod_requests import pod_requests, quantity, removed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("250m", "0.25"),
        ("1Gi", "1073741824"),
        ("2", "2"),
        ("1k", "1000"),
        ("1e3", "1000"),
        ("nonsense", "0"),
    ],
)
def test_kubernetes_quantities_are_parsed(text: str, value: str) -> None:
    assert quantity(text) == Decimal(value)


@given(st.text(max_size=20))
def test_any_text_is_read_as_a_quantity(text: str) -> None:
    assert isinstance(quantity(text), Decimal)


def test_a_resource_limit_counts_where_no_resource_request_is_set() -> None:
    spec = {
        "initContainers": [{"resources": {"requests": {"cpu": "2"}}}],
        "containers": [
            {"resources": {"limits": {"a/gpu": 1}, "requests": {"cpu": "500m"}}},
            {"name": "bare"},
        ],
    }
    assert pod_requests(spec) == {"cpu": 2, "a/gpu": 1, "pods": 1}


def test_only_what_was_removed_is_warned_of() -> None:
    def spec(*names: str) -> dict[str, Any]:
        return {
            "initContainers": [{}],
            "containers": [{"resources": {"requests": dict.fromkeys(names, "1")}}],
        }

    assert removed("x", spec("gpu.intel.com/i915", "cpu")) == []
    (line,) = removed("deployment x", spec("gpu.intel.com/i915", "gpu.intel.com/memory.max"))
    assert line.startswith("deployment x requests gpu.intel.com/memory.max, which")

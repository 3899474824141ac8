"""What a pod asks for, how many fit, and what its object says about it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cluster.capacity import Node, quantity, requests, room
from scaletest.cluster.states import first_failing, pod


@pytest.mark.parametrize(
    ("text", "value"),
    [("250m", "0.25"), ("1Gi", "1073741824"), ("2", "2"), ("1k", "1000"), ("1e3", "1000"), ("nonsense", "0")],
)
def test_quantities(text: str, value: str) -> None:
    assert quantity(text) == Decimal(value)


@given(st.text(max_size=20))
def test_any_text_is_some_quantity(text: str) -> None:
    assert isinstance(quantity(text), Decimal)


def test_a_limit_counts_where_no_request_is_said() -> None:
    spec = {
        "initContainers": [{"resources": {"requests": {"cpu": "2"}}}],
        "containers": [{"resources": {"limits": {"a/gpu": 1}, "requests": {"cpu": "500m"}}}, {"name": "bare"}],
    }
    assert requests(spec) == {"cpu": 2, "a/gpu": 1, "pods": 1}


def test_room_is_what_selector_taints_and_devices_leave() -> None:
    spec: dict[str, Any] = {"containers": [{"resources": {"limits": {"a/gpu": 1}}}]}
    free = {"a/gpu": Decimal(3), "pods": Decimal(110)}
    taint = {"key": "a/gpu", "effect": "NoSchedule"}
    nodes = [Node("1", free), Node("2", free, {"colour": "blue"}), Node("3", free, taints=(taint,)), Node("4", {})]
    assert room(spec, nodes) == 6
    assert room({**spec, "nodeSelector": {"colour": "blue"}}, nodes) == 3
    assert room({**spec, "tolerations": [{"key": "a/gpu", "operator": "Exists"}]}, nodes) == 9


def test_the_pod_that_restarts_is_looked_at_first() -> None:
    waits = {"name": "worker", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}}
    rows = [
        {"metadata": {"name": "new"}, "status": {"phase": "Pending"}},
        {"metadata": {"name": "bad"}, "status": {"phase": "Running", "containerStatuses": [waits]}},
    ]
    found = first_failing([pod(row) for row in rows])
    assert found is not None
    assert (found.name, found.container, found.restarts) == ("bad", "worker", 3)
    assert "CrashLoopBackOff m" in str(found)

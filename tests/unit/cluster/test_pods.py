"""States of pods, what they request, and how often their limits held them back."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cluster.cadvisor import LimitPeriods, parse_limit_periods
from scaletest.cluster.pod_requests import parse_quantity, pod_requests
from scaletest.cluster.pods import first_failing, pod_state


def test_the_pod_that_restarts_is_looked_at_first() -> None:
    waits = {
        "name": "worker",
        "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}},
    }
    rows = [
        {"metadata": {"name": "new"}, "status": {"phase": "Pending"}},
        {"metadata": {"name": "bad"}, "status": {"phase": "Running", "containerStatuses": [waits]}},
    ]
    failing = first_failing([pod_state(row) for row in rows])
    assert (failing.name, failing.container, failing.restarts) == ("bad", "worker", 3)
    assert "CrashLoopBackOff m" in str(failing)


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
    assert parse_quantity(text) == Decimal(value)


@given(st.text(max_size=20))
def test_any_text_is_read_as_a_quantity(text: str) -> None:
    assert isinstance(parse_quantity(text), Decimal)


def test_a_resource_limit_counts_where_no_resource_request_is_set() -> None:
    spec = {
        "initContainers": [{"resources": {"requests": {"cpu": "2"}}}],
        "containers": [
            {"resources": {"limits": {"a/gpu": 1}, "requests": {"cpu": "500m"}}},
            {"name": "bare"},
        ],
    }
    assert pod_requests(spec) == {"cpu": 2, "a/gpu": 1, "pods": 1}


def test_periods_of_limits_are_summed_by_pod() -> None:
    page = """# HELP container_cpu_cfs_periods_total x
container_cpu_cfs_periods_total{container="a",namespace="n",pod="p",image="x{y}"} 50 1700000000000
container_cpu_cfs_periods_total{container="b",namespace="n",pod="p"} 1e+02
container_cpu_cfs_periods_total{container="",namespace="n",pod="p"} 99
container_cpu_cfs_periods_total{container="POD",namespace="n",pod="p"} 99
container_cpu_cfs_periods_total{container="a",namespace="other",pod="p"} 99
container_cpu_cfs_throttled_periods_total{container="a",namespace="n",pod="p"} 20
"""
    assert parse_limit_periods(page, "n") == {"p": LimitPeriods(150.0, 20.0)}


@given(st.text(max_size=200))
def test_any_page_of_metrics_is_read(text: str) -> None:
    assert isinstance(parse_limit_periods(text, "n"), dict)

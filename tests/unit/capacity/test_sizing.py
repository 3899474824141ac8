"""Pods and nodes: the article's figures, and pods placed node by node."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.capacity.sizing import (
    CapacityDemand,
    NodeSize,
    PodSize,
    efficiency_range,
    formula_nodes,
    formula_pods,
    packed_nodes,
    pod_rate,
    pods_that_fit,
    size_alternatives,
)
from scaletest.model.errors import InvalidValue

ARTICLE = CapacityDemand(24.0, 0.5, PodSize(0.5), NodeSize(4.0))


def test_sizes_match_the_example_of_the_published_article() -> None:
    pods = formula_pods(ARTICLE)
    assert (pods, formula_nodes(ARTICLE, pods)) == (12, 3)
    assert pods_that_fit(ARTICLE, 3) == 12


@pytest.mark.parametrize(("latency_s", "rate"), [(0.020, 600.0), (0.5, 24.0), (1.0, 12.0)])
def test_the_rate_of_twelve_pods_follows_from_their_latency(latency_s: float, rate: float) -> None:
    assert 12 * pod_rate(
        CapacityDemand(1.0, latency_s, PodSize(0.5), NodeSize(4.0))
    ) == pytest.approx(rate)


def test_the_formula_overcounts_what_does_not_fit() -> None:
    # given pods of 0.75 on nodes with 2.0 left: two each, where the formula pools 6 CPU and says 8
    demand = CapacityDemand(16.0, 0.5, PodSize(0.75), NodeSize(4.0))
    pods = formula_pods(demand)
    assert (pods, formula_nodes(demand, pods), pods_that_fit(demand, 3)) == (8, 3, 6)
    assert "only 6 of these pods fit on 3 nodes" in [
        size.note for size in size_alternatives(demand)
    ]
    assert packed_nodes(demand, pods) == 4


def test_the_sibling_formula_of_azure_ml() -> None:
    # 20 requests/s of 10 s at a target utilisation of 0.7, one at a time
    assert formula_pods(CapacityDemand(20.0 / 0.7, 10.0, PodSize(0.5), NodeSize(4.0))) == 286


@pytest.mark.parametrize(
    ("latency_s", "low", "high"),
    [(0.01, 0.65, 0.8), (0.02, 0.65, 0.8), (0.1, 0.85, 0.95), (0.5, 0.85, 0.95), (2, 0.95, 1)],
)
def test_short_requests_reach_a_lower_efficiency(latency_s: float, low: float, high: float) -> None:
    assert efficiency_range(latency_s) == (low, high)


def test_alternatives_grow_from_the_bare_formula_to_a_lost_node() -> None:
    alternatives_ = size_alternatives(ARTICLE)
    assert [size.pods for size in alternatives_] == [12, 15, 15, 21, 21]
    assert [size.nodes for size in alternatives_] == [3, 4, 4, 5, 6]


def test_a_measured_rate_per_pod_replaces_formula_and_table() -> None:
    demand = CapacityDemand(400.0, 0.02, PodSize(0.5), NodeSize(4.0), per_pod=50.0)
    assert [(size.method, size.pods) for size in size_alternatives(demand)] == [
        ("placed", 8),
        ("placed, at 70%", 12),
        ("placed, at 70%, N-1", 12),
    ]


@pytest.mark.parametrize(
    ("pod", "node", "pods_a_node"),
    [
        (PodSize(0.1, memory=4.0), NodeSize(8.0, memory=16.0, overhead_memory=1.0), 3),
        (PodSize(0.1, devices=1), NodeSize(8.0, devices=2), 2),
        (PodSize(0.001), NodeSize(8.0, pods=5), 5),
    ],
)
def test_memory_devices_and_pods_limit_a_node_as_well(
    pod: PodSize, node: NodeSize, pods_a_node: int
) -> None:
    demand = CapacityDemand(1.0, 1.0, pod, node, shared_pods=0)
    assert pods_that_fit(demand, 1) == pods_a_node
    assert packed_nodes(demand, 10) == math.ceil(10 / pods_a_node)


def test_a_pod_that_fits_on_no_node_is_reported() -> None:
    alternatives_ = size_alternatives(CapacityDemand(1.0, 1.0, PodSize(6.0), NodeSize(4.0)))
    assert alternatives_[-1].nodes is None and "fits on no such node" in alternatives_[-1].note


@pytest.mark.parametrize(
    "demand",
    [
        CapacityDemand(0.0, 0.5, PodSize(0.5), NodeSize(4.0)),
        CapacityDemand(math.inf, 0.5, PodSize(0.5), NodeSize(4.0)),
        CapacityDemand(24.0, math.nan, PodSize(0.5), NodeSize(4.0)),
        CapacityDemand(24.0, 0.5, PodSize(-1.0), NodeSize(4.0)),
        CapacityDemand(1e8, 100.0, PodSize(0.5), NodeSize(4.0)),
        CapacityDemand(24.0, 0.5, PodSize(0.5), NodeSize(4.0), shared_pods=-1),
    ],
)
def test_an_invalid_demand_is_refused(demand: CapacityDemand) -> None:
    with pytest.raises(InvalidValue):
        size_alternatives(demand)


@given(
    st.floats(0.1, 5000.0),
    st.floats(0.005, 5.0),
    st.floats(0.05, 3.0),
    st.floats(0.0, 4.0),
    st.floats(3.0, 64.0),
    st.integers(0, 5),
)
def test_placed_pods_fit_and_one_node_less_does_not_hold_them(
    rate: float, latency_s: float, cpu: float, memory: float, node_cpu: float, shared: int
) -> None:
    demand = CapacityDemand(
        rate, latency_s, PodSize(cpu, memory), NodeSize(node_cpu, 16.0), shared, 1.3
    )
    pods = formula_pods(demand)
    nodes = packed_nodes(demand, pods)
    if nodes is None:
        assert pods_that_fit(demand, 50 + pods) < pods or node_cpu - 0.7 < cpu or memory > 16
        return
    assert pods_that_fit(demand, nodes) >= pods
    assert nodes == 1 or pods_that_fit(demand, nodes - 1) < pods

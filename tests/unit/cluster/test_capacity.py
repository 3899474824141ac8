"""Room for pods on nodes and within quotas."""

from decimal import Decimal
from typing import Any

import pytest

from scaletest.cluster.capacity import (
    NodeCapacity,
    Supply,
    quota_room,
)
from scaletest.cluster.pod_requests import pod_limits


def test_room_for_pods_follows_selector_taints_and_devices() -> None:
    spec: dict[str, Any] = {"containers": [{"resources": {"limits": {"a/gpu": 1}}}]}
    free = {"a/gpu": Decimal(3), "pods": Decimal(110)}
    taint = {"key": "a/gpu", "effect": "NoSchedule"}
    nodes = [
        NodeCapacity("1", free),
        NodeCapacity("2", free, {"colour": "blue"}),
        NodeCapacity("3", free, taints=(taint,)),
        NodeCapacity("4", {}),
    ]
    supply = Supply(nodes, [], ())
    assert supply.headroom(spec, 0).room == 6
    assert supply.headroom({**spec, "nodeSelector": {"colour": "blue"}}, 0).room == 3
    tolerant = {**spec, "tolerations": [{"key": "a/gpu", "operator": "Exists"}]}
    assert supply.headroom(tolerant, 0).room == 9


def test_the_scarcest_resource_is_named() -> None:
    spec: dict[str, Any] = {"containers": [{"resources": {"limits": {"a/gpu": 1, "cpu": 1}}}]}
    free = {"a/gpu": Decimal(3), "cpu": Decimal(2), "pods": Decimal(110)}
    for node, scarce in (
        (NodeCapacity("1", free), "the nodes (cpu)"),
        (NodeCapacity("1", {**free, "cpu": Decimal(8)}), "the nodes (a/gpu)"),
        (NodeCapacity("1", free, schedulable=False), "the nodes"),
    ):
        assert Supply([node], [], ()).headroom(spec, 0).limited_by == scarce


@pytest.mark.parametrize(
    ("hard", "used", "expected"),
    [
        ({"pods": "10"}, {"pods": "4"}, (6, "quota q: pods")),
        ({"count/pods": "2"}, {}, (2, "quota q: count/pods")),
        (
            {"requests.cpu": "4", "limits.memory": "3Gi"},
            {"requests.cpu": "1"},
            (3, "quota q: limits.memory"),
        ),
        ({"cpu": "3"}, {"cpu": "5"}, (0, "quota q: cpu")),
        ({"requests.a/gpu": "5"}, {"requests.a/gpu": "1"}, (2, "quota q: requests.a/gpu")),
        ({"configmaps": "1", "requests.storage": "1Gi"}, {}, None),
    ],
)
def test_quotas_admit_what_is_left_of_them(
    hard: dict[str, str], used: dict[str, str], expected: tuple[int, str] | None
) -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi", "a/gpu": 2}}
    spec = {"containers": [{"resources": resources}]}
    row: dict[str, Any] = {
        "metadata": {"name": "q"},
        "spec": {"hard": hard},
        "status": {"used": used},
    }
    assert pod_limits(spec) == {"memory": 1024**3, "a/gpu": 2}
    assert quota_room(spec, [row]) == expected
    row["spec"]["scopes"] = ["BestEffort"]
    assert quota_room(spec, [row]) is None


def test_nodes_or_a_quota_limit_the_room_and_claims_cannot_be_counted() -> None:
    spec: dict[str, Any] = {"containers": [{"resources": {"limits": {"a/gpu": 1}}}]}
    nodes = [NodeCapacity("1", {"a/gpu": Decimal(3), "pods": Decimal(110)})]
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    free = Supply(nodes, [], ()).headroom(spec, 2)
    assert (free.room, free.limited_by, free.doubt) == (5, "the nodes (a/gpu)", "")
    free = Supply(nodes, [quota], ()).headroom({**spec, "resourceClaims": [{}]}, 2)
    assert (free.room, free.limited_by) == (3, "quota q: pods")
    assert "only the scheduler can count" in free.doubt
    assert Supply(None, None, ("why",)).headroom(spec, 2).room is None

"""What a pod asks for, how many fit, what its object says about it, and its metrics."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cluster.cadvisor import parse_usage
from scaletest.cluster.capacity import (
    NodeCapacity,
    Supply,
    quota_room,
    room_on_nodes,
    scarcest_resource,
)
from scaletest.cluster.connection import connect
from scaletest.cluster.pod_requests import pod_limits, pod_requests, quantity, removed
from scaletest.cluster.pods import first_failing, pod_state
from scaletest.cluster.service import parse_reference
from scaletest.model.errors import InvalidValue


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
    assert room_on_nodes(spec, nodes) == 6
    assert room_on_nodes({**spec, "nodeSelector": {"colour": "blue"}}, nodes) == 3
    assert (
        room_on_nodes({**spec, "tolerations": [{"key": "a/gpu", "operator": "Exists"}]}, nodes) == 9
    )


def test_the_scarcest_resource_is_named() -> None:
    spec: dict[str, Any] = {"containers": [{"resources": {"limits": {"a/gpu": 1, "cpu": 1}}}]}
    free = {"a/gpu": Decimal(3), "cpu": Decimal(2), "pods": Decimal(110)}
    assert scarcest_resource(spec, [NodeCapacity("1", free)]) == "cpu"
    assert scarcest_resource(spec, [NodeCapacity("1", {**free, "cpu": Decimal(8)})]) == "a/gpu"
    assert scarcest_resource(spec, [NodeCapacity("1", free, schedulable=False)]) == ""


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
    assert (free.room, free.by, free.scarce, free.doubt) == (5, "the nodes", "a/gpu", "")
    free = Supply(nodes, [quota], ()).headroom({**spec, "resourceClaims": [{}]}, 2)
    assert (free.room, free.by, free.scarce) == (3, "quota q: pods", "")
    assert "only the scheduler can count" in free.doubt
    assert Supply(None, None, ("why",)).headroom(spec, 2).room is None


def test_only_what_was_removed_is_warned_of() -> None:
    def spec(*names: str) -> dict[str, Any]:
        return {
            "initContainers": [{}],
            "containers": [{"resources": {"requests": dict.fromkeys(names, "1")}}],
        }

    assert removed("x", spec("gpu.intel.com/i915", "cpu")) == []
    (line,) = removed("deployment x", spec("gpu.intel.com/i915", "gpu.intel.com/memory.max"))
    assert line.startswith("deployment x requests gpu.intel.com/memory.max, which")


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


def test_a_kubeconfig_that_is_named_later_is_the_one_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given that the client library was imported when another was named
    import kubernetes.config  # noqa: F401

    for name in ("one", "two"):
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": f"http://{name}.invalid"}}],
            "users": [],
            "contexts": [{"name": name, "context": {"cluster": name, "namespace": f"of-{name}"}}],
            "current-context": name,
        }
        (tmp_path / name).write_text(json.dumps(document))
    for name in ("one", "two"):
        # when it is named
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / name))
        cluster = connect()
        # expect it, and its namespace
        assert (cluster.client.configuration.host, cluster.namespace) == (
            f"http://{name}.invalid",
            f"of-{name}",
        )


def test_figures_of_cadvisor_are_summed_by_pod() -> None:
    page = """# HELP container_cpu_usage_seconds_total x
container_cpu_usage_seconds_total{container="a",namespace="n",pod="p",image="x{y}"} 1.5 1700000000000
container_cpu_usage_seconds_total{container="b",namespace="n",pod="p"} 2
container_cpu_usage_seconds_total{container="",namespace="n",pod="p"} 99
container_cpu_usage_seconds_total{container="a",namespace="other",pod="p"} 99
container_memory_working_set_bytes{container="a",namespace="n",pod="p"} 1e+06
container_memory_working_set_bytes{container="POD",namespace="n",pod="p"} 99
"""  # noqa: E501
    assert parse_usage(page, "n") == {"p": (3.5, 1e6, 1.7e9)}


@given(st.text(max_size=200))
def test_any_page_of_figures_is_read(text: str) -> None:
    assert isinstance(parse_usage(text, "n"), dict)


@pytest.mark.parametrize("text", ["model", "svc/", "svc/Model", "svc/a:b:c", "svc/a b", "pod/a"])
def test_an_invalid_service_reference_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_reference(text)

"""The replicas of a service on Kubernetes, with an API server that the test plays."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from scaletest.cluster import api_calls
from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.cadvisor import LimitPeriods
from scaletest.cluster.changes import BEFORE
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import restore
from scaletest.cluster.resources import HPAS, STATEFUL_SETS, Resource
from scaletest.cluster.service import Service
from scaletest.load.http_call import HttpCall
from scaletest.model.errors import InvalidValue, Unreachable, UsageError
from scaletest.validation.options import DeploymentOptions
from scaletest.validation.service import kubernetes
from scaletest.validation.service.kubernetes import find_service
from tests.unit.fake_api import Answer
from tests.unit.fake_objects import FakeObjects

GROUP = "leaderworkerset.x-k8s.io"
SETS = Resource("LeaderWorkerSet", f"/apis/{GROUP}/v1", "leaderworkersets")


class FakeService(FakeObjects):
    """A StatefulSet and a LeaderWorkerSet of three, and a Service whose pods are theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.scaled = self.put(STATEFUL_SETS, "model", {"replicas": 3})
        self.sets = self.put(SETS, "model", {"replicas": 3})
        self.denied = ""
        self.selector = "app=model"

    def _act(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        name = path.rpartition("/")[2]
        count = self.scaled["spec"]["replicas"]
        if path == f"/apis/{GROUP}":
            return 200, {}, {"preferredVersion": {"groupVersion": f"{GROUP}/v1"}}
        if path == f"/apis/{GROUP}/v1":
            names = ("leaderworkersets", "leaderworkersets/scale", "others")
            rows = [{"name": row, "kind": "LeaderWorkerSet", "namespaced": True} for row in names]
            return 200, {}, {"resources": [*rows[:2], {**rows[2], "kind": "Other"}]}
        if name == "scale":
            at = self._objects[path.removesuffix("/scale")]["spec"]["replicas"]
            return 200, {}, {"spec": {"replicas": at}, "status": {"selector": self.selector}}
        if name == "web":
            return 200, {}, {"spec": {"ports": [{"port": 80}], "selector": {"app": "model"}}}
        if name == "endpointslices":
            endpoints: list[Any] = [
                {
                    "addresses": [f"10.0.0.{n}"],
                    "conditions": {"ready": True},
                    "targetRef": {"name": f"m-{n}"},
                }
                for n in range(count)
            ]
            return 200, {}, {"items": [{"endpoints": endpoints, "ports": [{"port": 8000}]}]}
        if name == "pods":
            ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "10:00"}]
            status = {"phase": "Running", "conditions": ready}
            spec = {"nodeName": "node-1"}
            pods = [
                {"metadata": {"name": f"m-{n}"}, "spec": spec, "status": status}
                for n in range(count)
            ]
            return 200, {}, {"items": pods}
        if name == "cadvisor":
            labels = '{container="main",namespace="n",pod="m-0"}'
            rows = {"periods": 100, "throttled_periods": 25}
            lines = [f"container_cpu_cfs_{row}_total{labels} {n}\n" for row, n in rows.items()]
            return 200, {}, "".join(lines).encode()
        if name == "selfsubjectaccessreviews":
            asked = json.loads(body)["spec"]["resourceAttributes"]
            is_allowed = asked["resource"] != self.denied or not self.denied
            return 201, {}, {"status": {"allowed": is_allowed}}
        return super()._act(method, path, query, body)


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def cluster(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with service.served() as cluster:
        monkeypatch.setattr(api_calls, "connect_cluster", lambda *names: cluster)
        monkeypatch.setattr(kubernetes, "LOOK_S", 0.0)
        yield cluster


def found(deployment: str, *, may_hold: bool = False) -> Any:
    """What is found of the Service web."""
    options = DeploymentOptions(deployment, "n", "", "", 5.0, may_hold)
    return find_service("svc/web", options, HttpCall)


def test_a_stateful_set_is_scaled_with_its_autoscaler_held_and_put_back(
    cluster: Cluster, service: FakeService
) -> None:
    target = {"kind": "StatefulSet", "name": "model"}
    hpa = service.put(HPAS, "h", {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9})
    with pytest.raises(UsageError, match="HorizontalPodAutoscaler h"):
        found("statefulset/model")
    found_service = found("statefulset/model", may_hold=True)
    assert "services/web:80/proxy" in found_service.call.url
    with closing(found_service.replicas) as replicas:
        replicas.scale(1)
        assert (service.scaled["spec"]["replicas"], hpa["spec"]["maxReplicas"]) == (1, 1)
        replicas.scale(4)
        assert (service.scaled["spec"]["replicas"], hpa["spec"]["minReplicas"]) == (4, 4)
    assert service.scaled["spec"]["replicas"] == 3
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (2, 9)
    assert BEFORE not in service.scaled["metadata"]["annotations"]


def test_what_a_killed_run_left_is_put_back_by_restore_or_the_next_run(
    cluster: Cluster, service: FakeService
) -> None:
    found("statefulset/model").replicas.scale(1)
    assert restore(cluster, "statefulset/model") == {"StatefulSet model": ""}
    assert service.scaled["spec"]["replicas"] == 3
    found("statefulset/model").replicas.scale(1)
    with closing(found("statefulset/model").replicas) as replicas:
        replicas.scale(2)
    assert service.scaled["spec"]["replicas"] == 3


def test_any_kind_with_a_scale_is_found_by_its_group(
    cluster: Cluster, service: FakeService
) -> None:
    deployment = Deployment(cluster, f"leaderworkerset.{GROUP}/model")
    assert (deployment.resource, deployment.selector) == (SETS, "app=model")
    with pytest.raises(UsageError, match="no kind with the subresource /scale"):
        Deployment(cluster, f"other.{GROUP}/model")
    with pytest.raises(InvalidValue, match="names no object"):
        Deployment(cluster, "leaderworkerset/model")


def test_a_scale_without_a_selector_is_refused(cluster: Cluster, service: FakeService) -> None:
    service.selector = ""
    with pytest.raises(UsageError, match="has no selector"):
        found("statefulset/model")


def test_a_missing_right_is_named_before_anything_changes(
    cluster: Cluster, service: FakeService
) -> None:
    service.denied = "endpointslices"
    with pytest.raises(Unreachable, match="list endpointslices"):
        found("statefulset/model")
    assert service.calls == []


def test_without_an_object_its_name_is_asked_for(cluster: Cluster, service: FakeService) -> None:
    service.model["spec"]["template"]["metadata"] = {"labels": {"app": "another"}}
    with pytest.raises(UsageError, match="unknown"):
        found("")


def test_pods_are_known_by_their_addresses_nodes_and_throttling(
    cluster: Cluster, service: FakeService
) -> None:
    replicas = found("statefulset/model").replicas
    assert set(replicas.addresses()) == {"m-0", "m-1", "m-2"}
    assert replicas.addresses()["m-1"].endswith("/namespaces/n/pods/m-1:8000/proxy")
    assert Service(cluster, "svc/web").pod_urls(is_inside=True)["m-1"] == "http://10.0.0.1:8000"
    pods = replicas.pods()
    assert (pods["m-0"].limit.periods, pods["m-0"].limit.throttled) == (100.0, 25.0)
    assert (pods["m-1"].state.node, pods["m-1"].state.since) == ("node-1", "10:00")
    assert pods["m-1"].limit == LimitPeriods()

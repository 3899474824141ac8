"""Which objects scale a Deployment, and how a run holds them until it is over."""

import pytest

from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.changes import (
    BEFORE,
    Patch,
)
from scaletest.cluster.hold_autoscalers import PAUSED, RELEASE_LIMIT_S, Autoscalers
from scaletest.cluster.resources import HPAS, SCALED_OBJECTS
from scaletest.model.errors import UsageError, WaitTimeout
from tests.unit.cluster.conftest import BUSY, changes_of
from tests.unit.fake_api import Answer, page
from tests.unit.fake_objects import TARGET, FakeObjects
from tests.unit.fakes import Clock


class Time(Clock):
    """`before` is called when a sleep is over."""

    before = list[object]

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.before()


def test_scaled_objects_are_listed_only_where_there_are_any(
    objects: FakeObjects, cluster: Cluster
) -> None:
    objects.put(SCALED_OBJECTS, "s", TARGET)
    objects.put(SCALED_OBJECTS, "elsewhere", {"scaleTargetRef": {"name": "another"}})
    assert [str(scaler) for scaler in Autoscalers(cluster, "model").found] == ["ScaledObject s"]

    def without_keda(method: str, name: str) -> Answer | None:
        if name == "scaledobjects":
            return 403, {}, {"message": "forbidden"}
        return (200, {}, {"groups": []}) if name == "apis" else None

    objects.answer = without_keda
    assert Autoscalers(cluster, "model").found == []


def test_an_active_autoscaler_is_refused_unless_it_may_be_held(
    objects: FakeObjects, cluster: Cluster
) -> None:
    objects.put(SCALED_OBJECTS, "theirs", TARGET, **{PAUSED: "true"})
    assert Autoscalers(cluster, "model").active(may_hold=False) == []
    objects.put_hpa(1, 9)
    scalers = Autoscalers(cluster, "model")
    with pytest.raises(UsageError, match="HorizontalPodAutoscaler h scales model") as error:
        scalers.active(may_hold=False)
    assert "<pause_autoscalers>" in error.value.hint
    assert [scaler.name for scaler in scalers.active(may_hold=True)] == ["h"]


def test_an_hpa_that_scales_as_soon_as_it_is_held_hides_no_number_of_pods(
    objects: FakeObjects, cluster: Cluster
) -> None:
    # given an HPA whose controller is fast
    hpa = objects.put_hpa(1, 9)

    def act(method: str, name: str) -> None:
        spec = objects.model["spec"]
        limits = hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]
        spec["replicas"] = min(max(spec["replicas"], limits[0]), limits[1])

    objects.answer = act
    scalers, changes = Autoscalers(cluster, "model"), changes_of(cluster)
    for replicas in (1, 3):
        scalers.scale(Patch({"replicas": replicas}), changes)
        assert objects.model["spec"]["replicas"] == replicas
    # an HPA takes no 0
    scalers.hold(0, changes)
    assert hpa["spec"]["maxReplicas"] == 1
    changes.close()
    assert objects.model["spec"]["replicas"] == 2
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (1, 9)


def test_a_scaled_object_resumes_only_if_a_run_paused_it(
    objects: FakeObjects, cluster: Cluster
) -> None:
    # given one that a killed run paused, and one that somebody else did
    ours = objects.put(SCALED_OBJECTS, "ours", TARGET)["metadata"]["annotations"]
    theirs = objects.put(SCALED_OBJECTS, "theirs", TARGET, **{PAUSED: "true"})
    Autoscalers(cluster, "model").hold(2, changes_of(cluster))
    assert ours[PAUSED] == "true" and BEFORE in ours
    # when a later run holds and releases them
    scalers, changes = Autoscalers(cluster, "model"), changes_of(cluster)
    assert [scaler.name for scaler in scalers.active(may_hold=True)] == ["ours"]
    scalers.hold(2, changes)
    changes.close()
    assert ours == {} and theirs["metadata"]["annotations"] == {PAUSED: "true"}


def test_a_hold_waits_until_keda_is_paused(objects: FakeObjects, cluster: Cluster) -> None:
    # given KEDA, which takes its HPA away two looks later, and an API server that is busy meanwhile
    objects.put(SCALED_OBJECTS, "s", TARGET)
    objects.put_hpa(1, 9, owner="s")
    time = Time()
    scalers = Autoscalers(cluster, "model", clock=time, sleep=time.sleep)

    def act() -> None:
        objects.answer = lambda method, name: (
            BUSY if time.now < 1.0 and name == HPAS.plural else None
        )
        if time.now >= 1.0:
            objects.answer = lambda method, name: page([]) if name == HPAS.plural else None

    time.before = act
    scalers.hold(1, changes_of(cluster))
    assert time.now == 1.0


def test_a_hold_gives_up_when_keda_goes_on_and_removes_its_annotation(
    objects: FakeObjects, cluster: Cluster
) -> None:
    annotations = objects.put(SCALED_OBJECTS, "s", TARGET)["metadata"]["annotations"]
    objects.put_hpa(1, 9, owner="s")
    time, changes = Time(), changes_of(cluster)
    scalers = Autoscalers(cluster, "model", clock=time, sleep=time.sleep)
    with pytest.raises(WaitTimeout, match="its HPA is still there"):
        scalers.hold(1, changes)
    assert time.now == RELEASE_LIMIT_S and annotations
    changes.close()
    assert annotations == {}

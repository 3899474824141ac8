"""What a run changes in a cluster is put back: by this run, by a later one, or by hand."""

import copy
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from scaletest.cli.main import run
from scaletest.cluster import hold_autoscalers
from scaletest.cluster.api_calls import Busy, Cluster, Refused
from scaletest.cluster.changes import (
    BEFORE,
    TRIES,
    Changes,
    Patch,
    read_note,
    refuse_changed,
    undo_patch,
)
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import PAUSED, Autoscalers
from scaletest.cluster.resources import DEPLOYMENTS, HPAS, SCALED_OBJECTS
from scaletest.model.errors import InvalidValue, UsageError
from tests.unit.cluster.conftest import BUSY, changes_of
from tests.unit.fake_api import Answer, thing
from tests.unit.fake_objects import TARGET, FakeObjects

COMMAND = "scaletest cluster restore -n n --deployment model"


def scale(changes: Changes, replicas: int) -> None:
    changes.change(DEPLOYMENTS, "model", Patch({"replicas": replicas}))


def busy(times: int, method: str = "PATCH") -> Callable[[str, str], Answer | None]:
    """Answers the first calls of this method."""
    left = [times]

    def answer(called: str, name: str) -> Answer | None:
        left[0] -= called == method
        return BUSY if called == method and left[0] >= 0 else None

    return answer


def test_a_patch_is_undone_where_it_changes_something_and_nowhere_else() -> None:
    entries = [{"name": "A", "value": "1"}, {"name": "W", "valueFrom": {"fieldRef": {}}}]
    container = {"name": "m", "image": "a", "env": entries, "resources": {"limits": {"cpu": "1"}}}
    document = thing("model", spec={"replicas": 2, "template": {"containers": [container]}})
    patch = Patch(
        spec={
            "replicas": 3,
            "minReplicas": 1,
            "template": {
                "containers": [
                    {
                        "name": "m",
                        "args": ["x"],
                        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
                        "env": [
                            {"name": "W", "value": "4", "valueFrom": None},
                            {"name": "new", "value": "5"},
                        ],
                    }
                ]
            },
        },
        annotations={"paused": "true"},
    )
    undone = {
        "name": "m",
        "args": None,
        "resources": {"limits": {"cpu": "1", "memory": None}},
        "env": [
            {"name": "W", "value": None, "valueFrom": {"fieldRef": {}}},
            {"name": "new", "$patch": "delete"},
        ],
    }
    assert undo_patch(patch, document) == Patch(
        spec={"replicas": 2, "minReplicas": None, "template": {"containers": [undone]}},
        annotations={"paused": None},
    )


def test_everything_is_put_back_once_and_what_was_changed_last_first(
    objects: FakeObjects, changes: Changes
) -> None:
    hpa = objects.put_hpa(1, 9)
    scaled = objects.put(SCALED_OBJECTS, "s", TARGET, **{PAUSED: "false", "x": "y"})
    before = copy.deepcopy([hpa["spec"], objects.model["spec"], scaled["metadata"]["annotations"]])
    for count in (3, 4):
        changes.change(HPAS, "h", Patch({"minReplicas": count, "maxReplicas": count}))
        scale(changes, count)
    changes.change(SCALED_OBJECTS, "s", Patch(annotations={PAUSED: "true"}))
    assert hpa["spec"]["maxReplicas"] == objects.model["spec"]["replicas"] == 4
    assert scaled["metadata"]["annotations"][PAUSED] == "true"
    assert list(changes.put_back().items()) == [
        ("ScaledObject s", ""),
        ("Deployment model", ""),
        ("HorizontalPodAutoscaler h", ""),
    ]
    assert changes.put_back() == {}
    assert before == [hpa["spec"], objects.model["spec"], scaled["metadata"]["annotations"]]
    assert BEFORE not in hpa["metadata"]["annotations"] | objects.model["metadata"]["annotations"]


def test_an_image_that_was_rolled_out_meanwhile_stays(
    objects: FakeObjects, changes: Changes
) -> None:
    container = objects.model["spec"]["template"]["spec"]["containers"][0]
    before = copy.deepcopy(container)
    tuned = {"name": "m", "args": ["x"], "resources": {"limits": {"cpu": "1"}}}
    patch = Patch({"template": {"spec": {"containers": [tuned]}}})
    changes.change(DEPLOYMENTS, "model", patch)
    assert container["args"] == ["x"] and container["resources"]["limits"] == {"cpu": "1"}
    container["image"] = "b"
    changes.close()
    assert container == {**before, "image": "b"}


def test_what_a_killed_run_left_is_refused_taken_over_or_put_back_by_hand(
    objects: FakeObjects,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # given a run that was killed, and one that begins without regard to it
    hpa = objects.put_hpa(1, 9)
    killed = changes_of(cluster)
    Autoscalers(cluster, "model").scale(Patch({"replicas": 8}), killed)
    deployment = Deployment(cluster, "model")
    with pytest.raises(
        UsageError, match="changed Deployment model and has not put it back"
    ) as error:
        scale(changes_of(cluster), 1)
    assert COMMAND in error.value.hint
    # expect that it is refused, but for who sets the number of pods itself
    with pytest.raises(UsageError, match="has not put it back"):
        refuse_changed(deployment)
    refuse_changed(deployment, own={"replicas"})
    # and that a later run puts back what was there before the first
    later = changes_of(cluster)
    later.take_over(DEPLOYMENTS, "model", deployment.annotations.get(BEFORE))
    Autoscalers(cluster, "model").scale(Patch({"replicas": 1}), later)
    later.close()
    limits = (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"])
    assert (objects.model["spec"]["replicas"], limits) == (2, (1, 9))
    # or the command, once
    Autoscalers(cluster, "model").scale(Patch({"replicas": 8}), killed)
    monkeypatch.setattr("scaletest.cli.cluster.connect_cluster", lambda namespace, context: cluster)
    line = ["cluster", "restore", "--deployment", "model"]
    assert run(line) == 0
    assert "HorizontalPodAutoscaler h: put back\nDeployment model: put back" in (
        capsys.readouterr().out
    )
    assert (objects.model["spec"]["replicas"], hpa["spec"]["maxReplicas"]) == (2, 9)
    assert run(line) == 0 and "nothing to put back" in capsys.readouterr().out


def test_of_two_runs_that_begin_at_once_one_is_refused(
    objects: FakeObjects, cluster: Cluster
) -> None:
    first, second = changes_of(cluster), changes_of(cluster)

    def overtake(method: str, name: str) -> Answer | None:
        if method == "PATCH":
            objects.answer = lambda method, name: None
            scale(first, 5)
        return None

    objects.answer = overtake
    with pytest.raises(UsageError, match="and has not put it back"):
        scale(second, 6)
    second.close()
    assert objects.model["spec"]["replicas"] == 5
    first.close()
    assert objects.model["spec"]["replicas"] == 2


def test_an_api_server_that_is_away_is_waited_for_and_one_that_refuses_is_not(
    objects: FakeObjects, changes: Changes
) -> None:
    objects.answer = busy(TRIES - 1)
    scale(changes, 1)
    assert objects.model["spec"]["replicas"] == 1
    objects.answer = busy(TRIES)
    with pytest.raises(Busy):
        scale(changes, 3)
    asked = []

    def refuse(method: str, name: str) -> Answer | None:
        asked.append(method)
        return (422, {}, {"message": "it is immutable"}) if method == "PATCH" else None

    objects.answer = refuse
    with pytest.raises(Refused, match="immutable"):
        scale(changes, 3)
    assert asked == ["GET", "PATCH"]


def test_a_change_without_an_answer_is_put_back(objects: FakeObjects, changes: Changes) -> None:
    # given an API server that does what it is asked for, and does not say so
    real = objects._patch

    def silent(*arguments: Any) -> Answer:
        real(*arguments)
        return BUSY

    objects._patch = silent  # type: ignore[method-assign]
    with pytest.raises(Busy):
        scale(changes, 7)
    objects._patch = real  # type: ignore[method-assign]
    assert objects.model["spec"]["replicas"] == 7
    changes.close()
    assert objects.model["spec"]["replicas"] == 2


def test_what_cannot_be_put_back_is_reported_and_the_rest_is(
    objects: FakeObjects, changes: Changes, caplog: pytest.LogCaptureFixture
) -> None:
    objects.put_hpa(1, 9)
    changes.change(HPAS, "h", Patch({"minReplicas": 3, "maxReplicas": 3}))
    scale(changes, 3)
    objects.answer = lambda method, name: BUSY if name == "h" else None
    changes.close()
    assert "HorizontalPodAutoscaler h could not be put back" in caplog.text
    assert COMMAND in caplog.text
    assert objects.model["spec"]["replicas"] == 2
    # what was deleted needs none
    objects.answer = lambda method, name: None
    objects.delete(HPAS, "h")
    assert changes.put_back() == {"HorizontalPodAutoscaler h": ""}


def test_settings_that_somebody_put_back_under_a_run_are_noted_again(
    objects: FakeObjects, cluster: Cluster, changes: Changes
) -> None:
    scale(changes, 3)
    assert set(hold_autoscalers.restore(cluster, "model").values()) == {""}
    scale(changes, 4)
    changes.close()
    assert objects.model["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[1]", "null", '{"at": 1}', '{"at": "now"}', "[" * 100_000),
        '{"at": "now", "undo": {"spec": {}}, "more": 1}',
        '{"at": "now", "undo": {"metadata": {"finalizers": null}}}',
        '{"at": "now", "undo": {"spec": 5}}',
    ],
)
def test_an_annotation_that_is_not_ours_is_an_error(
    objects: FakeObjects, cluster: Cluster, text: str
) -> None:
    with pytest.raises(InvalidValue, match="scaletest/before of x was not written by scaletest"):
        read_note("x", text)
    objects.model["metadata"]["annotations"][BEFORE] = text
    with pytest.raises(InvalidValue, match="scaletest/before of Deployment model"):
        hold_autoscalers.restore(cluster, "model")
    assert objects.calls == []


def test_a_change_that_was_given_up_is_put_back_after_it_happened(
    objects: FakeObjects, changes: Changes
) -> None:
    # given a second Ctrl-C while the API server still works on a change
    interrupted, given_up = threading.Event(), threading.Event()

    def leave(number: int, frame: FrameType | None) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise SystemExit(130)

    def slow(method: str, name: str) -> Answer | None:
        if method == "PATCH":
            main = threading.main_thread().ident
            assert main
            # again: one that comes just before it waits does not wake the main thread
            while not interrupted.wait(0.05):
                signal.pthread_kill(main, signal.SIGUSR1)
            assert given_up.wait(120)
        return None

    scale(changes, 3)
    objects.answer = slow
    before = signal.signal(signal.SIGUSR1, leave)
    try:
        with pytest.raises(SystemExit):
            scale(changes, 4)
    finally:
        signal.signal(signal.SIGUSR1, before)
    # when it is put back, expect that this is the last word
    given_up.set()
    changes.close()
    assert objects.calls[-2:] == ['model {"replicas": 4}', 'model {"replicas": 2}']
